// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Face detectors that are read from model files.
struct FaceModelTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The error of loading a file as a face model; nil if it loads.
  private func refusal(_ path: String) -> MediaError? {
    do throws(MediaError) {
      _ = try FaceModel(path: path)
      return nil
    } catch { return error }
  }

  @Test func `A loaded dlib detector finds the same faces as the default`() async throws {
    let model = try FaceModel(path: FaceImages.model)
    #expect(model.numbers.viewCount == 5 && model.numbers.weights.count == 5 * 3_101)
    let (own, other) = (try FaceReader(), try FaceReader(model: model))
    let image = try await FaceImages().image("2008_001009")
    let faces = try image.withLuma { own.read($0) }
    #expect(faces.count == 2)
    #expect(try image.withLuma { other.read($0) } == faces)
  }

  @Test func `Finds faces with a face model of a larger detection window`() async throws {
    var numbers = try FaceModel(path: FaceImages.model).numbers
    numbers.weights.removeSubrange(3_101...)
    numbers.viewCount = 1
    // The detection window has the same number of cells, and each cell is twice as large.
    numbers.cellSize = 16
    (numbers.windowWidth, numbers.windowHeight) = (160, 160)
    // Trailing bytes are ignored: the Python module stores two more numbers.
    let stored = StoredDetector.bytes(numbers) + [1, 1, 1, 0]
    let model = try FaceModel(path: try scratch.write(stored, as: "large.svm"))
    #expect(model.numbers == numbers)
    let reader = try FaceReader(model: model)
    let image = try await FaceImages().image("2008_001009")
    let faces = try image.withLuma { reader.read($0) }
    for box in image.faces {
      let face = try #require(faces.first { $0.face.overlap(with: box) >= 0.3 }, "\(faces)")
      #expect(abs((face.roll ?? 90) - box.roll) < 12, "\(face)")
    }
    #expect(faces.count == image.faces.count)
  }

  @Test func `The error for an invalid face model file names the file`() throws {
    let stored = try bytes(of: FaceImages.model)
    let cases: [(String, [UInt8], String)] = [
      ("empty.svm", [], "is empty"), ("one.svm", [1], "is truncated"),
      ("half.svm", Array(stored.prefix(stored.count / 2)), "is truncated"),
      ("last.svm", Array(stored.dropLast()), "is truncated"),
      ("text.svm", Array("no model at all".utf8), "not an object detector"),
      ("zeros.svm", [UInt8](repeating: 0, count: 4_096), "not an object detector"),
      ("model.tflite", [0x1C, 0, 0, 0] + Array("TFL3".utf8), "not an object detector"),
      // The weights belong to a detection window of another size.
      (
        "window.svm", Array(stored[..<12]) + [1, 0x48] + Array(stored[14...]),
        "do not form a detector"
      ),
    ]
    for (name, contents, reason) in cases {
      let path = try scratch.write(contents, as: name)
      let error = try #require(refusal(path), "\(name)")
      #expect(error.code == .invalidData && error.message.contains(path), "\(error)")
      #expect(error.message.contains(reason), "\(name): \(error)")
      #expect(error.recovery != nil)
    }
    #expect(refusal(scratch.file("missing.svm"))?.code == .fileNotFound)
    #expect(refusal(scratch.path)?.code == .invalidData)
    // The stated file size is one page, but the file has only a few bytes.
    let short = "/sys/devices/system/cpu/online"
    if FileManager.default.fileExists(atPath: short) {
      #expect(refusal(short)?.code == .readFailed)
    }
    try #require(mkfifo(scratch.file("pipe"), 0o600) == 0)
    #expect(refusal(scratch.file("pipe"))?.code == .invalidData)
    let large = scratch.file("large.svm")
    _ = try scratch.write([], as: "large.svm")
    try #require(truncate(large, off_t(FaceModel.maximumBytes) + 1) == 0)
    #expect(refusal(large)?.message.contains("16 MiB") == true)
  }

  @Test func `Limits the number of faces and refuses large face models`() throws {
    func write(cells: Int, viewCount: Int) throws -> String {
      var numbers = FaceModel.Numbers()
      (numbers.cellSize, numbers.levelCount) = (4, 1_000)
      (numbers.windowWidth, numbers.windowHeight) = (4 * cells, 4 * cells)
      (numbers.layerWidth, numbers.layerHeight, numbers.viewCount) = (8, 8, viewCount)
      (numbers.overlap, numbers.covered) = (1, 1)
      // A view of the detector has weights for 31 feature planes, and then a threshold.
      let view = [Double](repeating: 1e-3, count: 31 * cells * cells) + [-1e6]
      numbers.weights = (0..<viewCount).flatMap { _ in view }
      return try scratch.write(StoredDetector.bytes(numbers), as: "\(cells)x\(viewCount).svm")
    }
    // The face models with two and three views have 254 018 and 381 027 weights.
    #expect(refusal(try write(cells: 64, viewCount: 2)) == nil)
    #expect(refusal(try write(cells: 64, viewCount: 3))?.code == .invalidData)
    let model = try FaceModel(path: write(cells: 20, viewCount: 16))
    let reader = try FaceReader(model: model)
    let pixels = [UInt8](repeating: 128, count: 320 * 240)
    let found = pixels.withUnsafeBufferPointer { pixels in
      pixels.baseAddress.map { base in
        reader.read(
          LumaImage(base: base, width: 320, height: 240, bytesPerRow: 320, bytesPerPixel: 1))
      }
    }
    #expect(try #require(found).count <= FaceDetector.maximumFaces)
  }

  @Test func `A damaged face model never crashes the search`() async throws {
    let stored = try bytes(of: FaceImages.model)
    let numbers = try FaceModel(path: FaceImages.model).numbers
    let image = try await FaceImages().image("2008_001009")
    var random = SeededGenerator(seed: 27)
    var (refused, searched) = (0, 0)
    let count = RunSize.cases(120, full: 3_000)
    for number in 0..<count {
      let damaged =
        number.isMultiple(of: 2)
        ? StoredDetector.bytes(numbers.damaged(&random)) : StoredDetector.damaged(stored, &random)
      let path = try scratch.write(damaged, as: "damaged.svm")
      do throws(MediaError) {
        let reader = try FaceReader(model: FaceModel(path: path))
        let pass = FaceReader.Pass(effort: .quick, degrees: number.isMultiple(of: 3) ? 0 : 30)
        let faces = image.withSmallLuma { reader.find(in: $0, pass) } ?? []
        #expect(faces.count <= FaceDetector.maximumFaces)
        searched += 1
      } catch {
        #expect(error.code == .invalidData, "model \(number): \(error)")
        refused += 1
      }
      try FileManager.default.removeItem(atPath: path)
    }
    print("damaged models: \(searched) searched, \(refused) refused")
    #expect(refused > count / 4 && searched > count / 4)
  }

  @Test func `Parses numbers in the serialization format of dlib`() throws {
    for value: Int64 in [0, 1, -1, 127, 256, -3_101, .max, -.max] {
      var archive = DlibArchive(StoredDetector.integer(value)[...])
      #expect(try archive.integer() == value)
    }
    for value in [0, 1, -0.5, 1.0 / 3, 1e300, -Double.leastNormalMagnitude] {
      var archive = DlibArchive(StoredDetector.real(value)[...])
      #expect(try archive.real() == value)
    }
    // Numbers that are infinite, not a number, too long, with a reserved bit, or above 63 bits.
    for bytes: [UInt8] in [
      [1, 0, 2, 0, 0x7D], [1, 0, 2, 2, 0x7D], [9, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0x11, 0],
      [8, 255, 255, 255, 255, 255, 255, 255, 255], [0],
    ] {
      var archive = DlibArchive(bytes[...])
      #expect(throws: DlibArchive.Problem.foreign, "\(bytes)") { try archive.real() }
    }
    var short = DlibArchive([2, 0])
    #expect(throws: DlibArchive.Problem.truncated) { try short.integer() }
  }
}

/// Writes detectors as dlib does.
private enum StoredDetector {
  static func integer(_ value: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value.magnitude
    repeat {
      bytes.append(UInt8(truncatingIfNeeded: rest))
      rest >>= 8
    } while rest > 0
    return [UInt8(bytes.count) | (value < 0 ? 0x80 : 0)] + bytes
  }

  static func real(_ value: Double) -> [UInt8] {
    guard value != 0 else { return integer(0) + integer(0) }
    let mantissa = value.significand * 0x1p52 * (value < 0 ? -1 : 1)
    return integer(Int64(mantissa)) + integer(Int64(value.exponent) - 52)
  }

  /// Changes, removes or inserts bytes of a stored detector, either among the sizes at its start or
  /// anywhere.
  static func damaged(_ stored: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = stored
    let end = Bool.random(using: &random) ? 48 : bytes.count
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let index = Int.random(in: 0..<min(end, bytes.count), using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 2: bytes.remove(at: index)
      default: bytes.insert(UInt8.random(in: 0...9, using: &random), at: index)
      }
    }
    return bytes
  }

  static func bytes(_ numbers: FaceModel.Numbers) -> [UInt8] {
    let weightCount = numbers.weights.count / max(1, numbers.viewCount)
    let sizes = [
      2, 1, 0, 0, numbers.cellSize, numbers.padding, numbers.windowWidth, numbers.windowHeight,
      numbers.levelCount, numbers.layerWidth, numbers.layerHeight,
    ]
    var bytes = sizes.flatMap { integer(Int64($0)) } + real(9) + integer(Int64(weightCount - 1))
    bytes += real(numbers.overlap) + real(numbers.covered) + integer(Int64(numbers.viewCount))
    for view in 0..<numbers.viewCount {
      bytes += integer(-Int64(weightCount)) + integer(-1)
      for weight in numbers.weights[view * weightCount..<(view + 1) * weightCount] {
        bytes += real(weight)
      }
    }
    return bytes
  }
}

extension FaceImages.Image {
  /// Calls a closure with the luma of the upper left part of the image, where a search is fast.
  fileprivate func withSmallLuma<Result>(_ body: (LumaImage) -> Result) -> Result? {
    pixels.withUnsafeBufferPointer { pixels in
      pixels.baseAddress.map {
        body(
          LumaImage(
            base: $0, width: 240, height: 180, bytesPerRow: width, bytesPerPixel: 1))
      }
    }
  }
}

extension FaceModel.Numbers {
  /// Returns a detector that can be loaded, but may find a face everywhere or nowhere.
  fileprivate func damaged(_ random: inout SeededGenerator) -> FaceModel.Numbers {
    var numbers = self
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      let size = Int.random(in: 0...300, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0: (numbers.overlap, numbers.covered) = (1, 1)
      case 1: numbers.overlap = Double.random(in: -0.1...1.1, using: &random)
      case 2: numbers.layerWidth = size
      case 3: numbers.levelCount = size == 0 ? .max : size
      case 4: numbers.windowHeight = size
      case 5: numbers.cellSize = size % 20
      case 6:
        // Weight 3100 is the threshold of the first view.
        numbers.weights[3_100] = [-1e6, 1e6, 0, 1e300].randomElement(using: &random) ?? 0
      case 7:
        for index in numbers.weights.indices {
          numbers.weights[index] *= Double.random(in: -1e3...1e3, using: &random)
        }
      case 8: numbers.weights = numbers.weights.map { _ in 0 }
      default:
        for _ in 0..<200 {
          let index = Int.random(in: 0..<numbers.weights.count, using: &random)
          numbers.weights[index] = Double.random(in: -1e6...1e6, using: &random)
        }
      }
    }
    return numbers
  }
}
