// SPDX-License-Identifier: Apache-2.0

public import MediaTiming

/// A movie to take ranges from: where it is, and how long it plays.
///
/// A value; nothing is opened. Its playable range starts at zero, in the time of the source.
public struct MediaSource: Hashable, Sendable {
  /// The file, as the user named it.
  public let path: String
  /// How long it plays, longer than zero.
  public let duration: MediaTime

  /// Makes a source from what is known of a file.
  ///
  /// - Throws: `EditingError` with `.emptyRange` when the duration is not above zero.
  public init(path: String, duration: MediaTime) throws(EditingError) {
    guard duration > .zero else {
      throw EditingError(
        .emptyRange, "\(path) lasts \(duration.secondsText) s, so there is nothing to edit")
    }
    self.path = path
    self.duration = duration
  }

  /// All of it, played as it is.
  var whole: TimeMapping? {
    // Never nil, because the duration is above zero.
    try? TimeMapping(source: TimeRange(duration: duration), target: TimeRange(duration: duration))
  }

  /// Throws unless `range` has a length and lies inside.
  func check(_ range: TimeRange) throws(EditingError) {
    guard !range.isEmpty else {
      throw EditingError(
        .emptyRange, "the range \(range.secondsText) of \(path) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= duration else {
      throw EditingError(
        .outsideSource,
        "the range \(range.secondsText) is not inside \(path), which ends at \(duration.secondsText) s",
        ranges: [range])
    }
  }
}
