// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankMovieFormat
import Testing

struct H264LevelTests {
  /// Examples of the specification (A.3.4.1, table A-6).
  @Test(arguments: [
    (176, 144, 15, "1"), (352, 288, 30, "1.3"), (720, 480, 30, "3"), (1_280, 720, 30, "3.1"),
    (1_280, 720, 60, "3.2"), (1_920, 1_080, 30, "4"), (1_920, 1_080, 60, "4.2"),
    (1_280, 720, 240, "5.1"), (1_920, 1_080, 120, "5.1"), (3_840, 2_160, 60, "5.2"),
    (3_840, 2_160, 120, "6"),
  ])
  func `Chooses the lowest H.264 level for a size and frame rate`(
    width: Int, height: Int, rate: Int64, name: String
  ) throws {
    let level = H264Level.least(
      width: width, height: height, frameRate: FrameRate(Int(rate)), bitRate: 0)
    #expect(level?.name == name)
  }

  @Test func `A higher bit rate needs a higher H.264 level`() throws {
    let rate = FrameRate(30)
    func level(_ bits: Int64) -> String? {
      H264Level.least(width: 640, height: 480, frameRate: rate, bitRate: bits)?.name
    }
    #expect(level(12_500_000) == "3" && level(12_500_001) == "3.1")
    #expect(level(2_000_000_000) == nil)
    #expect(H264Level.least(width: 16_384, height: 16, frameRate: rate, bitRate: 0)?.name == "6")
  }
}
