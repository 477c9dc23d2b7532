// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankCapture
public import OvercrankMediaCore

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
  /// The smallest upright rectangle with all ``corners``.
  ///
  /// In device coordinates: from 0 at the left and upper edge of the captured frame to 1.
  public let bounds: PreviewRect
  /// The corners in device coordinates, in the order of the code's own upper left, upper right,
  /// lower right and lower left corner.
  ///
  /// For codes of bars, they enclose the lines that were read. The bars may be longer. For faces, those
  /// of ``bounds``.
  public let corners: [PreviewPoint]
  /// The text of the code, or nil if its bytes are no text.
  ///
  /// It comes from whoever made the code: it may be long, and have control characters.
  public let stringValue: String?
  /// The bytes that the code contains.
  public let rawBytes: [UInt8]
  /// The id of a face, or nil for a code.
  ///
  /// It stays the same while the face is followed, and for a second without it. Another face of the
  /// same search never gets it.
  public let faceID: Int64?
  /// Whether the rotation of a face in the image is known.
  public var hasRollAngle: Bool { rollAngle != nil }
  /// The rotation of a face in the image in degrees, clockwise; nil if it is not known.
  ///
  /// From -70 to 70; the median error is below 4 degrees up to 45 degrees. While a face is followed, it is
  /// measured up to ten times a second.
  public let rollAngle: Double?
  /// Whether the direction of a face is known.
  public var hasYawAngle: Bool { yawAngle != nil }
  /// The rotation of a face about its vertical axis in degrees, positive to the right of the image;
  /// nil if it is not known.
  ///
  /// Always nil in this version, because the detector does not measure it.
  public let yawAngle: Double?

  /// Returns the object with its bounds, its corners and its roll in a view.
  ///
  /// Corresponds to `transformedMetadataObject(for:)`.
  ///
  /// - Parameter geometry: The image in the view, such as that of `VideoPreview`.
  /// - Returns: The same object in view coordinates.
  public func transformed(by geometry: PreviewGeometry) -> MetadataObject {
    MetadataObject(
      type: type, time: time, duration: duration,
      corners: corners.map {
        geometry.viewPoint(fromDevicePoint: PointOfInterest(x: $0.x, y: $0.y))
      }, stringValue: stringValue, rawBytes: rawBytes, faceID: faceID,
      rollAngle: rollAngle.map { Self.transformed($0, by: geometry) }, yawAngle: yawAngle)
  }

  /// A clockwise rotation in degrees as a view shows it, which may be rotated or mirrored.
  private static func transformed(_ roll: Double, by geometry: PreviewGeometry) -> Double {
    // From the center of the image, as far as a pixel.
    let (x, y) = (sin(roll * .pi / 180), -cos(roll * .pi / 180))
    let start = geometry.viewPoint(fromDevicePoint: .center)
    let end = geometry.viewPoint(
      fromDevicePoint: PointOfInterest(
        x: 0.5 + x / Double(geometry.imageWidth), y: 0.5 + y / Double(geometry.imageHeight)))
    return atan2(end.x - start.x, start.y - end.y) * 180 / .pi
  }

  init(
    type: MetadataObjectType, time: MediaTime, duration: MediaTime, corners: [PreviewPoint],
    stringValue: String?, rawBytes: [UInt8], faceID: Int64? = nil, rollAngle: Double? = nil,
    yawAngle: Double? = nil
  ) {
    (self.type, self.time, self.duration) = (type, time, duration)
    self.corners = corners
    (self.stringValue, self.rawBytes) = (stringValue, rawBytes)
    (self.faceID, self.rollAngle, self.yawAngle) = (faceID, rollAngle, yawAngle)
    let (left, right) = (corners.map(\.x).min() ?? 0, corners.map(\.x).max() ?? 0)
    let (top, bottom) = (corners.map(\.y).min() ?? 0, corners.map(\.y).max() ?? 0)
    bounds = PreviewRect(x: left, y: top, width: right - left, height: bottom - top)
  }
}

/// The objects that were found in one frame.
public struct MetadataObjectFrame: Hashable, Sendable {
  /// The objects, or none if the frame before had some.
  public let objects: [MetadataObject]
  /// The time of the frame on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The number of frames since the first of the stream, by the driver's counter.
  public let frameIndex: Int64
  /// The time of the first frame of the stream on the capture clock.
  public let streamStart: MediaTime
}
