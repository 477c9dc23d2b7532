// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankMediaCore
import OvercrankRaster
import Synchronization

/// Finds faces in single images, with the detector of dlib.
///
/// ```swift
/// let reader = try FaceReader()
/// for face in try reader.objects(in: image) { print(face.bounds) }
/// ```
///
/// The detector finds faces that look at the camera, and many faces that are turned away by up to
/// 30 degrees. Faces may be tilted by up to 50 degrees. Any thread may use the reader; concurrent
/// calls wait for each other.
public final class FaceReader: Sendable {
  /// The effort of a search, which decides how small a face may be.
  enum Effort {
    /// Finds faces of at least 130 pixels in an image of 1280x720.
    case quick
    /// Finds faces of at least 60 pixels in an image of 1280x720.
    case fine
    /// Finds faces of at least 40 pixels in an image of 1280x720.
    case exhaustive

    /// The number of pixels to which the image is scaled for the search.
    ///
    /// Searching a megapixel takes 80 ms.
    var pixelCount: Double {
      switch self {
      case .quick: 360_000
      case .fine: 1_600_000
      case .exhaustive: 4_000_000
      }
    }

    /// Returns the factor by which an image is scaled for the search.
    ///
    /// The factor is limited, because more enlargement shows no more details.
    ///
    /// - Parameters:
    ///   - width: The width of the image.
    ///   - height: The height of the image.
    ///   - relativeSide: The smallest face that the detector finds, relative to the smallest face
    ///     of dlib's own detector.
    /// - Returns: The scale factor.
    func scale(width: Int, height: Int, relativeSide: Double = 1) -> Double {
      let pixels = max(1, Double(width) * Double(height))
      let searched = min(pixelCount * relativeSide * relativeSide, Self.maximumPixels)
      return min((searched / pixels).squareRoot(), relativeSide * (self == .quick ? 2 : 4))
    }

    /// The greatest number of pixels that are searched, whatever the smallest face of the detector.
    private static let maximumPixels = 8e6
  }

  /// A search of an image for faces.
  struct Pass: Hashable {
    var effort: Effort
    /// The rotation of the faces that this search finds best, in degrees clockwise.
    var degrees = 0.0
  }

  /// The searches that are made for a single image.
  static let imagePasses = [
    Pass(effort: .exhaustive), Pass(effort: .fine, degrees: tilt),
    Pass(effort: .fine, degrees: -tilt),
  ]
  /// The rotation in degrees of a search for tilted faces, which finds faces within 20 degrees of
  /// this rotation.
  static let tilt = 32.0
  /// The least confidence of a tilted face.
  ///
  /// The limit excludes animals, which are seldom upright and have a lower confidence.
  private static let tiltThreshold = 0.4

  /// The greatest number of faces reported for a frame.
  public static let maximumFaceCount = 10

  private let detector: Mutex<FaceDetector>
  /// The smallest face that the detector finds, relative to the smallest face of dlib's own
  /// detector.
  private let relativeSide: Double

  /// Creates a reader.
  ///
  /// - Parameter model: A detector to use instead of dlib's own detector.
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

  /// Returns the faces of a single image, largest first.
  func read(_ image: LumaImage) -> [TrackedFace] {
    let found = DetectedFace.distinct(Self.imagePasses.flatMap { find(in: image, $0) })
    let faces = TrackedFace.largest(found.map { TrackedFace(id: 0, face: $0) })
    return faces.enumerated().map { index, face in
      TrackedFace(
        id: Int64(index) + 1, face: face.face,
        pose: pose(of: face.face, in: image, near: face.face.degrees))
    }
  }

  /// Finds faces in an image, or in a part of it.
  ///
  /// The scale is that of a search of the whole image.
  func find(in image: LumaImage, _ pass: Pass, area: PixelRect? = nil) -> [DetectedFace] {
    let scale = pass.effort.scale(
      width: image.width, height: image.height, relativeSide: relativeSide)
    return image.search(area ?? image.area) { find(in: $0, pass, scale: scale) }
  }

  private func find(in image: LumaImage, _ pass: Pass, scale: Double) -> [DetectedFace] {
    guard pass.degrees != 0 else {
      return DetectedFace.distinct(detector.withLock { $0.faces(in: image, scale: scale) })
    }
    // The size of the smallest rectangle, rotated by the angle of the pass, that contains the
    // scaled image.
    let (width, height) = (scale * Double(image.width), scale * Double(image.height))
    let (down, across) = (abs(sin(pass.degrees * .pi / 180)), abs(cos(pass.degrees * .pi / 180)))
    let outer = (width * across + height * down, width * down + height * across)
    // For a narrow image, this rectangle is mostly empty, so the search is skipped.
    guard min(width, height) >= relativeSide * FaceDetector.ownSide / 2,
      outer.0 * outer.1 < 4 * width * height
    else { return [] }
    let part = FaceDetector.Part(
      center: Point(x: Double(image.width) / 2, y: Double(image.height) / 2),
      degrees: pass.degrees, scale: scale, width: Int(outer.0), height: Int(outer.1))
    let found = detector.withLock {
      $0.faces(in: image, part, .anySize, threshold: Self.tiltThreshold)
    }
    return DetectedFace.distinct(found.centered(in: image.area))
  }

  /// Searches for a known face around its expected position.
  ///
  /// A face is expected there, so the confidence may be lower than for a new face.
  ///
  /// - Parameters:
  ///   - face: The face at its expected position, which may be wrong by up to the size of the face.
  ///   - image: The image.
  ///   - degrees: The expected rotation of the face, clockwise.
  ///   - isSteady: Whether the motion of the face is known, so that the position is wrong by at most
  ///     half the size of the face.
  /// - Returns: The faces, best first.
  func find(
    _ face: DetectedFace, in image: LumaImage, degrees: Double, isSteady: Bool = false
  ) -> [DetectedFace] {
    let part = part(around: face, degrees, side: isSteady ? 180 : 220)
    let found = detector.withLock { $0.faces(in: image, part, .knownSize, threshold: -0.25) }
    return DetectedFace.distinct(found.centered(in: image.area))
  }

  /// Measures the rotation of a face in the image and about its vertical axis.
  ///
  /// - Parameters:
  ///   - face: The face.
  ///   - image: The image.
  ///   - degrees: The angle at which the search for the roll begins.
  /// - Returns: The roll and the yaw; each nil if it is not clear.
  func pose(of face: DetectedFace, in image: LumaImage, near degrees: Double) -> FacePose {
    let roll = roll(of: face, in: image, near: degrees)
    let part = part(around: face, roll ?? degrees, side: 180)
    let views = detector.withLock { $0.views(in: image, part) }
    return FacePose(roll: roll, yaw: views.flatMap(FaceYaw.estimate))
  }

  /// Measures the rotation of a face in the image.
  ///
  /// - Parameters:
  ///   - face: The face.
  ///   - image: The image.
  ///   - degrees: The angle at which the search begins.
  /// - Returns: The rotation in degrees clockwise; nil if no angle shows the face clearly.
  func roll(of face: DetectedFace, in image: LumaImage, near degrees: Double) -> Double? {
    detector.withLock { detector in
      FaceRoll.estimate(near: degrees) { angle in
        let part = part(around: face, angle, side: 180)
        return detector.faces(in: image, part, .knownSize, isFrontOnly: true, threshold: -1.5)
          .first(where: face.isSame)?.confidence
      }
    }
  }

  /// Returns a square around a face, scaled so that the face is 100 pixels wide.
  ///
  /// The detector finds faces of 80, 96 and 115 pixels.
  ///
  /// For a detector with another smallest face, all these sizes are scaled in proportion.
  private func part(
    around face: DetectedFace, _ degrees: Double, side: Double
  ) -> FaceDetector.Part {
    let pixels = Int(relativeSide * side)
    return FaceDetector.Part(
      center: face.center, degrees: degrees,
      scale: relativeSide * min(4, 100 / max(1, face.size)), width: pixels, height: pixels)
  }
}

/// The rotation of a face.
struct FacePose: Hashable, Sendable {
  /// The rotation in the image in degrees clockwise; nil if unknown.
  var roll: Double?
  /// The rotation about the vertical axis in degrees, positive to the right of the image; nil if
  /// unknown.
  var yaw: Double?
}

/// A face with the id under which it is followed.
struct TrackedFace: Hashable, Sendable {
  var id: Int64
  var face: DetectedFace
  var pose = FacePose()
  /// The rotation of the face in degrees clockwise; nil if unknown.
  var roll: Double? { pose.roll }

  /// Returns the largest faces in descending order, at most as many as are reported.
  static func largest(_ faces: [TrackedFace]) -> [TrackedFace] {
    Array(
      faces.sorted { ($0.face.area, $1.id) > ($1.face.area, $0.id) }
        .prefix(FaceReader.maximumFaceCount))
  }
}

extension MetadataObject {
  /// Makes the metadata object of a face that was found in an image of this size.
  init(_ face: TrackedFace, width: Int, height: Int, at time: MediaTime, duration: MediaTime) {
    func part(_ value: Double, _ size: Int) -> Double { max(0, min(1, value / Double(size))) }
    let (left, right) = (part(face.face.left, width), part(face.face.right, width))
    let (top, bottom) = (part(face.face.top, height), part(face.face.bottom, height))
    self.init(
      type: .face, time: time, duration: duration,
      corners: [(left, top), (right, top), (right, bottom), (left, bottom)].map {
        Point(x: $0.0, y: $0.1)
      }, stringValue: nil, rawBytes: [], faceID: face.id, rollAngle: face.roll,
      yawAngle: face.pose.yaw)
  }
}

/// Decides to which side a face is turned.
///
/// dlib's detector has views of faces that look to the left and to the right. The better one of them
/// fits compared to the other, the more the face is turned.
enum FaceYaw {
  /// The step of the angle in degrees.
  static let step = 45.0
  /// The least difference between the fits of the two views of a face that looks to a side.
  private static let sideways = 1.0
  /// The greatest difference between these fits of a face that looks at the camera.
  private static let straight = 0.6
  /// The mean difference of the fits of faces that look at the camera.
  private static let bias = -0.2
  /// The least fit of the best view of a clear face.
  private static let clear = -0.5

  /// Returns the yaw in degrees, in steps; nil if the direction is not clear.
  static func estimate(_ views: FaceDetector.Views) -> Double? {
    guard max(views.front, views.left, views.right) >= clear else { return nil }
    let difference = views.right - views.left - bias
    if abs(difference) >= sideways { return difference > 0 ? step : -step }
    return abs(difference) <= straight ? 0 : nil
  }
}

/// Measures how far a face is rotated in an image.
///
/// The detector's score for the front of a face is highest if the image is rotated until the face
/// is upright. The result is the mean of the best angle and its two neighbors, weighted by their
/// scores.
enum FaceRoll {
  /// The distance in degrees from one tried angle to the next.
  static let step = 20.0
  /// The greatest angle that is tried, in degrees.
  static let limit = 70.0
  /// The least detector score that counts as a face.
  static let minimumScore = -1.0
  /// An angle whose score is lower than the best score by this much has no weight.
  private static let drop = 1.2

  /// Searches for the roll of a face.
  ///
  /// - Parameters:
  ///   - degrees: The angle at which the search begins.
  ///   - score: Returns the detector's score at an angle; nil if no face is found.
  /// - Returns: The roll in degrees clockwise; nil if no angle shows a face.
  static func estimate(near degrees: Double, _ score: (Double) -> Double?) -> Double? {
    let start = max(step - limit, min(limit - step, degrees))
    // The scores by number of steps from the start angle.
    var scores: [Int: Double] = [:]
    var best = 0
    while true {
      for number in best - 1...best + 1 where scores[number] == nil {
        let angle = start + step * Double(number)
        scores[number] = (abs(angle) <= limit ? score(angle) : nil) ?? -.infinity
      }
      guard let top = scores.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }),
        top.value >= minimumScore
      else { return nil }
      if top.key == best { break }
      best = top.key
    }
    let weights = (best - 1...best + 1).map {
      max(0, (scores[$0] ?? -.infinity) - (scores[best] ?? 0) + drop)
    }
    let mean = (weights[2] - weights[0]) / (weights[0] + weights[1] + weights[2])
    return start + step * (Double(best) + mean)
  }
}
