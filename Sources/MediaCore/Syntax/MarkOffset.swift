// SPDX-License-Identifier: Apache-2.0

/// A mark with a distance behind its name: `hit+0.3`, `hit-120f`.
///
/// The name of a mark may contain signs and digits, so a source that has a mark with the whole text has
/// no offset.
struct MarkOffset {
  enum Distance {
    case time(MediaTime)
    case frames(Int64)
  }

  let name: String
  let isAfter: Bool
  let distance: Distance

  /// Splits a text at the last `+` or `-` that a duration or a number of frames follows.
  ///
  /// Nil if it has none.
  init?(_ text: String) {
    for sign in text.utf8.indices.reversed()
    where text.utf8[sign] == UInt8(ascii: "+") || text.utf8[sign] == UInt8(ascii: "-") {
      guard let distance = Self.distance(text[text.utf8.index(after: sign)...]) else { continue }
      guard sign > text.startIndex else { return nil }
      name = String(text[..<sign])
      isAfter = text.utf8[sign] == UInt8(ascii: "+")
      self.distance = distance
      return
    }
    return nil
  }

  /// Parses a duration or a number of frames, such as `0.3`, `250ms` or `120f`.
  ///
  /// Nil for other text.
  static func distance(_ text: Substring) -> Distance? {
    var reader = TextReader(text)
    if let frames = try? reader.takeFrameAtEnd() { return .frames(frames) }
    guard let seconds = try? reader.takeSeconds(), reader.isAtEnd,
      let time = try? MediaTime(seconds)
    else { return nil }
    return .time(time)
  }

  /// Returns the time at this distance from a mark.
  ///
  /// A distance in frames is counted from the frame that is shown at the mark.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start, or a frame that does not
  ///   exist.
  func time(
    from mark: MediaTime, sourceDuration: MediaTime, frameCount: () throws(MediaError) -> Int64,
    frameTime: (Int64) throws(MediaError) -> MediaTime
  ) throws(MediaError) -> MediaTime {
    switch distance {
    case .time(let time):
      guard isAfter || time <= mark else { throw .beforeStart(description) }
      return try MediaTime(isAfter ? mark + time : mark - time)
    case .frames(let frames):
      let count = try frameCount()
      let shown = try Self.frameIndex(at: mark, frameCount: count, frameTime: frameTime)
      let (index, overflow) =
        isAfter
        ? shown.addingReportingOverflow(frames) : shown.subtractingReportingOverflow(frames)
      guard !overflow else { throw .afterEnd(description) }
      guard index >= 0 else { throw .beforeStart(description) }
      return try TimeExpression.time(
        ofFrame: index, sourceDuration: sourceDuration, frameCount: count, frameTime: frameTime)
    }
  }

  private var description: String {
    let sign = isAfter ? "+" : "-"
    return switch distance {
    case .time(let time): "@\(name)\(sign)\(time.secondsText)"
    case .frames(let frames): "@\(name)\(sign)\(frames)f"
    }
  }

  /// Returns the index of the frame that is shown at a time; the first frame for an earlier time.
  static func frameIndex(
    at time: MediaTime, frameCount: Int64, frameTime: (Int64) throws(MediaError) -> MediaTime
  ) throws(MediaError) -> Int64 {
    // The frames from `low` on may begin later; those below it do not.
    var (low, high): (Int64, Int64) = (0, frameCount)
    while low < high {
      let middle = low + (high - low) / 2
      if try frameTime(middle) <= time { low = middle + 1 } else { high = middle }
    }
    return max(0, low - 1)
  }
}
