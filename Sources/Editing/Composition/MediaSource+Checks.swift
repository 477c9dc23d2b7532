// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension MediaSource {
  /// Throws if a range is empty or not inside this source.
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

  /// Throws if the source range of a mapping is not inside this source.
  func check(_ mapping: PlaybackMapping) throws(MediaError) {
    guard mapping.sourceStart >= .zero, mapping.sourceEnd <= duration.seconds else {
      throw MediaError(
        .outsideSource,
        "the range \(mapping.sourceStart.displayText)..\(mapping.sourceEnd.displayText) is not inside "
          + "\(path), which ends at \(duration.displayText) s", ranges: [mapping.target])
    }
  }
}
