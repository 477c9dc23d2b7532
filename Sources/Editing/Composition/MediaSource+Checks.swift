// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension MediaSource {
  /// Throws unless `range` has a length and lies inside.
  func check(_ range: TimeRange) throws(MediaError) {
    guard !range.isEmpty else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) of \(path) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= duration else {
      throw MediaError(
        .outsideSource,
        "the range \(range.displayText) is not inside \(path), which ends at \(duration.displayText) s",
        ranges: [range])
    }
  }

  /// Throws unless what a mapping plays lies inside.
  func check(_ mapping: PlaybackMapping) throws(MediaError) {
    guard mapping.sourceStart >= .zero, mapping.sourceEnd <= duration.seconds else {
      throw MediaError(
        .outsideSource,
        "the range \(mapping.sourceStart.displayText)..\(mapping.sourceEnd.displayText) is not inside "
          + "\(path), which ends at \(duration.displayText) s", ranges: [mapping.target])
    }
  }
}
