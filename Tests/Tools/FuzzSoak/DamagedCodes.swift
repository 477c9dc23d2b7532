// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore
import OvercrankRecognition
import TestSupport

private struct TooManyFaces: Error {}

/// Frames with codes, and the readers that search damaged copies of them.
struct DamagedCodes {
  private let codes: CodeFrames
  private let codeReader: CodeReader
  private let faceReader: FaceReader

  init() async throws {
    codes = try await CodeFrames("--sample", "40")
    codeReader = try CodeReader()
    faceReader = try FaceReader()
  }

  /// Searches a damaged frame for codes.
  ///
  /// One frame in nine is also searched for faces.
  func outcome(_ random: inout SeededGenerator) throws -> String {
    let frame = codes.frames[Int.random(in: 0..<codes.frames.count, using: &random)]
    var pixels = try codes.pixels(frame)
    let (width, height) = (CodeFrames.width, CodeFrames.height)
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      let level = UInt8.random(in: 0...255, using: &random)
      let side = Int.random(in: 1...60, using: &random)
      // The damage is around the codes, which are in the middle.
      let x = Int.random(in: width / 4..<3 * width / 4, using: &random)
      let y = Int.random(in: height / 4..<3 * height / 4, using: &random)
      let isNoise = Bool.random(using: &random)
      for row in y..<min(height, y + side) {
        for column in x..<min(width, x + side) {
          let value = isNoise ? UInt8.random(in: 0...255, using: &random) : level
          pixels[row * width + column] = isNoise ? value : pixels[row * width + column] ^ level
        }
      }
    }
    // The searched part has a random size, down to a single pixel.
    let left = Int.random(in: 0..<width / 2, using: &random)
    let top = Int.random(in: 0..<height / 2, using: &random)
    let columns = Int.random(in: 1...width - left, using: &random)
    let rows = Int.random(in: 1...height - top, using: &random)
    let pool = try PixelBufferPool(format: .gray, width: columns, height: rows)
    var image = try pool.makePixelBuffer()
    image.withUnsafeMutableBytes(ofPlane: 0) { target in
      for row in 0..<rows {
        for column in 0..<columns {
          target[row * columns + column] = pixels[(top + row) * width + left + column]
        }
      }
    }
    let effort = CodeReader.Effort.allCases.randomElement(using: &random) ?? .exhaustive
    let found = try codeReader.objects(in: image, effort: effort)
    let faces = Int.random(in: 0..<9, using: &random) == 0 ? try faceReader.objects(in: image) : []
    guard faces.count <= FaceReader.maximumFaceCount else { throw TooManyFaces() }
    return "codes \(columns)x\(rows) \(effort): \(found.map { $0.stringValue ?? "no text" })"
  }
}
