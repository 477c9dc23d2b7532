// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Damaged images of codes and faces, in the formats of camera frames.
///
/// `OVERCRANK_DAMAGED` sets the number of frames. The default is 64, or 10 000 in a full test run.
struct DamagedFrameTests {
  private static let count: Int = {
    ProcessInfo.processInfo.environment["OVERCRANK_DAMAGED"].flatMap(Int.init)
      ?? RunSize.cases(64, full: 10_000)
  }()
  /// The number of frames made from one image, each with different damage.
  private static let framesPerImage = 8

  @Test func `Codes and faces of a damaged frame lie inside the frame`()
    async throws
  {
    let images = try await SourceImages()
    let readers = try ObjectReaders(ObjectReaders.available)
    let (codes, faces) = (
      try ObjectReaders(MetadataObjectType.codes), try ObjectReaders([.face])
    )
    var extractor = LumaExtractor()
    var (refused, searched, found) = (0, 0, ["codes": 0, "faces": 0])
    for start in stride(from: 0, to: Self.count, by: Self.framesPerImage) {
      var random = SeededGenerator(seed: UInt64(start))
      let isFace = (start / Self.framesPerImage).isMultiple(of: 2)
      let sources = isFace ? images.faces : images.codes
      let source = sources[Int.random(in: 0..<sources.count, using: &random)]
      // The code reader is sometimes given an image of faces, and the face reader an image of
      // codes.
      let isMixed = Int.random(in: 0..<8, using: &random) == 0
      var tracker = MetadataObjectTracker(isMixed ? readers : isFace ? faces : codes, agreement: 1)
      for number in start..<min(Self.count, start + Self.framesPerImage) {
        let frame = source.damaged(&random)
        let isAlone = Int.random(in: 0..<100, using: &random) == 0
        let microseconds = Int64(number) * 42_000
        do throws(CallFailure) {
          // The memory ends where the frame ends, so that a sanitizer reports reads past the end.
          let objects = try frame.bytes.withUnsafeBytes { bytes in
            Result { () throws(CallFailure) in
              try extractor.withLuma(of: bytes, frame.description) { luma in
                isAlone
                  ? readers.objects(in: luma, at: .zero, duration: .zero)
                  : tracker.look(
                    at: luma, microseconds: microseconds, time: .zero, duration: .zero)
              }
            }
          }.get()
          searched += 1
          found["codes", default: 0] += objects.count { $0.type != .face }
          found["faces", default: 0] += objects.count { $0.type == .face }
          #expect(objects.count { $0.type == .face } <= FaceReader.maximumFaceCount)
          for object in objects {
            let bounds = object.bounds
            #expect(bounds.x >= 0 && bounds.y >= 0, "frame \(number): \(object)")
            #expect(bounds.x + bounds.width <= 1.000_001 && bounds.y + bounds.height <= 1.000_001)
            #expect(object.corners.count == 4 && object.rawBytes.count < 8_000)
          }
        } catch { refused += 1 }
      }
    }
    print("damaged frames: \(searched) searched, \(refused) refused, \(found)")
    #expect(refused > Self.count / 30 && searched > Self.count / 3)
    #expect((found["codes"] ?? 0) > Self.count / 30 && (found["faces"] ?? 0) > Self.count / 30)
  }
}

/// Undamaged parts of images, as raw pixels and as JPEG.
private struct SourceImages {
  private(set) var codes: [DamagedImage] = []
  private(set) var faces: [DamagedImage] = []

  init() async throws {
    let scratch = try Scratch()
    let frames = try await CodeFrames("--sample", "24")
    // Under conditions other than these, codes are hard to read even without damage.
    let easy = ["clean", "small", "rotation", "tilt", "contrast", "shade"]
    for frame in frames.frames where easy.contains(frame.condition) {
      let corners = frame.codes[0].corners
      let left = (corners.map { $0[0] }.min() ?? 0) - 16
      let top = (corners.map { $0[1] }.min() ?? 0) - 16
      let width = (corners.map { $0[0] }.max() ?? 0) + 16 - left
      let height = (corners.map { $0[1] }.max() ?? 0) + 16 - top
      let rect = PixelRect(x: Int(left), y: Int(top), width: Int(width), height: Int(height))
        .clamped(width: CodeFrames.width, height: CodeFrames.height)
      codes.append(
        try await DamagedImage(
          frames.path(frame), try frames.pixels(frame), width: CodeFrames.width, rect, scratch))
    }
    let labeled = try await FaceImages()
    for name in ["2008_001009", "2008_002506", "2009_004587"] {
      let image = try labeled.image(name)
      for face in image.faces {
        let margin = 0.4 * face.width
        let rect = PixelRect(
          x: Int(face.left - margin), y: Int(face.top - margin),
          width: Int(face.width + 2 * margin), height: Int(face.height + 2 * margin)
        ).clamped(width: image.width, height: image.height)
        faces.append(
          try await DamagedImage(
            image.path, image.pixels, width: image.width, rect, scratch))
      }
    }
  }
}

/// An image in several camera formats, which can be damaged in several ways.
private struct DamagedImage {
  /// A frame with its format description, which may not match its bytes.
  struct Frame {
    var bytes: [UInt8]
    var description: FormatDescription
  }

  private enum Damage: CaseIterable { case bits, blocks, truncation, noise }

  /// The frames, each with its number of bytes per row, which the damage of swapped blocks needs.
  private let frames: [(frame: Frame, bytesPerRow: Int)]

  init(
    _ path: String, _ pixels: [UInt8], width: Int, _ rect: PixelRect, _ scratch: Scratch
  ) async throws {
    // Packed 4:2:2 formats store pairs of pixels.
    let (columns, rows) = (rect.width / 2 * 2, rect.height / 2 * 2)
    var gray: [UInt8] = []
    for row in rect.y..<rect.y + rows {
      gray += pixels[row * width + rect.x..<row * width + rect.x + columns]
    }
    let jpeg = scratch.file("\(UUID().uuidString).jpg")
    let crop = "crop=\(columns):\(rows):\(rect.x):\(rect.y)"
    let made = try await run(
      "ffmpeg",
      ["-v", "error", "-i", path, "-vf", crop, "-pix_fmt", "yuvj420p", "-q:v", "3", jpeg])
    try #require(made.status == 0, "\(made.errors)")
    func frame(_ bytes: [UInt8], _ type: MediaSubType) -> Frame {
      Frame(
        bytes: bytes,
        description: FormatDescription(mediaSubType: type, width: columns, height: rows))
    }
    frames = [
      (frame(gray, .pixels(.gray)), columns),
      (frame(gray.flatMap { [$0, 128] }, .pixels(.yuyv422)), 2 * columns),
      (frame(gray.flatMap { [$0, $0, $0, 255] }, .pixels(.bgra)), 4 * columns),
      (frame(try bytes(of: jpeg), .codec(.mjpeg)), 64),
      (frame(try bytes(of: jpeg), .codec(.mjpeg)), 64),
    ]
  }

  /// Returns the image in one of its formats, with one or two kinds of damage.
  func damaged(_ random: inout SeededGenerator) -> Frame {
    var (frame, bytesPerRow) = frames[Int.random(in: 0..<frames.count, using: &random)]
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      switch Damage.allCases[Int.random(in: 0..<Damage.allCases.count, using: &random)] {
      case .bits:
        for _ in 0..<Int.random(in: 1...200, using: &random) where !frame.bytes.isEmpty {
          let index = Int.random(in: 0..<frame.bytes.count, using: &random)
          frame.bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        }
      case .blocks:
        for _ in 0..<Int.random(in: 1...8, using: &random) {
          Self.swapBlocks(&frame.bytes, bytesPerRow, &random)
        }
      case .truncation:
        // Mostly a small part is missing. Cameras lose the end of a frame.
        let isEnd = Bool.random(using: &random)
        let maximum = isEnd ? frame.bytes.count / 8 : frame.bytes.count
        frame.bytes = Array(frame.bytes.dropLast(Int.random(in: 0...maximum, using: &random)))
      case .noise:
        let length = Int.random(in: 0...frame.bytes.count / 4, using: &random)
        let start = Int.random(in: 0...frame.bytes.count - length, using: &random)
        for index in start..<start + length {
          frame.bytes[index] = UInt8.random(in: 0...255, using: &random)
        }
      }
    }
    // The format states a size that does not match the bytes.
    if Int.random(in: 0..<12, using: &random) == 0 {
      let (width, height) = (frame.description.width, frame.description.height)
      frame.description = FormatDescription(
        mediaSubType: frame.description.mediaSubType,
        width: [0, 1, width - 1, width + 2, 8 * width].randomElement(using: &random) ?? width,
        height: [0, 1, height - 1, height + 2, 8 * height].randomElement(using: &random) ?? height)
    }
    return frame
  }

  /// Swaps two squares of equal size, or the parts of them that are inside the frame.
  private static func swapBlocks(
    _ bytes: inout [UInt8], _ bytesPerRow: Int, _ random: inout SeededGenerator
  ) {
    let rows = bytes.count / bytesPerRow
    guard rows > 0 else { return }
    let size = Int.random(in: 1...min(64, rows, bytesPerRow), using: &random)
    func corner(_ random: inout SeededGenerator) -> Int {
      let row = Int.random(in: 0...rows - size, using: &random)
      return row * bytesPerRow + Int.random(in: 0...bytesPerRow - size, using: &random)
    }
    let (a, b) = (corner(&random), corner(&random))
    for row in 0..<size {
      for column in 0..<size {
        bytes.swapAt(a + row * bytesPerRow + column, b + row * bytesPerRow + column)
      }
    }
  }
}
