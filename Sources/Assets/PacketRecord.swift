// SPDX-License-Identifier: Apache-2.0
import LibAV
import MediaTiming

/// What the index of a track says of one packet, in the file's ticks.
struct PacketRecord: Hashable {
  /// When it is shown; where the file does not say, when it is decoded, until that is known.
  var pts: Int64
  let dts: Int64?
  var duration: Int64
  let isKeyFrame: Bool
  /// Whether its bytes say that no picture before it is needed.
  var isIndependent: Bool
  var isDiscarded: Bool
  /// Whether the file says when it is shown.
  var isStated = true
}

extension [PacketRecord] {
  /// The ticks from the first picture that is shown to the end of the last sample; nil where an
  /// edit list jumps, or times are out of bounds.
  ///
  /// Samples last from one decoding time to the next, and all of them together as long as they are
  /// shown.
  func ticks(endingWith last: Int64) -> Int64? {
    guard let start = first?.dts, let end = self.last?.dts, let earliest = lazy.map(\.pts).min(),
      let origin = lazy.filter({ !$0.isDiscarded }).map(\.pts).min(),
      zip(self, dropFirst()).allSatisfy({ ($0.dts ?? .max) < ($1.dts ?? .min) })
    else { return nil }
    // Beyond this no time is accepted anyway.
    let bounds = -(Int64(1) << 56)...Int64(1) << 56
    guard [last, start, end, earliest, origin].allSatisfy(bounds.contains) else { return nil }
    return end + last - start + earliest - origin
  }
}

extension CodecParameters {
  /// Whether a packet's own units tell whether a picture stands alone.
  var readsUnits: Bool { codecName == "hevc" || codecName == "h264" }
}

extension TrackFormat {
  /// The sample that is nearest to a time of a sound track; nil where it does not fit.
  func sample(atTicks ticks: Int64) -> Int64? {
    let rate = Rational(Int64(parameters.sampleRate))
    let place = try? Rational(ticks).multiplied(by: timeBase).multiplied(by: rate)
    return place.flatMap { Int64(exactly: $0.rounded(.halfAwayFromZero)) }
  }
}

extension Packet {
  /// Whether a key frame needs no picture before it, by its own bytes.
  ///
  /// False only for H.264 and HEVC pictures that are no IDR: containers also call the start of
  /// an open group a key frame. (Rec. ITU-T H.264 table 7-1, H.265 table 7-1.)
  func isIndependent(_ parameters: CodecParameters) -> Bool {
    guard parameters.readsUnits else { return true }
    let isHEVC = parameters.codecName == "hevc"
    return withBytes { bytes in
      var units = UnitReader(bytes, lengthSize: parameters.unitLengthSize)
      while let unit = units.next() {
        let first = bytes[unit.lowerBound]
        let type = isHEVC ? first >> 1 & 0x3F : first & 0x1F
        if isHEVC ? type == 19 || type == 20 : type == 5 { return true }
        // Any other slice; what is not one are parameter sets and remarks.
        if isHEVC ? type < 32 : (1...4).contains(type) { return false }
      }
      return false
    }
  }
}
