// SPDX-License-Identifier: Apache-2.0

import CFaceDetector
import Glibc
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// The file of a face detector to use instead of the detector in the library.
///
/// The file is a dlib object detector based on histograms of oriented gradients. dlib's Python
/// function `train_simple_object_detector` and its example `fhog_object_detector_ex` write such
/// files. A detector of other things, such as the heads of animals, may be used too: what it finds
/// is reported as faces. Neural networks, such as those of YuNet or BlazeFace, are refused.
///
/// ```swift
/// let model = try FaceModel(path: "heads.svm")
/// let faces = try FaceReader(model: model).objects(in: image)
/// ```
public struct FaceModel: Hashable, Sendable {
  /// The path of the file of the face detector.
  public let path: String
  let numbers: Numbers

  /// The parameters of a detector.
  struct Numbers: Hashable, Sendable {
    /// The sizes are in pixels, but the padding is in cells.
    var (windowWidth, windowHeight, cellSize, padding) = (0, 0, 0, 0)
    var (levelCount, layerWidth, layerHeight) = (0, 0, 0)
    var (overlap, covered) = (0.0, 0.0)
    /// The weights of all views; after the weights of each view follows its threshold.
    var weights: [Double] = []
    var viewCount = 0
  }

  /// The size of the largest file that is read, in bytes; dlib's own detector has 0.2 MB.
  static let maximumBytes = 16 << 20

  /// Reads a model.
  ///
  /// - Parameter path: The path of the file. Bytes after the first 16 MiB are ignored. All views of
  ///   the detector together have at most 262 144 weights; dlib's own detector has 15 505.
  /// - Throws: `MediaError` with `.fileNotFound`, `.noPermission` or `.readFailed`; `.invalidData` for a
  ///   file that is empty, ends too early, or is no detector that dlib trained; `.missingComponent` if the
  ///   library with the detector is not installed.
  public init(path: String) throws(MediaError) {
    self.path = path
    let bytes = try Self.contents(of: path)
    guard !bytes.isEmpty else { throw Self.error(.invalidData, path, "the file is empty") }
    var file = DlibArchive(bytes[...])
    let numbers: Numbers
    do throws(DlibArchive.Problem) {
      numbers = try file.objectDetector()
    } catch {
      throw Self.error(
        .invalidData, path,
        error == .truncated
          ? "the file is truncated" : "the file is not an object detector of dlib")
    }
    let library = try FaceLibrary.functions()
    guard numbers.withModel({ library.is_valid(&$0) != 0 }) else {
      throw Self.error(.invalidData, path, "the numbers in the file do not form a detector")
    }
    self.numbers = numbers
  }

  private static func contents(of path: String) throws(MediaError) -> [UInt8] {
    // Opening a pipe would block until a program writes to it.
    if let kind = SystemFiles.kind(of: path), kind != .regular {
      throw error(.invalidData, path, "it is not a regular file")
    }
    var isShort = false
    do throws(CallFailure) {
      let file = try RandomAccessFile(opening: path, forWriting: false)
      let count = file.count()
      if count <= Int64(maximumBytes) {
        let bytes = file.read(Int(count), at: 0)
        guard bytes.count < count else { return bytes }
        isShort = true
      }
    } catch {
      throw MediaError(
        error, at: stage, message: "cannot load the face model \(path): \(error.reason)")
    }
    guard !isShort else { throw error(.readFailed, path, "the file could not be read completely") }
    throw error(.invalidData, path, "the file is larger than 16 MiB")
  }

  private static let stage = CallStage(
    [
      .notFound: .init(.fileNotFound, recovery), .noPermission: .init(.noPermission, recovery),
    ], other: .init(.readFailed, recovery))

  private static func error(
    _ code: MediaError.Code, _ path: String, _ why: String
  ) -> MediaError {
    MediaError(
      code, "cannot load the face model \(path): \(why)",
      recovery: recovery)
  }

  private static let recovery: Recovery =
    "choose a detector that was trained with dlib, or leave out the model"
}

extension FaceModel.Numbers {
  /// Calls a closure with the parameters in the C structure that the detector's library takes.
  func withModel<Result>(_ body: (inout overcrank_face_model) -> Result) -> Result {
    weights.withUnsafeBufferPointer { weights in
      var model = overcrank_face_model(
        window_width: windowWidth, window_height: windowHeight, cell_size: cellSize,
        padding: padding, layer_width: layerWidth, layer_height: layerHeight,
        level_count: levelCount, overlap: overlap, covered: covered,
        weights: weights.baseAddress, view_count: viewCount,
        weight_count: viewCount > 0 ? weights.count / viewCount : 0)
      return body(&model)
    }
  }
}

/// Reads the serialization format of dlib: a sequence of numbers, each in as few bytes as possible.
///
/// The first byte of an integer is the count of the bytes that follow, from 1 to 8, plus 0x80 for a
/// negative number. These bytes are the magnitude in little-endian order. A real number is stored
/// as two integers: a mantissa and an exponent of 2.
struct DlibArchive {
  /// The reason why a file could not be read.
  enum Problem: Error {
    /// The file ends within a number, or before an expected number.
    case truncated
    /// The file contains something else than expected.
    case foreign
  }

  /// The least exponent that marks an infinite number or NaN.
  private static let minimumSpecialExponent: Int64 = 32_000
  /// The number of feature planes that dlib computes for each cell.
  private static let planeCount = 31

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  /// Reads an integer.
  mutating func integer() throws(Problem) -> Int64 {
    guard let head = rest.popFirst() else { throw .truncated }
    let count = Int(head & 0x0F)
    guard head & 0x70 == 0, (1...8).contains(count) else { throw .foreign }
    guard rest.count >= count else { throw .truncated }
    var magnitude: UInt64 = 0
    for byte in rest.prefix(count).reversed() { magnitude = magnitude << 8 | UInt64(byte) }
    rest = rest.dropFirst(count)
    guard let value = Int64(exactly: magnitude) else { throw .foreign }
    return head & 0x80 == 0 ? value : -value
  }

  /// Reads a count or a size, which is an integer from 0 to `most`.
  mutating func count(upTo most: Int) throws(Problem) -> Int {
    let value = try integer()
    guard (0...Int64(most)).contains(value) else { throw .foreign }
    return Int(value)
  }

  /// Reads a finite real number.
  mutating func real() throws(Problem) -> Double {
    let (mantissa, exponent) = (try integer(), try integer())
    guard exponent.magnitude < Self.minimumSpecialExponent else { throw .foreign }
    let value = scalbn(Double(mantissa), Int32(exponent))
    guard value.isFinite else { throw .foreign }
    return value
  }

  /// Reads an `object_detector<scan_fhog_pyramid<pyramid_down<6>>>`.
  ///
  /// Values are checked only as far as reading them requires.
  mutating func objectDetector() throws(Problem) -> FaceModel.Numbers {
    // The versions of the detector and of its scanner, then the scanner's list of images, which
    // must be empty.
    guard try integer() == 2, try integer() == 1 else { throw .foreign }
    guard try integer() >= 0, try integer() == 0 else { throw .foreign }
    var numbers = FaceModel.Numbers()
    let most = 1 << 16
    numbers.cellSize = try count(upTo: most)
    numbers.padding = try count(upTo: most)
    numbers.windowWidth = try count(upTo: most)
    numbers.windowHeight = try count(upTo: most)
    numbers.levelCount = try count(upTo: .max)
    numbers.layerWidth = try count(upTo: most)
    numbers.layerHeight = try count(upTo: most)
    // Skips a value that only training needs.
    _ = try real()
    let weightCount = try count(upTo: FaceModel.maximumBytes)
    guard weightCount.isMultiple(of: Self.planeCount) else { throw .foreign }
    numbers.overlap = try real()
    numbers.covered = try real()
    numbers.viewCount = try count(upTo: most)
    for _ in 0..<numbers.viewCount {
      // dlib stores the row and column counts of a matrix as negative numbers.
      guard try integer() == -Int64(weightCount + 1), try integer() == -1 else { throw .foreign }
      for _ in 0...weightCount { numbers.weights.append(try real()) }
    }
    return numbers
  }
}
