// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// An OpenTimelineIO timeline as a tree.
indirect enum TimelineItem {
  struct Common {
    /// The part of the item's content that plays; nil for all of it.
    var range: (start: Rational, duration: Rational)?
    var speeds: [Rational] = []
    /// A time curve: the offset of each frame in frames, at a frame rate.
    var lookup: (offsets: [Int], rate: Int64)?
    var isEnabled = true
  }

  case clip(path: String, available: Rational, Common)
  case gap(Rational)
  case track([TimelineItem], Common)
  case stack([TimelineItem], Common)
  case transition(before: Rational, after: Rational)
}

/// A reference interpreter of OpenTimelineIO's rules.
///
/// It is slow and simple.
extension TimelineItem {
  var isTransition: Bool { if case .transition = self { true } else { false } }

  func length() throws -> Rational {
    switch self {
    case .clip(_, _, let common), .track(_, let common), .stack(_, let common):
      if let range = common.range { return range.duration }
    case .gap(let length): return length
    case .transition: return .zero
    }
    return try contentLength()
  }

  private func contentLength() throws -> Rational {
    switch self {
    case .track(let children, _):
      var sum = Rational.zero
      for child in children { sum = try sum + child.length() }
      if case .transition(let before, _)? = children.first { sum = sum + before }
      if case .transition(_, let after)? = children.last { sum = sum + after }
      return sum
    case .stack(let children, _): return try children.map { try $0.length() }.max() ?? .zero
    default: return .zero
    }
  }

  /// The source time that is visible at an instant after the start of the item.
  func visibleFrame(at time: Rational) throws -> VisibleFrame? {
    guard try time >= .zero && time < length() else { return nil }
    switch self {
    case .gap, .transition: return nil
    case .clip(let path, let available, let common):
      guard common.isEnabled else { return nil }
      return VisibleFrame(path: path, time: try content(time, common) - available)
    case .track(let children, let common):
      guard common.isEnabled else { return nil }
      let inside = try content(time, common)
      var start = Rational.zero
      for child in children {
        let end = try start + child.length()
        if start <= inside && inside < end { return try child.visibleFrame(at: inside - start) }
        start = end
      }
      return nil
    case .stack(let children, let common):
      guard common.isEnabled else { return nil }
      let inside = try content(time, common)
      // The topmost track is searched first.
      for child in children.reversed() {
        if let seen = try child.visibleFrame(at: inside) { return seen }
      }
      return nil
    }
  }

  private func content(_ time: Rational, _ common: Common) throws -> Rational {
    let speed = common.speeds.reduce(Rational.one) { $0 * $1 }
    var moved = time
    if let (offsets, rate) = common.lookup {
      let frame = Int(try (time * Rational(rate)).rounded(.towardNegativeInfinity))
      let rest = time * Rational(rate) - Rational(Int64(frame))
      let change = offsets[frame + 1] - offsets[frame]
      let offset = rest * Rational(Int64(change)) + Rational(Int64(offsets[frame]))
      moved = time + offset / Rational(rate)
    }
    let start = common.range?.start ?? .zero
    let played = moved * speed
    guard speed < .zero else { return start + played }
    return try start - length() * speed + played
  }
}

/// The timeline tree, written as OpenTimelineIO JSON.
extension TimelineItem {
  private static func time(_ seconds: Rational) -> String {
    """
    {"OTIO_SCHEMA": "RationalTime.1", "value": \(seconds.numerator), "rate": \(seconds.denominator)}
    """
  }

  private static func range(_ start: Rational, _ duration: Rational) -> String {
    """
    {"OTIO_SCHEMA": "TimeRange.1", "start_time": \(time(start)), "duration": \(time(duration))}
    """
  }

  private static func members(_ common: Common) -> String {
    var effects = common.speeds.map {
      $0 == .zero
        ? "{\"OTIO_SCHEMA\": \"FreezeFrame.1\"}"
        : "{\"OTIO_SCHEMA\": \"LinearTimeWarp.1\", \"time_scalar\": \($0.doubleValue)}"
    }
    if let (offsets, _) = common.lookup {
      effects.append(
        """
        {"OTIO_SCHEMA": "TimeEffect.1", "effect_name": "TimeWarp",
         "metadata": {"lookup": \(offsets), "length": Infinity}}
        """)
    }
    var range = common.range.map { Self.range($0.start, $0.duration) } ?? "null"
    if let (_, rate) = common.lookup, let found = common.range {
      // The positions on a time curve are frames at the rate of the range.
      let count = found.duration.doubleValue * Double(rate)
      range = """
        {"OTIO_SCHEMA": "TimeRange.1", "start_time": \(time(found.start)), "duration":
         {"OTIO_SCHEMA": "RationalTime.1", "value": \(count), "rate": \(rate)}}
        """
    }
    return """
      "source_range": \(range), "effects": [\(effects.joined(separator: ","))],
      "enabled": \(common.isEnabled), "metadata": {"nothing": [NaN, -Infinity]}
      """
  }

  /// The JSON object of the item.
  ///
  /// With `isOld`, it has the names of the first OpenTimelineIO versions.
  func text(isOld: Bool = false) -> String {
    func list(_ items: [TimelineItem]) -> String {
      "[" + items.map { $0.text(isOld: isOld) }.joined(separator: ",\n") + "]"
    }
    switch self {
    case .clip(let path, let available, let common):
      return """
        {"OTIO_SCHEMA": "Clip.1", \(Self.members(common)), "media_reference":
         {"OTIO_SCHEMA": "ExternalReference.1", "target_url": "\(path)",
          "available_range": \(Self.range(available, Rational(100_000)))}}
        """
    case .gap(let length):
      return """
        {"OTIO_SCHEMA": "\(isOld ? "Filler" : "Gap").1",
         "source_range": \(Self.range(.zero, length))}
        """
    case .track(let children, let common):
      return """
        {"OTIO_SCHEMA": "\(isOld ? "Sequence" : "Track").1", "kind": "Video",
         \(Self.members(common)), "children": \(list(children))}
        """
    case .stack(let children, let common):
      return """
        {"OTIO_SCHEMA": "Stack.1", \(Self.members(common)), "children": \(list(children))}
        """
    case .transition(let before, let after):
      return """
        {"OTIO_SCHEMA": "Transition.1", "in_offset": \(Self.time(before)),
         "out_offset": \(Self.time(after))}
        """
    }
  }
}
