// SPDX-License-Identifier: Apache-2.0

import CFaceDetector
import OvercrankMediaCore
import OvercrankRaster

/// A face that the detector found, with edges in pixels.
struct DetectedFace: DetectedObject, Hashable, Sendable {
  var left: Double
  var top: Double
  var right: Double
  var bottom: Double
  /// The detector's score minus its threshold.
  var confidence: Double
  /// The rotation at which the detector found the face, in degrees clockwise.
  var degrees = 0.0

  var center: Point { Point(x: (left + right) / 2, y: (top + bottom) / 2) }
  var area: Double { max(0, right - left) * max(0, bottom - top) }
  /// The longer side of the face in pixels.
  var size: Double { max(right - left, bottom - top) }

  /// Whether two detections are the same face: their centers are closer than half the larger size.
  func isSame(as other: DetectedFace) -> Bool {
    let (x, y) = (center.x - other.center.x, center.y - other.center.y)
    return (x * x + y * y).squareRoot() < 0.5 * max(size, other.size)
  }

  func moved(byX x: Int, y: Int) -> DetectedFace {
    moved(byX: Double(x), y: Double(y))
  }

  /// Returns the face moved by a distance in pixels.
  func moved(byX x: Double, y: Double) -> DetectedFace {
    var moved = self
    (moved.left, moved.right) = (left + x, right + x)
    (moved.top, moved.bottom) = (top + y, bottom + y)
    return moved
  }

  /// Returns the faces without duplicates; of each face, the detection with the highest confidence.
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
      .faceDetector, file: "libovercrank-faces.so.1", symbol: "overcrank_face_functions_3")
  }

  /// Returns the functions of the library.
  ///
  /// - Throws: `MediaError` with `.missingComponent` if it is not installed.
  static func functions() throws(MediaError) -> overcrank_face_functions {
    try loaded.get().functions
  }
}

/// Owns a face detector of dlib, which finds frontal faces by histograms of oriented gradients.
///
/// One thread at a time may use it.
struct FaceDetector: ~Copyable, @unchecked Sendable {
  /// The side in pixels of the smallest face that dlib's own detector finds.
  static let ownSide = 80.0
  /// The greatest number of faces that one search returns.
  static let maximumFaces = 64

  private let library: overcrank_face_functions
  private let detector: OpaquePointer
  /// The side in pixels of the smallest face that this detector finds.
  let side: Double

  /// Creates a detector.
  ///
  /// - Parameter model: The model; nil for dlib's own model.
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
    (self.library, self.detector) = (library, detector)
    side = Double(library.side(detector))
  }

  deinit { library.destroy(detector) }

  /// Scales an image and finds the faces in it.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - scale: The factor by which `image` is scaled before the search.
  ///   - threshold: The least confidence of a face. Above 0, nearly all detections are faces.
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

  /// A rotated rectangle of an image, to be searched for faces.
  struct Part {
    /// The center of the rectangle, in pixels of the image.
    var center: Point
    /// The clockwise rotation in the whole image, in degrees, of a face that is upright in this
    /// rectangle.
    var degrees: Double
    /// The factor from pixels of the image to pixels of the part.
    var scale: Double
    var width: Int
    var height: Int
  }

  /// The known properties of the faces in a part of an image.
  enum Expectation {
    /// Faces of any size from the smallest one that the detector finds.
    case anySize
    /// A face of up to 1.44 times that size. If it looks at the camera, the views from the side are
    /// left out.
    case knownSize
  }

  /// Finds the faces in a rotated part of an image.
  ///
  /// - Parameters:
  ///   - image: The image. A part that extends beyond it is filled with the pixels at the edges.
  ///   - part: The part.
  ///   - expectation: The known properties of the faces.
  ///   - isFrontOnly: Whether only upright faces seen from the front are searched for.
  ///   - threshold: The least confidence of a face.
  /// - Returns: The faces in pixels of `image`, best first; empty if memory is exhausted.
  func faces(
    in image: LumaImage, _ part: Part, _ expectation: Expectation, isFrontOnly: Bool = false,
    threshold: Double
  ) -> [DetectedFace] {
    guard part.width > 0, part.height > 0 else { return [] }
    var rectangle = part.rectangle
    let find =
      switch expectation {
      case .anySize: library.find_in
      case .knownSize: library.find_known
      }
    var found = [overcrank_face](repeating: overcrank_face(), count: Self.maximumFaces)
    let count = found.withUnsafeMutableBufferPointer { found in
      find(
        detector, image.base, image.width, image.height, image.bytesPerRow, image.bytesPerPixel,
        &rectangle, isFrontOnly ? 1 : 0, threshold, found.baseAddress, found.count)
    }
    return found.prefix(max(0, Int(count))).map { DetectedFace($0, degrees: part.degrees) }
  }

  /// How well the views of a face fit: 0 is the threshold of each view.
  struct Views {
    let front: Double
    /// The view of a face that looks to the left of the image.
    let left: Double
    /// The view of a face that looks to the right of the image.
    let right: Double
  }

  /// Measures how well the views of a face fit in the middle of a part of an image.
  ///
  /// - Returns: The views; nil for a model with other views than dlib's own, or if memory is
  ///   exhausted.
  func views(in image: LumaImage, _ part: Part) -> Views? {
    guard part.width > 0, part.height > 0 else { return nil }
    var rectangle = part.rectangle
    var fits = [Double](repeating: 0, count: 3)
    let count = library.views(
      detector, image.base, image.width, image.height, image.bytesPerRow, image.bytesPerPixel,
      &rectangle, &fits, fits.count)
    return count < fits.count ? nil : Views(front: fits[0], left: fits[1], right: fits[2])
  }
}

extension FaceDetector.Part {
  fileprivate var rectangle: overcrank_face_part {
    overcrank_face_part(
      x: center.x, y: center.y, angle: degrees * .pi / 180, scale: scale, width: width,
      height: height)
  }
}

extension DetectedFace {
  fileprivate init(_ face: overcrank_face, degrees: Double) {
    self.init(
      left: face.left, top: face.top, right: face.right, bottom: face.bottom,
      confidence: face.confidence, degrees: degrees)
  }
}
