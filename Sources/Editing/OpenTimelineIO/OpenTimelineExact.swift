// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The exact values in the metadata of projects written by this library.
enum OpenTimelineExact {
  /// Returns the content of the segment that was written as the first items of `children`, and the
  /// number of these items.
  ///
  /// A ramp is written as several clips.
  ///
  /// Returns nil if the metadata of the items has no exact values of this library. Also returns nil if
  /// another program changed the items' own OpenTimelineIO fields.
  static func segment(
    _ children: ArraySlice<JSONValue>, _ location: String, _ notes: inout [String]
  ) throws(MediaError) -> (content: ProjectContent, count: Int)? {
    guard let first = children.first,
      let exact = first["metadata"]?[OpenTimelineDocument.key]?["segment"],
      exact["piece"]?.number ?? 0 == 0, let length = exact["duration"]?.otioFraction,
      length > .zero, try first.otioIsEnabled(location)
    else { return nil }
    // The position of the segment in its track follows from the items before it. So it is not
    // stored, and the segment's own time starts at zero.
    guard let target = try? TimeRange(duration: MediaTime(length)) else { return nil }
    let segment: TrackSegment
    let content: ProjectContent
    if first.otioKind == "Gap" {
      segment = try TrackSegment(empty: target)
      content = try ProjectContent(emptyFor: length)
    } else {
      guard let path = path(first), let mapping = try? mapping(exact, target),
        let source = try? MediaSource(path: path, duration: target.end)
      else {
        notes.append("the exact values of \(location) are invalid; the standard values are used")
        return nil
      }
      segment = TrackSegment(unchecked: source, mapping)
      content = try ProjectContent(
        ProjectClip(path: path, location: "the item in \(location)", exact: mapping),
        along: [.init(start: .zero, end: length, from: .zero, to: length)])
    }
    let expected = try OpenTimelineWriter.clips(segment)
    let found = children.prefix(expected.count)
    guard found.count == expected.count, zip(found, expected).allSatisfy(agree) else {
      notes.append("the item in \(location) was changed by another program")
      return nil
    }
    return (content, expected.count)
  }

  private static func path(_ clip: JSONValue) -> String? {
    guard let reference = clip.otioReference else { return nil }
    return reference["target_url"]?.string.map(OpenTimelineURL.path)
      ?? reference["metadata"]?[OpenTimelineDocument.key]?["path"]?.string
  }

  private static func mapping(
    _ exact: JSONValue, _ target: TimeRange
  ) throws(MediaError) -> PlaybackMapping {
    let ends = (exact["source"]?.elements ?? []).map(\.otioFraction)
    let isReversed = exact["reversed"]?.bool ?? false
    guard ends.count == 2, let start = ends[0], let end = ends[1] else {
      throw MediaError.invalidProject("a source range is missing")
    }
    let whole = try TimeRange(start: MediaTime(start), end: MediaTime(end))
    switch exact["motion"]?.string {
    case "hold":
      return try PlaybackMapping(holding: whole.start, isBefore: isReversed, target: target)
    case "ramp":
      let speeds = (exact["ramp"]?.elements ?? []).compactMap(\.otioFraction)
      let part = (exact["part"]?.elements ?? []).compactMap(\.otioFraction)
      guard speeds.count == 2, part.count == 2,
        let easing = SpeedRamp.Easing(rawValue: exact["easing"]?.string ?? "")
      else { throw MediaError.invalidProject("a ramp is incomplete") }
      let ramp = SpeedRamp(from: try Speed(speeds[0]), to: try Speed(speeds[1]), easing: easing)
      return try PlaybackMapping(
        partOf: ramp, source: whole, from: part[0], to: part[1], isReversed: isReversed,
        target: target)
    default:
      let line = try TimeMapping(source: whole, target: target)
      return isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line)
    }
  }

  /// Returns true if an item's standard values equal the expected ones within 1e-7, and false
  /// otherwise.
  ///
  /// Instead of two speeds, the durations of content that the item plays at them are compared, in
  /// seconds. The ends of a ramp's pieces are rounded to nanoseconds, which changes the speed of a
  /// short piece by more than 1e-7.
  private static func agree(_ found: JSONValue, _ expected: JSONValue) -> Bool {
    guard found.otioKind == expected.otioKind, let range = found["source_range"]?.otioRange,
      let other = expected["source_range"]?.otioRange
    else { return false }
    func near(_ one: Double, _ two: Double) -> Bool { abs(one - two) <= 1e-7 * max(1, abs(two)) }
    let length = other.duration.doubleValue
    let references = (
      found.otioReference?["target_url"], expected.otioReference?["target_url"]
    )
    return near(range.start.doubleValue, other.start.doubleValue)
      && near(range.duration.doubleValue, other.duration.doubleValue)
      && near(timeScalar(found) * length, timeScalar(expected) * length)
      && references.0 == references.1
  }

  /// Returns the product of the speeds of a clip's effects; 1 without effects.
  private static func timeScalar(_ clip: JSONValue) -> Double {
    (clip["effects"]?.elements ?? []).reduce(1) { product, effect in
      guard effect["enabled"]?.bool ?? true else { return product }
      switch effect.otioKind {
      case "FreezeFrame": return 0
      case "LinearTimeWarp": return product * (effect["time_scalar"]?.number ?? 1)
      // The writer never creates other effects, so another program changed the clip.
      default: return .nan
      }
    }
  }
}
