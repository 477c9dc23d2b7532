// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

/// Finds faces in single images, with the detector of dlib.
///
/// ```swift
/// let reader = try FaceReader()
/// for face in try reader.objects(in: image) { print(face.bounds) }
/// ```
///
/// The detector finds faces that look at the camera, and many that are turned by up to 30 degrees. Any
/// thread may use it; concurrent calls wait for each other.
public final class FaceReader: Sendable {
  /// How small the faces may be that a pass over an image finds.
  enum Effort {
    /// For an image of 1280x720, 130 pixels.
    case quick
    /// For an image of 1280x720, 60 pixels.
    case fine
    /// For an image of 1280x720, 40 pixels.
    case exhaustive

    /// The pixels of the image that is searched.
    ///
    /// A megapixel takes 80 ms.
    var pixelCount: Double {
      switch self {
      case .quick: 360_000
      case .fine: 1_600_000
      case .exhaustive: 4_000_000
      }
    }

    /// The scale at which an image is searched.
    ///
    /// Enlarging further shows no more details.
    func scale(width: Int, height: Int) -> Double {
      let pixels = max(1, Double(width) * Double(height))
      return min((pixelCount / pixels).squareRoot(), self == .quick ? 2 : 4)
    }
  }

  /// The most faces of a frame that are reported.
  public static let maximumFaceCount = 10

  private let detector: Mutex<FaceDetector>

  /// Creates a reader.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` without memory.
  public init() throws(MediaError) {
    guard let detector = FaceDetector() else {
      throw MediaError(
        .outOfMemory, "no memory for the face detector",
        recovery: "close other programs and try again")
    }
    self.detector = Mutex(detector)
  }

  /// Finds the faces of an image.
  ///
  /// Takes 0.3 s for an image of 1280x720.
  ///
  /// - Parameter image: The image, in any pixel format that libswscale can read.
  /// - Returns: At most 10 faces, largest first, with coordinates from 0 to 1, the time 0, and ids that
  ///   count from 1.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that cannot be converted to
  ///   gray.
  public func objects(in image: PixelBuffer) throws(MediaError) -> [MetadataObject] {
    guard image.width > 0, image.height > 0 else { return [] }
    return try image.withLuma { luma in
      read(luma).map {
        MetadataObject($0, width: luma.width, height: luma.height, at: .zero, duration: .zero)
      }
    }
  }

  /// The faces of a single image, largest first.
  func read(_ image: LumaImage) -> [TrackedFace] {
    let faces = find(in: image, .exhaustive).map { TrackedFace(id: 0, face: $0) }
    return TrackedFace.largest(faces).enumerated().map {
      TrackedFace(id: Int64($0.offset) + 1, face: $0.element.face)
    }
  }

  /// Finds faces in a whole image.
  func find(in image: LumaImage, _ effort: Effort) -> [DetectedFace] {
    let scale = effort.scale(width: image.width, height: image.height)
    return DetectedFace.distinct(detector.withLock { $0.faces(in: image, scale: scale) })
  }

  /// Finds faces of a known size in a part of an image.
  ///
  /// There is a face, so it may be less similar to one than a new one must be.
  func find(in image: LumaImage, ofSize size: Double) -> [DetectedFace] {
    // The detector's sizes are 80, 96 and 115 pixels.
    let scale = min(4, 100 / max(1, size))
    return DetectedFace.distinct(
      detector.withLock { $0.faces(in: image, scale: scale, threshold: -0.25) })
  }
}

/// A face with its identity.
struct TrackedFace: Hashable, Sendable {
  var id: Int64
  var face: DetectedFace

  /// The largest faces that are reported, in descending order.
  static func largest(_ faces: [TrackedFace]) -> [TrackedFace] {
    Array(
      faces.sorted { ($0.face.area, $1.id) > ($1.face.area, $0.id) }
        .prefix(FaceReader.maximumFaceCount))
  }
}

extension MetadataObject {
  /// The object of a face that was found in an image of this size.
  init(_ face: TrackedFace, width: Int, height: Int, at time: MediaTime, duration: MediaTime) {
    func part(_ value: Double, _ size: Int) -> Double { max(0, min(1, value / Double(size))) }
    let (left, right) = (part(face.face.left, width), part(face.face.right, width))
    let (top, bottom) = (part(face.face.top, height), part(face.face.bottom, height))
    self.init(
      type: .face, time: time, duration: duration,
      corners: [(left, top), (right, top), (right, bottom), (left, bottom)].map {
        PreviewPoint(x: $0.0, y: $0.1)
      }, stringValue: nil, rawBytes: [], faceID: face.id)
  }
}
