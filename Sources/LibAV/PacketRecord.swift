// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankMovieFormat

/// A packet in the index of a track.
///
/// Its times are in the file's ticks.
package struct PacketRecord: Hashable, Sendable {
  /// The presentation time, or the decode time while the presentation time is unknown.
  package var pts: Int64
  package var dts: Int64?
  package var duration: Int64
  package var isKeyFrame: Bool
  /// Whether the packet's bytes show that it needs no earlier frame.
  package var isIndependent: Bool
  package var isDiscarded: Bool
  /// Whether the file contains the presentation time of the packet.
  package var isStated: Bool

  package init(
    pts: Int64, dts: Int64?, duration: Int64, isKeyFrame: Bool, isIndependent: Bool,
    isDiscarded: Bool, isStated: Bool = true
  ) {
    (self.pts, self.dts, self.duration) = (pts, dts, duration)
    (self.isKeyFrame, self.isIndependent) = (isKeyFrame, isIndependent)
    (self.isDiscarded, self.isStated) = (isDiscarded, isStated)
  }

  /// Makes the entry of a packet; nil for one without a time.
  ///
  /// A video packet without a time gets the time 0, because its time is derived from the others
  /// later.
  ///
  /// - Parameters:
  ///   - packet: The packet.
  ///   - track: Its track.
  ///   - access: The kind of random access point that it is.
  package init?(_ packet: Packet, of track: TrackFormat, _ access: RandomAccess) {
    guard let pts = packet.pts ?? packet.dts ?? (track.kind == .video ? 0 : nil) else { return nil }
    self.init(
      pts: pts, dts: packet.dts, duration: packet.duration, isKeyFrame: access != .none,
      isIndependent: access == .independent, isDiscarded: packet.isDiscarded,
      isStated: packet.pts != nil || packet.dts != nil && track.parameters.isIntraOnly)
  }
}

extension [PacketRecord] {
  /// The time from the first shown frame to the end of the last sample, in ticks.
  ///
  /// `last` is the duration of the last sample. The duration of every other sample is the difference
  /// between two decode times, so all durations add up to the duration of the presentation.
  ///
  /// Nil if an edit list jumps within the file, or a time is out of bounds.
  package func ticks(endingWith last: Int64) -> Int64? {
    guard let start = first?.dts, let end = self.last?.dts, let earliest = lazy.map(\.pts).min(),
      let origin = lazy.filter({ !$0.isDiscarded }).map(\.pts).min(),
      zip(self, dropFirst()).allSatisfy({ ($0.dts ?? .max) < ($1.dts ?? .min) })
    else { return nil }
    // A time outside these bounds is rejected later. This check only prevents overflow.
    let bounds = -(Int64(1) << 56)...Int64(1) << 56
    guard [last, start, end, earliest, origin].allSatisfy(bounds.contains) else { return nil }
    return end + last - start + earliest - origin
  }
}

extension CodecParameters {
  /// Whether the NAL units of packets must be parsed to find random access points.
  package var readsUnits: Bool { codecName == "hevc" || codecName == "h264" }
}

extension TrackFormat {
  /// The index of the audio sample nearest to a time in ticks.
  ///
  /// Nil on overflow.
  package func sample(atTicks ticks: Int64) -> Int64? {
    let rate = Rational(Int64(parameters.sampleRate))
    let position = try? (Rational(ticks) * timeBase * rate).rounded(.halfAwayFromZero)
    return position.flatMap { Int64(exactly: $0) }
  }
}

/// The kind of random access point that a packet is, according to its bytes.
package enum RandomAccess {
  /// The packet and all packets decoded after it need no earlier frame.
  case independent
  /// The packet needs no other frame.
  ///
  /// However, frames that are decoded after it and shown before it may need earlier frames.
  case open
  /// The packet needs other packets, even if the container's index marks it as a key frame.
  case none
}

extension Packet {
  /// Finds the kind of random access point of a packet that its container marks as a key frame.
  ///
  /// The mark alone is not reliable: containers also set it at the start of an open GOP, and some
  /// movies list wrong sync samples (`stss`). Only H.264 and HEVC are parsed. See Rec. ITU-T H.264
  /// tables 7-1 and 7-6, and H.265 table 7-1.
  package func randomAccess(_ parameters: CodecParameters) -> RandomAccess {
    guard parameters.readsUnits else { return .independent }
    let isHEVC = parameters.codecName == "hevc"
    return withBytes { bytes in
      var units = NALUnitReader(bytes, lengthSize: parameters.unitLengthSize)
      var found = RandomAccess.none
      while let unit = units.next() {
        let first = bytes[unit.lowerBound]
        let type = isHEVC ? first >> 1 & 0x3F : first & 0x1F
        if isHEVC ? type == 19 || type == 20 : type == 5 { return .independent }
        if isHEVC {
          // Types 16 to 21, except IDR, are random access pictures after which some frames may need
          // earlier frames. The other types below 32 are slices that are not random access points.
          // Types 32 and above are parameter sets and SEI, which precede the slice, so the loop
          // continues.
          if (16...21).contains(type) { return .open }
          if type < 32 { return .none }
        } else if (1...4).contains(type) {
          guard unit.isIntraSlice(bytes) else { return .none }
          found = .open
        }
      }
      return found
    }
  }
}

extension Range<Int> {
  /// Whether this NAL unit is an H.264 I or SI slice.
  fileprivate func isIntraSlice(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // The slice header starts with `first_mb_in_slice` and `slice_type`. An emulation prevention
    // byte can occur in these fields only if more than 2^15 macroblocks precede the slice, so this
    // case is ignored.
    var reader = ExpGolombReader(bytes[..<upperBound], at: lowerBound + 1)
    guard reader.number() != nil, let type = reader.number() else { return false }
    return type % 5 == 2 || type % 5 == 4
  }
}
