// SPDX-License-Identifier: Apache-2.0

import CFaceDetector
import OvercrankMediaCore

/// A face as the detector found it, with edges in pixels.
struct DetectedFace: DetectedObject, Hashable, Sendable {
  var left: Double
  var top: Double
  var right: Double
  var bottom: Double
  /// How far the detector's answer is above its threshold.
  var confidence: Double
  /// The rotation at which the detector saw it, in degrees, clockwise.
  var degrees = 0.0

  var center: PixelPoint { PixelPoint(x: (left + right) / 2, y: (top + bottom) / 2) }
  var area: Double { max(0, right - left) * max(0, bottom - top) }
  /// The longer side.
  var size: Double { max(right - left, bottom - top) }

  /// Whether two faces are the same: the center of one is in the middle of the other.
  func isSame(as other: DetectedFace) -> Bool {
    let (x, y) = (center.x - other.center.x, center.y - other.center.y)
    return (x * x + y * y).squareRoot() < 0.5 * max(size, other.size)
  }

  func moved(byX x: Int, y: Int) -> DetectedFace {
    moved(byX: Double(x), y: Double(y))
  }

  /// Returns the face after a motion.
  func moved(byX x: Double, y: Double) -> DetectedFace {
    var moved = self
    (moved.left, moved.right) = (left + x, right + x)
    (moved.top, moved.bottom) = (top + y, bottom + y)
    return moved
  }

  /// The best faces that are not the same.
  static func distinct(_ faces: [DetectedFace]) -> [DetectedFace] {
    var kept: [DetectedFace] = []
    for face in faces.sorted(by: { $0.confidence > $1.confidence })
    where !kept.contains(where: face.isSame) {
      kept.append(face)
    }
    return kept
  }
}

/// The library with dlib's detector, loaded when faces are first searched for.
enum FaceLibrary {
  private static let loaded = Result { () throws(MediaError) in
    try RecognitionLibrary<overcrank_face_functions>(
      .faceDetector, file: "libovercrank-faces.so.1", symbol: "overcrank_face_functions_1")
  }

  /// Returns the functions of the library.
  ///
  /// - Throws: `MediaError` with `.missingComponent` if it is not installed.
  static func functions() throws(MediaError) -> overcrank_face_functions {
    try loaded.get().functions
  }
}

/// The owner of a detector of dlib: frontal faces by histograms of gradients.
///
/// One thread at a time may use it.
struct FaceDetector: ~Copyable, @unchecked Sendable {
  /// The side in pixels of the smallest face that dlib's own detector finds.
  static let ownSide = 80.0
  /// The most faces of one search.
  static let maximumFaces = 64

  private let library: overcrank_face_functions
  private let detector: OpaquePointer
  /// The side in pixels of the smallest face that is found.
  let side: Double

  /// Creates a detector.
  ///
  /// - Parameter model: The model, or nil for dlib's own.
  /// - Throws: `MediaError` with `.missingComponent` if the library is not installed, or
  ///   `.outOfMemory`.
  init(_ model: FaceModel? = nil) throws(MediaError) {
    let library = try FaceLibrary.functions()
    let created =
      if let model {
        model.numbers.withModel { library.create_with(&$0) }
      } else { library.create() }
    guard let detector = created else {
      throw MediaError(
        .outOfMemory, "no memory for the face detector",
        recovery: "close other programs and try again")
    }
    self.library = library
    self.detector = detector
    side = Double(library.side(detector))
  }

  deinit { library.destroy(detector) }

  /// Finds the faces of an image that is scaled before.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - scale: The size of the searched image, in that of `image`.
  ///   - threshold: The confidence that a face must have. Above 0, nearly all detections are faces.
  /// - Returns: The faces in pixels of `image`, best first; empty if memory is exhausted.
  func faces(in image: LumaImage, scale: Double, threshold: Double = 0) -> [DetectedFace] {
    var found = [overcrank_face](repeating: overcrank_face(), count: Self.maximumFaces)
    let count = found.withUnsafeMutableBufferPointer { found in
      library.find(
        detector, image.base, image.width, image.height, image.bytesPerRow, image.bytesPerPixel,
        scale, threshold, found.baseAddress, found.count)
    }
    return found.prefix(max(0, Int(count))).map { DetectedFace($0, degrees: 0) }
  }

  /// A part of an image: a rectangle that is turned around its center.
  struct Part {
    /// In pixels of the image.
    var center: PixelPoint
    /// The rotation of faces that are upright in the part, clockwise.
    var degrees: Double
    /// The size of the part in that of the rectangle in the image.
    var scale: Double
    var width: Int
    var height: Int
  }

  /// Finds the faces of a turned part of an image.
  ///
  /// - Parameters:
  ///   - image: The image. Outside it, a part shows the pixels of its edges.
  ///   - part: The part.
  ///   - isFrontOnly: Whether only the front of upright faces is searched for.
  ///   - threshold: The confidence that a face must have.
  /// - Returns: The faces in pixels of `image`, best first; empty if memory is exhausted.
  func faces(
    in image: LumaImage, _ part: Part, isFrontOnly: Bool = false, threshold: Double = 0
  ) -> [DetectedFace] {
    guard part.width > 0, part.height > 0 else { return [] }
    var rectangle = overcrank_face_part(
      x: part.center.x, y: part.center.y, angle: part.degrees * .pi / 180, scale: part.scale,
      width: part.width, height: part.height)
    var found = [overcrank_face](repeating: overcrank_face(), count: Self.maximumFaces)
    let count = found.withUnsafeMutableBufferPointer { found in
      library.find_in(
        detector, image.base, image.width, image.height, image.bytesPerRow, image.bytesPerPixel,
        &rectangle, isFrontOnly ? 1 : 0, threshold, found.baseAddress, found.count)
    }
    return found.prefix(max(0, Int(count))).map { DetectedFace($0, degrees: part.degrees) }
  }
}

extension DetectedFace {
  fileprivate init(_ face: overcrank_face, degrees: Double) {
    self.init(
      left: face.left, top: face.top, right: face.right, bottom: face.bottom,
      confidence: face.confidence, degrees: degrees)
  }
}
