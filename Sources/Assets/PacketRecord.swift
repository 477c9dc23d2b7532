// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// What the index of a track says of one packet, in the file's ticks.
struct PacketRecord: Hashable {
  /// When it is shown; where the file does not say, when it is decoded, until that is known.
  var pts: Int64
  let dts: Int64?
  var duration: Int64
  var isKeyFrame: Bool
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
    let position = try? (Rational(ticks) * timeBase * rate).rounded(.halfAwayFromZero)
    return position.flatMap { Int64(exactly: $0) }
  }
}

/// Where decoding may start, by a packet's own bytes.
enum RandomAccess {
  /// It, and all that is decoded after it, needs no picture before it.
  case independent
  /// It needs none itself, but pictures that are decoded after it and shown before it may.
  case open
  /// It needs others, whatever the container's index says.
  case none
}

extension Packet {
  /// Whether decoding may start at a packet that its container calls a key frame.
  ///
  /// Only H.264 and HEVC are read: containers also call the start of an open group a key frame,
  /// and the sync samples (`stss`) of some movies are none. (Rec. ITU-T H.264 tables 7-1 and 7-6,
  /// H.265 table 7-1.)
  func randomAccess(_ parameters: CodecParameters) -> RandomAccess {
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
          // Other pictures at which decoding may start, and any other slice; what is neither are
          // parameter sets and remarks.
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
  /// Whether an H.264 slice, a unit of these bytes, is predicted from no other picture (I or SI).
  fileprivate func isIntraSlice(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // No byte of first_mb_in_slice and slice_type is one that prevents a start code, unless a picture
    // has more than 2^15 macroblocks before the slice.
    var reader = ExpGolombReader(bytes[..<upperBound], at: lowerBound + 1)
    guard reader.number() != nil, let type = reader.number() else { return false }
    return type % 5 == 2 || type % 5 == 4
  }
}
