// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import TestSupport
import Testing

/// Parameter sets and slices of HEVC.
struct HEVCHeadersTests {
  /// The extradata of libx265 3.5 for 208x120 Main, with blocks of 8 to 64.
  private static let encoder: [UInt8] = [
    0x00, 0x00, 0x00, 0x01, 0x40, 0x01, 0x0C, 0x01, 0xFF, 0xFF, 0x01, 0x60, 0x00, 0x00,
    0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00, 0x3C, 0x95, 0x98, 0x09,
    0x00, 0x00, 0x00, 0x01, 0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90,
    0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00, 0x3C, 0xA0, 0x1A, 0x20, 0x79, 0x65, 0x95,
    0x9A, 0x49, 0x32, 0xBC, 0x05, 0xA0, 0x20, 0x00, 0x00, 0x03, 0x00, 0x20, 0x00, 0x00,
    0x07, 0x81, 0x00, 0x00, 0x00, 0x01, 0x44, 0x01, 0xC1, 0x72, 0xB4, 0x62, 0x40,
  ]

  private func headers() throws -> HEVCHeaders {
    try #require(HEVCHeaders(Self.encoder, unitLengthSize: nil))
  }

  @Test func `Reads the format and the identifiers`() throws {
    let headers = try headers()
    let format = try #require(headers.format)
    #expect(format.width == 208 && format.height == 120 && format.profile == 1)
    #expect(format.codingBlock == 3 && format.treeBlock == 6 && format.transformBlock == 5)
    #expect(format.lumaDepth == 8 && format.chroma == 1 && !headers.hasLayers)
    #expect(
      headers.freeIdentifiers == HEVCHeaders.Identifiers(video: 15, sequence: 15, frame: 30))
  }

  @Test func `Other identifiers change nothing else`() throws {
    let headers = try headers()
    let free = try #require(headers.freeIdentifiers)
    let other = try #require(headers.identified(by: free, in: headers))
    #expect(other.format == headers.format)
    let both = headers.adding(other)
    #expect(
      both.freeIdentifiers == HEVCHeaders.Identifiers(video: 14, sequence: 14, frame: 29))
    #expect(both.format == headers.format)
    // With the old identifiers, the bytes are the old ones.
    let old = HEVCHeaders.Identifiers(video: 0, sequence: 0, frame: 0)
    #expect(other.identified(by: old, in: headers)?.bytes == headers.bytes)
  }

  @Test func `Lossless frames get the level of the source`() throws {
    var bytes = Self.encoder
    #expect(try !headers().isLossless)
    // The flag is the last bit of this byte of the PPS.
    let flag = bytes.count - 3
    bytes[flag] |= 1
    // The levels in the VPS and the SPS.
    let levels = bytes.indices.filter { bytes[$0] == 0x3C }
    #expect(levels.count == 2)
    for index in levels { bytes[index] = 255 }
    let lossless = try #require(HEVCHeaders(bytes, unitLengthSize: nil))
    #expect(lossless.isLossless)
    let plain = HEVCHeaders.Identifiers(video: 0, sequence: 0, frame: 0)
    var expected = Self.encoder
    expected[flag] |= 1
    #expect(try lossless.identified(by: plain, in: headers())?.bytes == expected)
  }

  @Test func `A slice refers to another PPS`() throws {
    // A trailing frame: one flag, the identifier 0, and the rest.
    let slice: [UInt8] = [0x02, 0x01, 0b1101_0110, 0xAA, 0x00, 0x01]
    #expect(
      HEVCUnit.referring(slice, to: 30)
        == [0x02, 0x01, 0b1000_0111, 0b1101_0110, 0xAA, 0x00, 0x01])
    // An IDR frame has two flags. Its new bytes need emulation prevention.
    let key: [UInt8] = [0x28, 0x01, 0b0010_0000, 0x00, 0x01, 0x80]
    #expect(
      HEVCUnit.referring(key, to: 15)
        == [0x28, 0x01, 0b0000_0010, 0b0000_0000, 0x00, 0x03, 0x01, 0x80])
    #expect(HEVCUnit.referring([0x02, 0x01, 0b1010_0000], to: 20) == nil)
    #expect(HEVCUnit.referring(slice, to: 14) == nil)
    #expect(HEVCUnit.referring([0x4E, 0x01, 0x05], to: 20) == [0x4E, 0x01, 0x05])
  }

  @Test func `A CRA frame becomes a BLA frame`() {
    #expect(HEVCUnit.startingAnew([0x2A, 0x01, 0xAF, 0x10]) == [0x24, 0x01, 0xAF, 0x10])
    #expect(HEVCUnit.startingAnew([0x24, 0x01, 0xAF]) == nil)
    #expect(HEVCUnit.startingAnew([0x28, 0x01, 0xAF]) == nil)
    #expect(HEVCUnit.startingAnew([0x02, 0x01, 0xEF]) == nil)
    // Frames that wait in the decoder are shown.
    #expect(
      HEVCUnit.startingAnew([0x2A, 0x01, 0x40, 0x00, 0x01]) == [0x24, 0x01, 0x00, 0x00, 0x03, 0x01])
  }

  @Test func `Damaged parameter sets and slices never trap`() throws {
    var random = SeededGenerator(seed: 69)
    let free = HEVCHeaders.Identifiers(video: 15, sequence: 15, frame: 30)
    let record = [1] + [UInt8](repeating: 0x60, count: 21) + [3] + Self.record
    // A VPS of three bytes, of which the last one is not part of the payload.
    let short: [UInt8] = [
      32, 0, 1, 0, 3, 0, 0, 3, 33, 0, 1, 0, 3, 66, 1, 1, 34, 0, 1, 0, 3, 68, 1, 0,
    ]
    let headers = try #require(HEVCHeaders(Array(record.prefix(23)) + short, unitLengthSize: 4))
    #expect(headers.freeIdentifiers?.video == 15 && headers.hasLayers && headers.format == nil)
    for _ in 0..<(RunSize.isFull ? 200_000 : 4_000) {
      for (bytes, size) in [(Self.encoder, nil), (record, 4)] as [([UInt8], Int?)] {
        var bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count * 2, using: &random)))
        for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
          let index = Int.random(in: 0..<bytes.count, using: &random)
          bytes[index] = Bool.random(using: &random) ? .random(in: 0...255, using: &random) : 0
        }
        guard let headers = HEVCHeaders(bytes, unitLengthSize: size) else { continue }
        _ = headers.format
        _ = headers.hasLayers
        _ = headers.isLossless
        _ = headers.freeIdentifiers
        if let other = headers.identified(by: free, in: headers) { _ = headers.adding(other).bytes }
      }
      let unit = (0..<Int.random(in: 0...9, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
          & ([0xFF, 0x3F, 0x03].randomElement(using: &random) ?? 0)
      }
      _ = HEVCUnit.startingAnew(unit)
      _ = HEVCUnit.referring(unit, to: Int.random(in: 14...31, using: &random))
    }
  }

  /// The lists of a record with the parameter sets of ``encoder``.
  private static var record: [UInt8] {
    var lists: [UInt8] = []
    encoder.withUnsafeBytes { buffer in
      var units = NALUnitReader(buffer, lengthSize: nil)
      while let unit = units.next(), buffer[unit.lowerBound] >> 1 <= 34 {
        lists += [
          buffer[unit.lowerBound] >> 1, 0, 1, UInt8(unit.count >> 8), UInt8(unit.count & 255),
        ]
        lists += buffer[unit]
      }
    }
    return lists
  }
}
