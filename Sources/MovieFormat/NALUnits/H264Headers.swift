// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The parameter sets (SPS and PPS) of an H.264 track.
///
/// See `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3.1) and Rec. ITU-T H.264, 7.3.2.
package struct H264Headers: Sendable {
  /// The three bytes of the SPS that contain the profile, the constraint flags and the level.
  private var profile: [UInt8]
  /// The size of each NAL unit's length prefix in bytes; nil for a byte stream.
  package let unitLengthSize: Int?
  private var sequenceSets: [[UInt8]] = []
  private var pictureSets: [[UInt8]] = []
  /// The bytes at the end of a High-profile `avcC` record, which contain the chroma format and the
  /// bit depths.
  private var rest: [UInt8] = []

  /// Parses the extradata of an H.264 track.
  ///
  /// Returns nil if it contains no parameter sets.
  ///
  /// - Parameters:
  ///   - bytes: The extradata.
  ///   - unitLengthSize: The size of each NAL unit's length prefix in bytes; nil for a byte stream.
  package init?(_ bytes: [UInt8], unitLengthSize: Int?) {
    self.unitLengthSize = unitLengthSize
    profile = []
    guard unitLengthSize != nil else {
      bytes.withUnsafeBytes { buffer in
        var units = NALUnitReader(buffer, lengthSize: nil)
        while let unit = units.next() {
          switch buffer[unit.lowerBound] & 0x1F {
          case 7: sequenceSets.append(Array(buffer[unit]))
          case 8: pictureSets.append(Array(buffer[unit]))
          default: break
          }
        }
      }
      guard let first = sequenceSets.first, first.count > 4, !pictureSets.isEmpty else {
        return nil
      }
      profile = Array(first[1...3])
      return
    }
    guard bytes.count > 6 else { return nil }
    profile = Array(bytes[1...3])
    var position = 5
    func sets(_ count: Int) -> [[UInt8]]? {
      var sets: [[UInt8]] = []
      for _ in 0..<count {
        guard position + 2 <= bytes.count else { return nil }
        let length = Int(bytes[position]) << 8 | Int(bytes[position + 1])
        guard length > 1, position + 2 + length <= bytes.count else { return nil }
        sets.append(Array(bytes[position + 2..<position + 2 + length]))
        position += 2 + length
      }
      return sets
    }
    position = 6
    guard let sequences = sets(Int(bytes[5] & 0x1F)), !sequences.isEmpty, position < bytes.count
    else { return nil }
    position += 1
    guard let images = sets(Int(bytes[position - 1])), !images.isEmpty else { return nil }
    (sequenceSets, pictureSets) = (sequences, images)
    rest = Array(bytes[position...])
  }

  /// libx264's name of the profile.
  ///
  /// Nil if libx264 cannot encode this profile.
  package var profileName: String? {
    switch profile[0] {
    case 66: "baseline"
    case 77: "main"
    case 100: "high"
    case 110: "high10"
    case 122: "high422"
    case 244: "high444"
    default: nil
    }
  }

  /// The H.264 level in the usual notation, such as `4.2`.
  package var levelName: String {
    let (whole, tenth) = profile[2].quotientAndRemainder(dividingBy: 10)
    return profile[2] == 9 ? "1b" : tenth == 0 ? "\(whole)" : "\(whole).\(tenth)"
  }

  /// Whether frames may be lossless (`qpprime_y_zero_transform_bypass_flag`).
  package var isLossless: Bool {
    profile[0] == 244
      && sequenceSets.contains { set in
        var reader = ExpGolombReader(set, at: 4)
        guard reader.number() != nil, let chroma = reader.number(),
          chroma != 3 || reader.skip(1), reader.number() != nil, reader.number() != nil
        else { return false }
        return reader.bits(1) == 1
      }
  }

  /// A parameter set ID that this track does not use; nil if all IDs are used.
  ///
  /// Packets may contain further parameter sets, whose IDs are usually low. The highest unused ID
  /// is therefore chosen.
  package var freeIdentifier: Int? {
    let taken =
      sequenceSets.map { Self.number(of: $0, behind: 4) }
      + pictureSets.map { Self.number(of: $0, behind: 1) }
    return (0...31).reversed().first { !taken.contains($0) }
  }

  /// The ID of a parameter set, which is the Exp-Golomb code after the first `count` bytes of the
  /// set.
  private static func number(of set: [UInt8], behind count: Int) -> Int {
    var reader = ExpGolombReader(set, at: count)
    return reader.number() ?? 0
  }

  /// The parameter sets for a track whose frames are from two encodings: this one and another one.
  package func adding(_ other: H264Headers) -> H264Headers {
    var both = self
    both.sequenceSets += other.sequenceSets
    both.pictureSets += other.pictureSets
    // A decoder must be able to decode the frames of both encodings. The header therefore contains
    // only the constraint flags that both encodings have, and the higher of their levels.
    both.profile[1] &= other.profile[1]
    both.profile[2] = max(profile[2], other.profile[2])
    return both
  }

  /// The codec headers (`extradata`) with these parameter sets.
  package var bytes: [UInt8] {
    guard let unitLengthSize else {
      return (sequenceSets + pictureSets).flatMap { [0, 0, 0, 1] + $0 }
    }
    func sized(_ sets: [[UInt8]]) -> [UInt8] {
      sets.flatMap { [UInt8(truncatingIfNeeded: $0.count >> 8), UInt8($0.count & 0xFF)] + $0 }
    }
    return [1] + profile + [0xFC | UInt8(unitLengthSize - 1)]
      + [0xE0 | UInt8(sequenceSets.count & 0x1F)] + sized(sequenceSets)
      + [UInt8(pictureSets.count & 0xFF)] + sized(pictureSets) + rest
  }
}

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
