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
