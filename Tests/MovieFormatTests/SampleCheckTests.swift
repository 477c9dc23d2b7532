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
}
