// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension FrameTable {
  /// The numbers of the frames that are on in a time range of the asset, of which the table's zero is
  /// so many seconds behind its own; all of them where the range is nil.
  func numbers(in range: TimeRange?, offset: Rational) throws(MediaError) -> Range<Int> {
    guard let range else { return entries.indices }
    guard !range.isEmpty else { return 0..<0 }
    func ticks(_ time: MediaTime, _ rounding: TimeRounding) throws(MediaError) -> Int64 {
      let exact = (time.seconds - offset) * Rational(Int64(timescale))
      return Int64(clamping: try exact.rounded(rounding))
    }
    let start = max(0, try ticks(range.start, .towardNegativeInfinity))
    // The first frame that starts at the end or behind it.
    let end = try ticks(range.end, .towardPositiveInfinity)
    guard start < min(end, endTicks), let first = lastIndex(atOrBefore: start) else { return 0..<0 }
    let last = lastIndex(atOrBefore: end - 1) ?? first
    return first..<last + 1
  }

  /// The asset's time at a number of ticks.
  func time(ofTicks ticks: Int64, offset: Rational) throws(MediaError) -> MediaTime {
    let own = MediaTime(ticks, over: timescale)
    return offset == .zero ? own : try MediaTime(own.seconds + offset)
  }

  /// Where decoding starts for a frame, in the order of decoding: at the last key frame that is shown
  /// at or before it, or a hidden one.
  func decodingStart(ofFrame number: Int) -> Int {
    var key = number
    while key > 0, !entries[key].isKeyFrame { key -= 1 }
    let index = entries[key].decodeIndex
    if entries[key].isKeyFrame { return index }
    return hiddenPackets.lazy.filter { $0.isKeyFrame && $0.decodeIndex < index }
      .map(\.decodeIndex).max() ?? 0
  }
}
