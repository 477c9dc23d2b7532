// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import OvercrankMovieFormat

/// The checksum that shows whether all of a sample reached the disk.
struct SampleCheckTests {
  @Test func `A checksum added in pieces equals that of the whole sample`() {
    var random = SeededGenerator(seed: 512)
    for _ in 0..<300 {
      let count = Int.random(in: 1...5_000, using: &random)
      let position = Int64.random(in: 0...1 << 40, using: &random)
      let sample = (0..<count).map { _ in UInt8.random(in: 1...255, using: &random) }
      let whole = sample.withUnsafeBytes { SampleCheck.value(of: $0, at: position) }
      // Adds pieces of the sample to the checksum, as they are made.
      var growing = [UInt8](repeating: 0xA5, count: count)
      let inPieces = growing.withUnsafeMutableBytes { bytes in
        var check = SampleCheck(of: UnsafeRawBufferPointer(bytes), at: position)
        var end = 0
        while end < count {
          let start = end
          end = min(count, end + Int.random(in: 1...900, using: &random))
          for offset in start..<end { bytes[offset] = sample[offset] }
          check.add(upTo: end)
        }
        return check.finish()
      }
      #expect(inPieces == whole)
      let sector = Int64.random(
        in: position / 512...(position + Int64(count) - 1) / 512, using: &random)
      var damaged = sample
      for offset in damaged.indices where (position + Int64(offset)) / 512 == sector {
        damaged[offset] = 0
      }
      #expect(damaged.withUnsafeBytes { SampleCheck.value(of: $0, at: position) } != whole)
    }
  }

  /// Files of earlier versions contain these checksums.
  @Test func `The checksum is that of its definition`() {
    var random = SeededGenerator(seed: 4_096)
    for round in 0..<400 {
      let count = round < 100 ? round + 1 : Int.random(in: 1...3_000, using: &random)
      let position = Int64.random(in: 0...1 << 40, using: &random)
      let sample = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      let value = sample.withUnsafeBytes { SampleCheck.value(of: $0, at: position) }
      #expect(value == Self.definition(sample, at: position), "\(count) bytes at \(position)")
    }
  }

  /// The checksum, computed word by word.
  private static func definition(_ sample: [UInt8], at position: Int64) -> UInt64 {
    func mix(_ sum: UInt64, _ word: UInt64) -> UInt64 {
      let product = (sum ^ word) &* 0x0000_0100_0000_01B3
      return product ^ product >> 29
    }
    let starts = sample.indices.filter { $0 == 0 || (position + Int64($0)) % 512 == 0 }
    var sums: [UInt64] = [UInt64(sample.count), 1, 2, 3]
    for start in starts + [max(0, sample.count - 32)] {
      for index in sums.indices {
        let word = sample.dropFirst(start + 8 * index).prefix(8)
        let bytes = word.count == 8 ? Array(word.reversed()) : Array(word)
        sums[index] = mix(sums[index], bytes.reduce(0) { $0 << 8 | UInt64($1) })
      }
    }
    return sums.dropFirst().reduce(sums[0], mix)
  }
}
