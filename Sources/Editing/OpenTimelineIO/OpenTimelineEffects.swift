// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The time effects of an OpenTimelineIO item.
struct OpenTimelineEffects {
  /// Seconds of content per second of the item: negative for reverse playback, 1 without effects.
  private var speed = Rational.one
  /// The offset added to the content time of each frame of the item, in frames; nil if no effect
  /// has a curve.
  private var offsets: [Rational]?
  /// The names of the effects that change the image, which are not supported and left out.
  private(set) var leftOut: [String] = []

  /// True if the effects leave the timing unchanged, false if they change it.
  var isNone: Bool { speed == .one && offsets == nil }

  /// - Throws: `MediaError` with `.invalidProject` for a time effect of another program whose curve
  ///   is not in the project. Ignoring the effect would show other frames.
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
            "\(location) has several curves, or a curve with invalid numbers")
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
      throw MediaError.invalidProject("\(location) has the unsupported speed \(number)")
    }
    return scalar
  }

  /// Returns true if the name of an effect, of any program, suggests that it changes the timing,
  /// and false otherwise.
  private static func isAboutTime(_ name: String) -> Bool {
    let letters = name.lowercased().filter(\.isLetter)
    return ["timewarp", "timeeffect", "freezeframe", "timeremap", "retime", "speed"]
      .contains { letters.contains($0) }
  }

  /// Returns the curve from an item's time to its content's time; forward playback starts at
  /// `start`.
  ///
  /// Reverse playback starts at the end of the range that forward playback would cover. Offsets are
  /// given per frame; times between frames are interpolated linearly.
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
      throw MediaError.invalidProject("\(location) has a curve but no frame rate")
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
      // The last frame would end where the next frame starts, but the table has no next frame. The
      // start of the next frame is extrapolated linearly from the last two frames.
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
    // The curve covers whole frames. If the item ends inside its last frame, the last part is cut
    // there.
    if let last = parts.last, last.end > duration {
      let share = (duration - last.start) / (last.end - last.start)
      parts[parts.count - 1].to = (last.to - last.from) * share + last.from
      parts[parts.count - 1].end = duration
    }
    return parts
  }
}
