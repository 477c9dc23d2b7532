// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension MediaSource {
  /// Throws unless `range` has a length and lies inside.
  func check(_ range: TimeRange) throws(EditingError) {
    guard !range.isEmpty else {
      throw EditingError(
        .emptyRange, "the range \(range.displayText) of \(path) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= duration else {
      throw EditingError(
        .outsideSource,
        "the range \(range.displayText) is not inside \(path), which ends at \(duration.displayText) s",
        ranges: [range])
    }
  }

  /// Throws unless what a mapping plays lies inside.
  func check(_ mapping: PlaybackMapping) throws(EditingError) {
    guard mapping.sourceStart >= .zero, mapping.sourceEnd <= duration.seconds else {
      throw EditingError(
        .outsideSource,
        "the range \(mapping.sourceStart.displayText)..\(mapping.sourceEnd.displayText) is not inside "
          + "\(path), which ends at \(duration.displayText) s", ranges: [mapping.target])
    }
  }
}
