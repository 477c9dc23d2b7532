// SPDX-License-Identifier: Apache-2.0

import MediaTiming

/// Takes OpenTimelineIO's objects apart.
struct OpenTimelineReader {
  private let find: (String) throws -> MediaSource
  private var sources: [String: MediaSource] = [:]
  private(set) var warnings: [String] = []

  init(_ find: @escaping (String) throws -> MediaSource) { self.find = find }

  mutating func composition(of document: JSONValue) throws -> Composition {
    guard Self.kind(document) == "Timeline", let stack = document["tracks"] else {
      throw EditingError.invalidProject("it is no OpenTimelineIO timeline")
    }
    try refuseTrim(stack, "the stack of tracks")
    var composition = Composition()
    for (number, child) in (stack["children"]?.elements ?? []).enumerated() {
      let what = "track \(number + 1)"
      guard Self.kind(child) == "Track" else {
        throw EditingError.invalidProject("\(what) is a \(Self.kind(child)), which is not played")
      }
      guard child["enabled"]?.bool ?? true else {
        warnings.append("\(what) is switched off and left out")
        continue
      }
      switch child["kind"]?.string {
      case "Video": composition.tracks.append(try track(child, .video, what))
      case "Audio": composition.tracks.append(try track(child, .audio, what))
      case let kind: warnings.append("\(what) is of kind \(kind ?? "none") and left out")
      }
    }
    for kind in MediaType.allCases {
      let count = composition.tracks.count { $0.mediaType == kind }
      if count > 1 { warnings.append("of \(count) \(kind.rawValue) tracks the first is played") }
    }
    composition.markers = (stack["markers"]?.elements ?? []).compactMap { Self.marker($0) }
    return composition
  }

  private mutating func track(
    _ track: JSONValue, _ mediaType: MediaType, _ what: String
  ) throws -> CompositionTrack {
    try refuseTrim(track, what)
    var segments: [TrackSegment] = []
    var end = MediaTime.zero
    var children = (track["children"]?.elements ?? [])[...]
    while let child = children.first {
      let place = "\(what) at \(end.secondsText) s"
      if let (segment, count) = try exact(children, at: end) {
        segments.append(segment)
        children = children.dropFirst(count)
      } else {
        children = children.dropFirst()
        switch Self.kind(child) {
        case "Transition":
          warnings.append("the transition in \(place) is played as a cut")
          continue
        case "Gap": segments.append(try gap(child, at: end, place))
        case "Clip": segments.append(try clip(child, at: end, place))
        case let kind:
          throw EditingError.invalidProject("\(place) has a \(kind), which is not played")
        }
      }
      end = segments.last?.target.end ?? end
    }
    var made = try CompositionTrack(mediaType, segments: segments)
    let exact = track["metadata"]?[OpenTimeline.key]
    if let rotation = exact?["rotation"]?.number { made.rotation = Int(exactly: rotation) }
    made.language = exact?["language"]?.string ?? made.language
    return made
  }

  private func refuseTrim(_ item: JSONValue, _ what: String) throws(EditingError) {
    guard item["source_range"] ?? .null == .null, item["effects"]?.elements.isEmpty ?? true else {
      throw EditingError.invalidProject(
        "\(what) is itself trimmed or has effects, which is not played; apply them to its clips")
    }
  }

  // MARK: Exact values

  /// The segment that stands in the metadata, and how many items it is; nil where there is none
  /// or where another program has changed what is beside it.
  private mutating func exact(
    _ children: ArraySlice<JSONValue>, at start: MediaTime
  ) throws -> (TrackSegment, count: Int)? {
    guard let first = children.first,
      let exact = first["metadata"]?[OpenTimeline.key]?["segment"],
      exact["piece"]?.number ?? 0 == 0, let length = Self.rational(exact["duration"]),
      let target = try? TimeRange(start: start, duration: MediaTime(length)),
      first["enabled"]?.bool ?? true
    else { return nil }
    let segment: TrackSegment
    if Self.kind(first) == "Gap" {
      segment = try TrackSegment(empty: target)
    } else {
      guard let reference = Self.reference(first),
        let mapping = try? Self.mapping(exact, target),
        let made = try? TrackSegment(of: source(reference), mapping)
      else {
        warnings.append(
          "the exact values at \(start.secondsText) s make no sense; the others are read")
        return nil
      }
      segment = made
    }
    let expected = try OpenTimelineWriter.clips(segment)
    let found = children.prefix(expected.count)
    guard found.count == expected.count, zip(found, expected).allSatisfy(Self.agree) else {
      warnings.append("what plays at \(start.secondsText) s was changed by another program")
      return nil
    }
    return (segment, expected.count)
  }

  private static func mapping(
    _ exact: JSONValue, _ target: TimeRange
  ) throws -> PlaybackMapping {
    let ends = (exact["source"]?.elements ?? []).map(rational)
    let isReversed = exact["reversed"]?.bool ?? false
    guard ends.count == 2, let start = ends[0], let end = ends[1] else {
      throw EditingError.invalidProject("a source range is missing")
    }
    let whole = try TimeRange(start: MediaTime(start), end: MediaTime(end))
    switch exact["motion"]?.string {
    case "hold":
      return try PlaybackMapping(holding: whole.start, isBefore: isReversed, target: target)
    case "ramp":
      let speeds = (exact["ramp"]?.elements ?? []).compactMap(rational)
      let part = (exact["part"]?.elements ?? []).compactMap(rational)
      guard speeds.count == 2, part.count == 2,
        let easing = SpeedRamp.Easing(rawValue: exact["easing"]?.string ?? "")
      else { throw EditingError.invalidProject("a ramp is incomplete") }
      let ramp = SpeedRamp(from: try Speed(speeds[0]), to: try Speed(speeds[1]), easing: easing)
      return try PlaybackMapping(
        partOf: ramp, source: whole, from: part[0], to: part[1], isReversed: isReversed,
        target: target)
    default:
      let line = try TimeMapping(source: whole, target: target)
      return isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line)
    }
  }

  /// Whether an item says to others what one of ours would, as far as numbers of programs go.
  private static func agree(_ found: JSONValue, _ expected: JSONValue) -> Bool {
    guard kind(found) == kind(expected), let range = plainRange(found["source_range"]),
      let other = plainRange(expected["source_range"])
    else { return false }
    func near(_ one: Double, _ two: Double) -> Bool { abs(one - two) <= 1e-7 * max(1, abs(two)) }
    let scalars = (timeScalar(found), timeScalar(expected))
    let references = (reference(found)?["target_url"], reference(expected)?["target_url"])
    return near(range.start.doubleValue, other.start.doubleValue)
      && near(range.duration.doubleValue, other.duration.doubleValue)
      && near(scalars.0, scalars.1) && references.0 == references.1
  }

  // MARK: Plain values

  private func gap(
    _ item: JSONValue, at start: MediaTime, _ place: String
  ) throws -> TrackSegment {
    guard let range = Self.plainRange(item["source_range"]) else {
      throw EditingError.invalidProject("the gap in \(place) has no length")
    }
    return try TrackSegment(empty: Self.target(start, range.duration))
  }

  private mutating func clip(
    _ clip: JSONValue, at start: MediaTime, _ place: String
  ) throws -> TrackSegment {
    let reference = Self.reference(clip)
    let available = Self.plainRange(reference?["available_range"])
    guard let range = Self.plainRange(clip["source_range"]) ?? available else {
      throw EditingError.invalidProject("the clip in \(place) has no range")
    }
    let target = try Self.target(start, range.duration)
    guard clip["enabled"]?.bool ?? true else { return try TrackSegment(empty: target) }
    guard let reference, reference["target_url"]?.string != nil else {
      throw EditingError.invalidProject("the clip in \(place) names no file")
    }
    for effect in clip["effects"]?.elements ?? []
    where !["LinearTimeWarp", "FreezeFrame"].contains(Self.kind(effect)) {
      warnings.append("the effect \(Self.kind(effect)) in \(place) is left out")
    }
    let source = try source(reference)
    let first = try range.start.subtracting(available?.start ?? .zero)
    let scalar = Self.timeScalar(clip)
    if scalar == 0 {
      return try TrackSegment(
        of: source, PlaybackMapping(holding: Self.time(first), target: target))
    }
    let speed = Self.nearest(scalar.magnitude)
    let wanted = try first.adding(range.duration.multiplied(by: speed))
    // Programs that count in frames or in floating point may name an end just past the last frame.
    let slack = try wanted.subtracting(source.duration.seconds)
    let isPast = try slack > .zero && slack <= Rational(1, 24)
    if isPast {
      warnings.append(
        "the clip in \(place) ends after \(source.path) and is a little slower for it")
    }
    let last = isPast ? source.duration.seconds : wanted
    let line = try TimeMapping(
      source: TimeRange(start: Self.time(first), end: Self.time(last)), target: target)
    return try TrackSegment(
      of: source, scalar < 0 ? PlaybackMapping(reversing: line) : PlaybackMapping(line))
  }

  private mutating func source(_ reference: JSONValue) throws -> MediaSource {
    let path =
      reference["target_url"]?.string.map(OpenTimelineURL.path)
      ?? reference["metadata"]?[OpenTimeline.key]?["path"]?.string ?? ""
    if let known = sources[path] { return known }
    let found = try find(path)
    sources[path] = found
    return found
  }

  // MARK: Objects

  /// The name of a schema without its version.
  private static func kind(_ object: JSONValue) -> String {
    String(object["OTIO_SCHEMA"]?.string?.split(separator: ".").first ?? "nothing known")
  }

  private static func reference(_ clip: JSONValue) -> JSONValue? {
    let found =
      clip["media_reference"]
      ?? clip["media_references"]?[clip["active_media_reference_key"]?.string ?? "DEFAULT_MEDIA"]
    guard let found, kind(found) == "ExternalReference" else { return nil }
    return found
  }

  /// Source seconds per second by all the effects of a clip: 1 without any.
  private static func timeScalar(_ clip: JSONValue) -> Double {
    (clip["effects"]?.elements ?? []).reduce(1) { product, effect in
      guard effect["enabled"]?.bool ?? true else { return product }
      switch kind(effect) {
      case "FreezeFrame": return 0
      case "LinearTimeWarp": return product * (effect["time_scalar"]?.number ?? 1)
      default: return product
      }
    }
  }

  private static func marker(_ marker: JSONValue) -> CompositionMarker? {
    let exact = (marker["metadata"]?[OpenTimeline.key]?["range"]?.elements ?? [])
      .compactMap(rational)
    guard let plain = plainRange(marker["marked_range"]) else { return nil }
    let ends =
      exact.count == 2 && abs(exact[0].doubleValue - plain.start.doubleValue) < 1e-6
      ? exact : [plain.start, (try? plain.start.adding(plain.duration)) ?? plain.start]
    guard let start = try? time(ends[0]), let end = try? time(ends[1]),
      let range = try? TimeRange(start: start, end: end)
    else { return nil }
    return CompositionMarker(
      marker["name"]?.string ?? "", range, color: marker["color"]?.string ?? "GREEN",
      comment: marker["comment"]?.string ?? "")
  }

  private static func rational(_ value: JSONValue?) -> Rational? {
    value?.string.flatMap { try? Rational(parsing: $0) }
  }

  private static func plainRange(
    _ value: JSONValue?
  ) -> (start: Rational, duration: Rational)? {
    guard let start = plainTime(value?["start_time"]), let length = plainTime(value?["duration"])
    else { return nil }
    return (start, length)
  }

  /// A time of value and rate, both floating point: rates that movies have are exact.
  private static func plainTime(_ value: JSONValue?) -> Rational? {
    guard let units = value?["value"]?.number, let rate = value?["rate"]?.number, rate > 0,
      rate < 1e10, abs(units) < 1e15
    else { return nil }
    // 23.976, 29.97 and so on, however many digits of them are written.
    let whole = rate.rounded(.up)
    let isTelevision = rate != whole && abs(rate - whole * 1000 / 1001) < 0.002
    guard
      let perSecond = isTelevision
        ? try? Rational(Int128(whole) * 1000, 1001) : Optional(nearest(rate)),
      let count = units == units.rounded() ? try? Rational(Int128(units), 1) : nearest(units)
    else { return nil }
    return try? count.divided(by: perSecond)
  }

  /// The simplest fraction within a billionth of a number.
  private static func nearest(_ number: Double) -> Rational {
    // Continued fractions; their convergents are the simplest there are.
    var (rest, last, current) = (number, (Int128(0), Int128(1)), (Int128(1), Int128(0)))
    for _ in 0..<40 {
      let whole = rest.rounded(.down)
      guard whole.magnitude < 1e15 else { break }
      let next = (
        Int128(whole) * current.0 + last.0, Int128(whole) * current.1 + last.1
      )
      // With 50 bits of the next number the products fit 128.
      guard next.1 < 1 << 60, next.0.magnitude < 1 << 60 else { break }
      (last, current) = (current, next)
      if abs(Double(current.0) / Double(current.1) - number) <= 1e-9 * max(1, abs(number)) { break }
      rest = 1 / (rest - whole)
      guard rest.isFinite else { break }
    }
    return (try? Rational(current.0, max(1, current.1))) ?? .zero
  }

  private static func target(
    _ start: MediaTime, _ duration: Rational
  ) throws(TimingError) -> TimeRange {
    try TimeRange(start: start, end: time(start.seconds.adding(duration)))
  }

  /// A time that a composition can hold: exact, or else the nearest nanosecond.
  private static func time(_ seconds: Rational) throws(TimingError) -> MediaTime {
    if let time = try? MediaTime(seconds) { return time }
    let units = try seconds.multiplied(by: Rational(1_000_000_000)).rounded(.halfAwayFromZero)
    guard let value = Int64(exactly: units) else {
      throw TimingError(.overflow, "the time \(seconds) s does not fit")
    }
    return MediaTime(nanoseconds: value)
  }
}
