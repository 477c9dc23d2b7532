// SPDX-License-Identifier: Apache-2.0

import Glibc
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
/// The detector finds faces that look at the camera, and many that are turned by up to 30 degrees. Their
/// roll may be up to 50 degrees. Any thread may use it; concurrent calls wait for each other.
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
    ///
    /// - Parameters:
    ///   - width: The width of the image.
    ///   - height: The height of the image.
    ///   - relativeSide: The smallest face that the detector finds, in that of dlib's own detector.
    /// - Returns: The size of the searched image, in that of the image.
    func scale(width: Int, height: Int, relativeSide: Double = 1) -> Double {
      let pixels = max(1, Double(width) * Double(height))
      let searched = min(pixelCount * relativeSide * relativeSide, Self.maximumPixels)
      return min((searched / pixels).squareRoot(), relativeSide * (self == .quick ? 2 : 4))
    }

    /// The most pixels that are searched, whatever the detector's size.
    private static let maximumPixels = 8e6
  }

  /// A search of a whole image.
  struct Pass: Hashable {
    var effort: Effort
    /// The rotation of the faces that are found best, in degrees, clockwise.
    var degrees = 0.0
  }

  /// The searches of a single image.
  static let imagePasses = [
    Pass(effort: .exhaustive), Pass(effort: .fine, degrees: tilt),
    Pass(effort: .fine, degrees: -tilt),
  ]
  /// The rotation of passes for tilted faces; each pass finds faces that are off by 20 degrees.
  static let tilt = 32.0
  /// The confidence that tilted faces must have: those of animals, which are seldom upright, have less.
  private static let tiltThreshold = 0.4

  /// The most faces of a frame that are reported.
  public static let maximumFaceCount = 10

  private let detector: Mutex<FaceDetector>
  /// The smallest face that the detector finds, in that of dlib's own detector.
  private let relativeSide: Double

  /// Creates a reader.
  ///
  /// - Parameter model: A detector to be used instead of dlib's own, which is in the library.
  /// - Throws: `MediaError` with `.missingComponent` if the library with the detector is not installed,
  ///   or `.outOfMemory`.
  public init(model: FaceModel? = nil) throws(MediaError) {
    let detector = try FaceDetector(model)
    relativeSide = detector.side / FaceDetector.ownSide
    self.detector = Mutex(detector)
  }

  /// Finds the faces of an image.
  ///
  /// Takes 0.9 s for an image of 1280x720.
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
    let found = DetectedFace.distinct(Self.imagePasses.flatMap { find(in: image, $0) })
    let faces = TrackedFace.largest(found.map { TrackedFace(id: 0, face: $0) })
    return faces.enumerated().map { index, face in
      TrackedFace(
        id: Int64(index) + 1, face: face.face,
        roll: roll(of: face.face, in: image, near: face.face.degrees))
    }
  }

  /// Finds faces in a whole image.
  func find(in image: LumaImage, _ pass: Pass) -> [DetectedFace] {
    let scale = pass.effort.scale(
      width: image.width, height: image.height, relativeSide: relativeSide)
    guard pass.degrees != 0 else {
      return DetectedFace.distinct(detector.withLock { $0.faces(in: image, scale: scale) })
    }
    // The smallest rectangle with the image in it.
    let (width, height) = (scale * Double(image.width), scale * Double(image.height))
    let (down, across) = (abs(sin(pass.degrees * .pi / 180)), abs(cos(pass.degrees * .pi / 180)))
    let outer = (width * across + height * down, width * down + height * across)
    // That of a narrow image is mostly empty.
    guard min(width, height) >= relativeSide * FaceDetector.ownSide / 2,
      outer.0 * outer.1 < 4 * width * height
    else { return [] }
    let part = FaceDetector.Part(
      center: PixelPoint(x: Double(image.width) / 2, y: Double(image.height) / 2),
      degrees: pass.degrees, scale: scale, width: Int(outer.0), height: Int(outer.1))
    let found = detector.withLock { $0.faces(in: image, part, threshold: Self.tiltThreshold) }
    return DetectedFace.distinct(found.centered(in: image.area))
  }

  /// Finds a face again, around its expected position.
  ///
  /// There is a face, so it may be less similar to one than a new one must be.
  ///
  /// - Parameters:
  ///   - face: The face where it is expected; it may be off by its size.
  ///   - image: The image.
  ///   - degrees: Its rotation, clockwise.
  /// - Returns: The faces, best first.
  func find(_ face: DetectedFace, in image: LumaImage, degrees: Double) -> [DetectedFace] {
    let part = part(around: face, degrees, side: 220)
    let found = detector.withLock { $0.faces(in: image, part, threshold: -0.25) }
    return DetectedFace.distinct(found.centered(in: image.area))
  }

  /// Measures the rotation of a face.
  ///
  /// - Parameters:
  ///   - face: The face.
  ///   - image: The image.
  ///   - degrees: The angle with which the search begins.
  /// - Returns: The rotation in degrees, clockwise, or nil if it is not clear.
  func roll(of face: DetectedFace, in image: LumaImage, near degrees: Double) -> Double? {
    detector.withLock { detector in
      FaceRoll.estimate(near: degrees) { angle in
        let part = part(around: face, angle, side: 180)
        return detector.faces(in: image, part, isFrontOnly: true, threshold: -1.5)
          .first(where: face.isSame)?.confidence
      }
    }
  }

  /// A square around a face, which has 100 pixels in it; the detector's sizes are 80, 96 and 115.
  ///
  /// For a detector of other sizes, all of these are in that proportion.
  private func part(
    around face: DetectedFace, _ degrees: Double, side: Double
  ) -> FaceDetector.Part {
    let pixels = Int(relativeSide * side)
    return FaceDetector.Part(
      center: face.center, degrees: degrees,
      scale: relativeSide * min(4, 100 / max(1, face.size)), width: pixels, height: pixels)
  }
}

/// A face with its identity.
struct TrackedFace: Hashable, Sendable {
  var id: Int64
  var face: DetectedFace
  /// The rotation in degrees, clockwise, or nil if it is not known.
  var roll: Double?

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
      }, stringValue: nil, rawBytes: [], faceID: face.id, rollAngle: face.roll)
  }
}
