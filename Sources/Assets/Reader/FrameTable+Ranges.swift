// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension FrameTable {
  /// The indices of the frames that are shown during a time range of the asset.
  ///
  /// - Parameters:
  ///   - range: The range in the asset's time. Nil means all frames.
  ///   - offset: The time of this table's first frame on the asset's time axis, in seconds.
  /// - Returns: The indices; empty if no frame is shown in the range.
  /// - Throws: `MediaError` with `.overflow` if a time cannot be represented.
  func numbers(in range: TimeRange?, offset: Rational) throws(MediaError) -> Range<Int> {
    guard let range else { return entries.indices }
    guard !range.isEmpty else { return 0..<0 }
    func ticks(_ time: MediaTime, _ rounding: TimeRounding) throws(MediaError) -> Int64 {
      let exact = (time.seconds - offset) * Rational(Int64(timescale))
      return Int64(clamping: try exact.rounded(rounding))
    }
    let start = max(0, try ticks(range.start, .towardNegativeInfinity))
    // The first tick at or after the end of the range. A frame that starts at this tick is no
    // longer in the range.
    let end = try ticks(range.end, .towardPositiveInfinity)
    guard start < min(end, endTicks), let first = lastIndex(atOrBefore: start) else { return 0..<0 }
    let last = lastIndex(atOrBefore: end - 1) ?? first
    return first..<last + 1
  }

  /// Converts a time in this table's ticks to the asset's time.
  ///
  /// `offset` is the time of this table's first frame on the asset's time axis, in seconds.
  func time(ofTicks ticks: Int64, offset: Rational) throws(MediaError) -> MediaTime {
    let own = MediaTime(ticks, over: timescale)
    return offset == .zero ? own : try MediaTime(own.seconds + offset)
  }

  /// The decode index of the packet at which decoding must start to reach a frame.
  ///
  /// This packet is the last shown key frame at or before the frame. If there is none, it is the
  /// last hidden key frame before the frame.
  func decodingStart(ofFrame number: Int) -> Int {
    var key = number
    while key > 0, !entries[key].isKeyFrame { key -= 1 }
    let index = entries[key].decodeIndex
    if entries[key].isKeyFrame { return index }
    return hiddenPackets.lazy.filter { $0.isKeyFrame && $0.decodeIndex < index }
      .map(\.decodeIndex).max() ?? 0
  }
}
