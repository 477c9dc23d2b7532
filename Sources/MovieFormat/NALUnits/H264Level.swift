// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The limits of an H.264 level (ITU-T H.264, table A-1).
package struct H264Level: Hashable, Sendable {
  /// The H.264 level in the usual notation, such as `4.2`.
  package let name: String
  /// The maximum number of 16x16 macroblocks per second.
  ///
  /// `macroblocks` is the maximum number per frame.
  private let (macroblocksPerSecond, macroblocks): (Int64, Int64)
  /// The maximum bit rate of the High profile in bits per second, which is 1.25 times the rate in
  /// the table.
  package let maximumBitRate: Int64

  private init(_ name: String, _ rate: Int64, _ size: Int64, _ kilobits: Int64) {
    self.name = name
    (macroblocksPerSecond, macroblocks) = (rate, size)
    maximumBitRate = kilobits * 1_250
  }

  private static let all = [
    H264Level("1", 1_485, 99, 64), H264Level("1.1", 3_000, 396, 192),
    H264Level("1.2", 6_000, 396, 384), H264Level("1.3", 11_880, 396, 768),
    H264Level("2", 11_880, 396, 2_000), H264Level("2.1", 19_800, 792, 4_000),
    H264Level("2.2", 20_250, 1_620, 4_000), H264Level("3", 40_500, 1_620, 10_000),
    H264Level("3.1", 108_000, 3_600, 14_000), H264Level("3.2", 216_000, 5_120, 20_000),
    H264Level("4", 245_760, 8_192, 20_000), H264Level("4.1", 245_760, 8_192, 50_000),
    H264Level("4.2", 522_240, 8_704, 50_000), H264Level("5", 589_824, 22_080, 135_000),
    H264Level("5.1", 983_040, 36_864, 240_000), H264Level("5.2", 2_073_600, 36_864, 240_000),
    H264Level("6", 4_177_920, 139_264, 240_000), H264Level("6.1", 8_355_840, 139_264, 480_000),
    H264Level("6.2", 16_711_680, 139_264, 800_000),
  ]

  /// The lowest level that allows this frame size, frame rate and bit rate.
  ///
  /// The bit rate is in bits per second. Nil if no level allows them.
  package static func least(
    width: Int, height: Int, frameRate: FrameRate, bitRate: Int64
  ) -> H264Level? {
    let (columns, rows) = (Int64(width + 15) / 16, Int64(height + 15) / 16)
    let size = columns * rows
    return all.first { level in
      // Width and height may each have at most √(8 · maximum frame size) macroblocks (A.3.1).
      size <= level.macroblocks && columns * columns <= 8 * level.macroblocks
        && rows * rows <= 8 * level.macroblocks && bitRate <= level.maximumBitRate
        && Double(size) * frameRate.doubleValue <= Double(level.macroblocksPerSecond)
    }
  }
}
