// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// What the effects of an item do to its time.
struct OpenTimelineEffects {
  /// Seconds of content per second, below zero backwards; 1 without effects.
  private var speed = Rational.one
  /// Frames by which each frame of the item is off, from the first one on; nil without a curve.
  private var offsets: [Rational]?
  /// The names of effects that change pictures, which are not made here.
  private(set) var leftOut: [String] = []

  /// Whether all plays as it is.
  var isNone: Bool { speed == .one && offsets == nil }

  /// - Throws: `MediaError` with `.invalidProject` for an effect on time whose curve the
  ///   project does not give: at speed 1 something else would be seen.
  init(_ item: JSONValue, _ location: String) throws(MediaError) {
    for effect in try item.otioItems("effects", location) {
      guard try effect.otioIsEnabled("an effect of \(location)") else { continue }
      let kind = effect.otioKind
      let name = effect["effect_name"]?.string ?? ""
      guard Self.isAboutTime(kind) || Self.isAboutTime(name) else {
        leftOut.append(name.isEmpty ? kind : name)
        continue
      }
      if let values = effect["metadata"]?["lookup"] {
        let found = values.elements.compactMap { $0.number.flatMap(ProjectTime.nearest) }
        guard offsets == nil, !found.isEmpty, found.count == values.elements.count else {
          throw MediaError.invalidProject(
            "the curves of \(location) are more than one, or not made of numbers")
        }
        offsets = found
      } else if kind == "FreezeFrame" {
        speed = .zero
      } else {
        speed = try speed * Self.scalar(effect, kind, location)
      }
    }
  }

  private static func scalar(
    _ effect: JSONValue, _ kind: String, _ location: String
  ) throws(MediaError) -> Rational {
    if kind == "LinearTimeWarp", effect["time_scalar"] == nil { return .one }
    if let value = effect["time_scalar"], value.number == nil {
      throw value.otioUnreadable("time_scalar", of: "an effect of \(location)")
    }
    guard let number = effect["time_scalar"]?.number else {
      let name = effect["effect_name"]?.string ?? ""
      throw MediaError.invalidProject(
        "\(location) has the time effect \(name.isEmpty ? kind : name), "
          + "whose curve is not in the project")
    }
    guard let scalar = ProjectTime.nearest(number), number == 0 || (1e-6...1e6 ~= abs(number))
    else {
      throw MediaError.invalidProject("\(location) plays at the speed \(number)")
    }
    return scalar
  }

  /// Whether a name is that of an effect on time, of OpenTimelineIO's own or of a program.
  private static func isAboutTime(_ name: String) -> Bool {
    let letters = name.lowercased().filter(\.isLetter)
    return ["timewarp", "timeeffect", "freezeframe", "timeremap", "retime", "speed"]
      .contains { letters.contains($0) }
  }

  /// The curve of an item whose content starts at a time of its own.
  ///
  /// What plays backwards starts at the end of what its range would play forwards. Offsets are
  /// given for each frame; in between they follow the line.
  func curve(
    from start: Rational, lasting duration: Rational, _ rate: Rational?, _ location: String
  ) throws(MediaError) -> [ProjectContent.CurvePart] {
    let length = duration * speed
    let first = length < .zero ? start - length : start
    guard let offsets else {
      return [
        ProjectContent.CurvePart(
          start: .zero, end: duration, from: first, to: first + length)
      ]
    }
    guard let rate else {
      throw MediaError.invalidProject("\(location) has a curve, but no rate of frames")
    }
    let count = try (duration * rate).rounded(.towardPositiveInfinity)
    guard count <= offsets.count else {
      throw MediaError.invalidProject(
        "the curve of \(location) has \(offsets.count) values for \(count) frames")
    }
    func content(_ frame: Int) throws(MediaError) -> Rational {
      if frame < offsets.count {
        return (Rational(Int64(frame)) + offsets[frame]) / rate * speed + first
      }
      // Past the last value it goes on as it went.
      guard frame > 1 else { return first + speed / rate }
      let (last, before) = (try content(frame - 1), try content(frame - 2))
      return last + last - before
    }
    var parts: [ProjectContent.CurvePart] = []
    for frame in 0..<Int(count) {
      let (from, to) = (try content(frame), try content(frame + 1))
      let begin = Rational(Int64(frame)) / rate
      let end = Rational(Int64(frame + 1)) / rate
      if let last = parts.last,
        (last.to - last.from) / (last.end - last.start)
          == (to - from) * rate
      {
        parts[parts.count - 1].end = end
        parts[parts.count - 1].to = to
      } else {
        parts.append(ProjectContent.CurvePart(start: begin, end: end, from: from, to: to))
      }
    }
    // The item may end inside its last frame.
    if let last = parts.last, last.end > duration {
      let share = (duration - last.start) / (last.end - last.start)
      parts[parts.count - 1].to = (last.to - last.from) * share + last.from
      parts[parts.count - 1].end = duration
    }
    return parts
  }
}
