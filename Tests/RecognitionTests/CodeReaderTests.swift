// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankRecognition

/// Codes in single images, compared with the codes that zint drew.
struct CodeReaderTests {
  /// Testing all images takes minutes. `Benchmarks/Codes` also measures processor time and other
  /// code readers.

  @Test func `Most codes are read and no wrong text appears in two frames`() async throws {
    let count = String(RunSize.cases(30, full: 996))
    let set = try await CodeFrames("--sample", count)
    // The same scenes with other noise, as in the next frame of a camera. A wrong text that is read
    // in one of the two frames must not be read in the other frame.
    let later = try await CodeFrames("--sample", count, "--noise", "1")
    let reader = try CodeReader()
    var shown: [String: Int] = [:]
    var read: [String: Int] = [:]
    var (wrong, misread, negatives): ([String], Int, Int) = ([], 0, 0)
    var errors: [Double] = []
    for frame in set.frames {
      let pixels = try set.pixels(frame)
      let found = try pixels.withLuma { reader.read($0, .exhaustive) }
      if frame.codes.isEmpty { negatives += 1 }
      for code in frame.codes {
        shown[frame.condition, default: 0] += 1
        let same = found.first { $0.type.rawValue == code.type && $0.text == code.text }
        guard let same else { continue }
        read[frame.condition, default: 0] += 1
        guard !same.type.isLinear, same.type != .pdf417 else { continue }
        let x = code.corners.reduce(0) { $0 + $1[0] } / 4 - same.center.x
        let y = code.corners.reduce(0) { $0 + $1[1] } / 4 - same.center.y
        errors.append((x * x + y * y).squareRoot())
      }
      let strange = found.filter { code in
        !frame.codes.contains { $0.type == code.type.rawValue && $0.text == code.text }
      }
      if frame.codes.isEmpty { #expect(strange.isEmpty, "\(frame.file)") }
      guard !strange.isEmpty else { continue }
      let twin = try #require(later.frames.first { $0.file == frame.file })
      let again = try later.pixels(twin).withLuma { reader.read($0, .exhaustive) }
      misread += strange.count
      for code in strange where again.contains(where: { $0.key == code.key }) {
        wrong.append("\(frame.file): \(code.type.rawValue) \(code.text ?? "")")
      }
    }
    let (all, hit) = (shown.values.reduce(0, +), read.values.reduce(0, +))
    print("codes read: \(hit) of \(all), \(read.sorted { $0.key < $1.key }) of \(shown)")
    print("texts that are wrong in one frame: \(misread)")
    #expect(misread <= (RunSize.isFull ? 4 : 1))
    #expect(wrong.isEmpty)
    #expect(negatives > 0 && all > 20)
    #expect(Double(hit) >= 0.6 * Double(all), "\(hit) of \(all)")
    errors.sort()
    try #require(!errors.isEmpty)
    #expect(errors[errors.count / 2] <= 1)
    if RunSize.isFull {
      for (condition, part) in [("small", 0.95), ("tiny", 0.6), ("six", 0.97)] {
        #expect(Double(read[condition] ?? 0) >= part * Double(shown[condition] ?? 0))
      }
    }
    // A reader that finds nothing must fail this test.
    let qr = try #require(set.frames.first { $0.codes.first?.type == "qr" })
    let blind = try CodeReader(types: [.codabar])
    #expect(try set.pixels(qr).withLuma { blind.read($0, .exhaustive) }.isEmpty)
  }

  @Test(arguments: MetadataObjectType.codes)
  func `Reads the text and bytes and corners of each code type`(
    type: MetadataObjectType
  ) async throws {
    let given = try #require(Self.contents[type])
    let set = try await CodeFrames("--only", type.rawValue, given.data)
    let label = try #require(set.frames.first?.codes.first)
    var image = PixelBuffer(format: .gray)
    image.fill(try set.pixels(set.frames[0]), width: CodeFrames.width, height: CodeFrames.height)
    let found = try CodeReader(types: [type]).objects(in: image)
    try #require(found.count == 1, "\(found)")
    #expect(found[0].type == type && found[0].stringValue == given.text)
    #expect(found[0].rawBytes == Array(given.text.utf8))
    #expect(found[0].time == .zero && found[0].corners.count == 4)
    func center(_ points: [(Double, Double)]) -> (x: Double, y: Double) {
      (
        points.reduce(0) { $0 + $1.0 } / Double(points.count),
        points.reduce(0) { $0 + $1.1 } / Double(points.count)
      )
    }
    let (width, height) = (Double(CodeFrames.width), Double(CodeFrames.height))
    let (expected, seen) = (
      center(label.corners.map { ($0[0], $0[1]) }),
      center(found[0].corners.map { ($0.x * width, $0.y * height) })
    )
    // A bar code is not read in all of its rows, so the vertical position of its corners is not
    // exact.
    let limit = type.isLinear ? 60.0 : type == .pdf417 ? 6 : 1.5
    #expect(
      abs(expected.x - seen.x) <= min(limit, 4) && abs(expected.y - seen.y) <= limit,
      "\(expected) \(seen)")
    let bounds = found[0].bounds
    #expect(bounds.x > 0 && bounds.y > 0 && bounds.x + bounds.width < 1)
  }

  private static let contents: [MetadataObjectType: (data: String, text: String)] = [
    .upca: ("03600029145", "036000291452"), .upce: ("0123456", "01234565"),
    .ean8: ("9638507", "96385074"), .ean13: ("400638133393", "4006381333931"),
    .code39: ("BIB42", "BIB42"), .code93: ("LANE7", "LANE7"), .code128: ("Run-2", "Run-2"),
    .interleaved2of5: ("12345678", "12345678"), .codabar: ("A123456B", "A123456B"),
    .qr: ("https://example.org/7", "https://example.org/7"), .microQR: ("HEAT3", "HEAT3"),
    .aztec: ("Laps 4", "Laps 4"), .pdf417: ("Start 12, lane 4", "Start 12, lane 4"),
    .dataMatrix: ("goal camera 1", "goal camera 1"),
  ]

  @Test func `Reads a Code 39 text unchanged that could also be Code 32`() async throws {
    let set = try await CodeFrames("--only", "code39", "B5756K")
    let found = try set.pixels(set.frames[0]).withLuma { try CodeReader().read($0, .exhaustive) }
    #expect(found.map(\.text) == ["B5756K"])
  }

  @Test func `Reads codes with control bytes or the maximum length`() async throws {
    // A text with a zero byte, an escape sequence and bytes that are not UTF-8, and then the
    // longest text of a QR code.
    let strange = try await CodeFrames("--only", "qr", #"a\x00\e[31m\xffb"#)
    let found = try strange.pixels(strange.frames[0]).withLuma {
      try CodeReader().read($0, .exhaustive)
    }
    #expect(found.map(\.bytes) == [[0x61, 0, 0x1B, 0x5B, 0x33, 0x31, 0x6D, 0xFF, 0x62]])
    let long = String(repeating: "7", count: 7_089)
    let large = try await CodeFrames("--only", "qr", long)
    let digits = try large.pixels(large.frames[0]).withLuma {
      try CodeReader(types: [.qr]).read($0, .exhaustive)
    }
    #expect(digits.map(\.text) == [long])
  }

  @Test func `Finds no code in an empty or tiny image`() throws {
    let reader = try CodeReader()
    #expect(try reader.objects(in: PixelBuffer(format: .gray)).isEmpty)
    for size in [1, 2, 3, 17] {
      let pixels = [UInt8](repeating: 9, count: size * size)
      #expect(
        try pixels.withLuma(width: size, height: size) { reader.read($0, .exhaustive) }.isEmpty)
    }
  }

  @Test func `Refuses metadata object types that are not available`() throws {
    for types in [[MetadataObjectType.face], [.qr, .face], [], [.init(rawValue: "cat")]] {
      do throws(MediaError) {
        _ = try CodeReader(types: types)
        Issue.record("\(types) were accepted")
      } catch { #expect(error.code == .metadataTypeUnavailable) }
    }
    do throws(MediaError) {
      try MetadataOutput().setMetadataObjectTypes([.face, .init(rawValue: "cat")])
      Issue.record("cats were accepted")
    } catch {
      #expect(error.message.contains("cat is not a type"))
    }
  }

  @Test func `Removes false codes that were read inside of other codes`() {
    func code(_ type: MetadataObjectType, _ text: String, x: Double = 0) -> DetectedCode {
      DetectedCode(
        type: type, text: text, bytes: Array(text.utf8),
        corners: [(0, 0), (200, 0), (200, 50), (0, 50)].map { .init(x: $0.0 + x, y: $0.1) },
        lineCount: 20)
    }
    let long = code(.interleaved2of5, "1234567890")
    let short = code(.interleaved2of5, "345678", x: 20)
    let far = code(.interleaved2of5, "345678", x: 500)
    #expect(CodeFilter.filtered([short, long, far]) == [long, far])
    #expect(CodeFilter.filtered([short, code(.code128, "abcdef")]) == [code(.code128, "abcdef")])
    #expect(CodeFilter.filtered([code(.interleaved2of5, "1234"), code(.codabar, "A12B")]) == [])
    #expect(CodeFilter.filtered([long, long]) == [long])
    // Bar codes count only if they are also read from a sharpened image.
    let square = code(.qr, "gate 3")
    #expect(CodeFilter.agreed([[long, square], []], besides: [short]) == [square])
    #expect(CodeFilter.agreed([[long], [far, long]], besides: []) == [long, long])
    #expect(CodeFilter.agreed([[long], []], besides: [long]) == [long])
    // A retail code that was read in a single row of a texture is not a code.
    var row = code(.ean13, "4006381333931")
    row.corners = [(0, 10), (600, 10), (600, 13), (0, 13)].map { .init(x: $0.0, y: $0.1) }
    #expect(CodeFilter.filtered([row]).isEmpty)
    // A code read in few rows is a slanted line through something else.
    var thin = code(.upce, "01234565")
    #expect(CodeFilter.filtered([thin]) == [thin])
    #expect(CodeFilter.filtered([thin, code(.ean13, "4006381333931")]).count == 1)
    thin.lineCount = 5
    #expect(CodeFilter.filtered([thin]).isEmpty)
  }
}

extension [UInt8] {
  /// Calls a closure with the luma of gray pixels.
  func withLuma<Result>(
    width: Int = CodeFrames.width, height: Int = CodeFrames.height,
    _ body: (LumaImage) throws -> Result
  ) throws -> Result {
    try withUnsafeBufferPointer { pixels in
      try body(
        LumaImage(
          base: try #require(pixels.baseAddress), width: width, height: height, bytesPerRow: width))
    }
  }
}

extension PixelBuffer {
  /// Sets the gray image to these pixels.
  mutating func fill(_ pixels: [UInt8], width: Int, height: Int) {
    resize(
      width: width, height: height,
      planes: [Plane(offset: 0, bytesPerRow: width, rowCount: height)], byteCount: pixels.count)
    withUnsafeMutableBytes(ofPlane: 0) { $0.copyBytes(from: pixels) }
  }
}
