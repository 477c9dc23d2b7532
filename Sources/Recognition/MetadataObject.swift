// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankMediaCore
public import OvercrankPreview
public import OvercrankRaster

/// A machine-readable code or a face that was found in a frame.
///
/// Corresponds to `AVMetadataObject`, `AVMetadataMachineReadableCodeObject` and
/// `AVMetadataFaceObject`.
public struct MetadataObject: Hashable, Sendable {
  /// The type of the object, such as ``MetadataObjectType/qr``.
  public let type: MetadataObjectType
  /// The time of the frame: on the capture clock for a camera, in the source for a movie.
  public let time: MediaTime
  /// The duration of the frame.
  public let duration: MediaTime
  /// The smallest upright rectangle that contains all ``corners``.
  ///
  /// In device coordinates: from 0 at the left and upper edge of the captured frame to 1 at the
  /// opposite edges.
  public let bounds: Rect
  /// The corners in device coordinates.
  ///
  /// The order is upper left, upper right, lower right and lower left, as seen with the code
  /// upright.
  ///
  /// For bar codes, they enclose the lines that were read; the bars may extend further. For faces,
  /// they are the corners of ``bounds``.
  public let corners: [Point]
  /// The text of the code; nil if its bytes are not text.
  ///
  /// The text is untrusted: it may be long and contain control characters.
  public let stringValue: String?
  /// The bytes that the code contains.
  public let rawBytes: [UInt8]
  /// The id of a face; nil for a code.
  ///
  /// A face keeps its id while it is followed, and if it is missing for up to a second. The id is
  /// not reused as long as the same output or movie reader searches with the same settings.
  public let faceID: Int64?
  /// Whether the rotation of a face in the image is known.
  public var hasRollAngle: Bool { rollAngle != nil }
  /// The rotation of a face in the image in degrees clockwise; nil if unknown.
  ///
  /// The value is from -70 to 70. Up to 45 degrees, the median error is below 4 degrees. While a
  /// face is followed, its rotation is measured up to ten times a second.
  public let rollAngle: Double?
  /// Whether the direction of a face is known.
  public var hasYawAngle: Bool { yawAngle != nil }
  /// The rotation of a face about its vertical axis in degrees, positive to the right of the image;
  /// nil if it is not known.
  ///
  /// The value is -45, 0 or 45, as AVFoundation rounds it. At least nine of ten faces with
  /// more than 20 degrees have the value of their side. A face with 10 to 20 degrees may have any of
  /// these values or none. Nil with a ``FaceModel`` that is not dlib's own detector.
  public let yawAngle: Double?

  /// Returns the object with its bounds, corners and roll in the coordinates of a view.
  ///
  /// Corresponds to `transformedMetadataObject(for:)`.
  ///
  /// - Parameter geometry: The placement of the image in the view, such as that of `VideoPreview`.
  /// - Returns: The same object in view coordinates.
  public func transformed(by geometry: PreviewGeometry) -> MetadataObject {
    MetadataObject(
      type: type, time: time, duration: duration,
      corners: corners.map(geometry.viewPoint(fromDevicePoint:)), stringValue: stringValue,
      rawBytes: rawBytes, faceID: faceID,
      rollAngle: rollAngle.map { Self.transformed($0, by: geometry) },
      yawAngle: yawAngle.map { geometry.isMirrored ? 0 - $0 : $0 })
  }

  /// Returns a clockwise rotation in degrees as it appears in a view, which may rotate or mirror
  /// the image.
  private static func transformed(_ roll: Double, by geometry: PreviewGeometry) -> Double {
    // A vector from the center of the image, one pixel long, in the direction of the roll.
    let (x, y) = (sin(roll * .pi / 180), -cos(roll * .pi / 180))
    let start = geometry.viewPoint(fromDevicePoint: .center)
    let end = geometry.viewPoint(
      fromDevicePoint: Point(
        x: 0.5 + x / Double(geometry.imageWidth), y: 0.5 + y / Double(geometry.imageHeight)))
    return atan2(end.x - start.x, start.y - end.y) * 180 / .pi
  }

  init(
    type: MetadataObjectType, time: MediaTime, duration: MediaTime, corners: [Point],
    stringValue: String?, rawBytes: [UInt8], faceID: Int64? = nil, rollAngle: Double? = nil,
    yawAngle: Double? = nil
  ) {
    (self.type, self.time, self.duration) = (type, time, duration)
    self.corners = corners
    (self.stringValue, self.rawBytes) = (stringValue, rawBytes)
    (self.faceID, self.rollAngle, self.yawAngle) = (faceID, rollAngle, yawAngle)
    let (left, right) = (corners.map(\.x).min() ?? 0, corners.map(\.x).max() ?? 0)
    let (top, bottom) = (corners.map(\.y).min() ?? 0, corners.map(\.y).max() ?? 0)
    bounds = Rect(x: left, y: top, width: right - left, height: bottom - top)
  }
}

/// The objects that were found in one frame.
public struct MetadataObjectFrame: Hashable, Sendable {
  /// The objects.
  ///
  /// A camera's frames without objects are left out, except the first one after a frame with objects.
  /// The frames of a movie are all reported.
  public let objects: [MetadataObject]
  /// The time of the frame: on the capture clock (`CLOCK_MONOTONIC`) for a camera, in the source for
  /// a movie.
  public let presentationTimeStamp: MediaTime
  /// The number of frames since the first frame of the stream, according to the driver's counter, or
  /// since the first frame of the movie.
  public let frameIndex: Int64
  /// The time of the first frame of the stream on the capture clock; zero for a movie.
  public let streamStart: MediaTime
  /// Whether the frame was searched for new objects of each kind, and not only around known ones.
  ///
  /// The rate of passes decides this: ``MetadataOutput/maximumPassRate`` for a camera. Without such
  /// a limit, each frame of a movie is searched for codes, and each twelfth one for faces too.
  public let isSearched: Bool

  init(
    objects: [MetadataObject], presentationTimeStamp: MediaTime, frameIndex: Int64,
    streamStart: MediaTime, isSearched: Bool = true
  ) {
    (self.objects, self.presentationTimeStamp) = (objects, presentationTimeStamp)
    (self.frameIndex, self.streamStart) = (frameIndex, streamStart)
    self.isSearched = isSearched
  }
}
