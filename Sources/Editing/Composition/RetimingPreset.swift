// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Slow-motion presets around one instant of a clip.
///
/// If the clip starts or ends too close to the instant for a whole ramp, only a part of the ramp
/// plays.
public enum RetimingPreset: String, Hashable, Sendable, CaseIterable {
  /// An impact: slows down before the instant and speeds up again after it.
  case impact
  /// A landing: slows down up to the instant, stays slow, then returns to full speed in one step.
  case landing
  /// A frozen frame at the instant, without audio.
  case freeze
  /// A pulse: fast before the instant, slow around it, and fast after it.
  case pulse

  /// The default width: the source duration of the slow part, or the duration of a frozen frame.
  private var usualWidth: MediaTime {
    switch self {
    case .impact: MediaTime(microseconds: 300_000)
    case .landing: MediaTime(microseconds: 250_000)
    case .freeze: MediaTime(seconds: 1)
    case .pulse: MediaTime(microseconds: 200_000)
    }
  }

  /// Returns the speed points: the time relative to the instant in source seconds, and the speed.
  ///
  /// The width sets the duration of the slow part only. The ramps before and after it have fixed
  /// durations.
  private func points(_ slow: Speed, _ width: Rational) -> [(seconds: Rational, speed: Speed)] {
    func share(_ above: Int128, _ below: Int128, _ milliseconds: Int128) -> Rational {
      width * Rational(above, over: below) + Rational(milliseconds, over: 1_000)
    }
    let fast = Speed(2)
    return switch self {
    case .impact:
      [
        (share(-1, 3, -300), .normal), (share(-1, 3, 0), slow), (share(2, 3, 0), slow),
        (share(2, 3, 300), .normal),
      ]
    case .landing:
      [
        (share(0, 1, -500), .normal), (share(0, 1, 0), slow), (share(1, 1, 0), slow),
        (share(1, 1, 0), .normal),
      ]
    case .freeze: []
    case .pulse:
      [
        (share(-1, 2, -700), .normal), (share(-1, 2, -400), fast), (share(-1, 2, 0), slow),
        (share(1, 2, 0), slow), (share(1, 2, 400), fast), (share(1, 2, 700), .normal),
      ]
    }
  }

  /// Returns a composition of a whole source with this preset.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - time: The instant in source time.
  ///   - slowSpeed: The speed of the slow part; nil for 1/8. ``freeze`` ignores the speed.
  ///   - width: The source duration of the slow part, above zero. Default: 0.3 s for ``impact``, of
  ///     which a third lies before the instant; 0.25 s for ``landing``, all after the instant; 0.2
  ///     s for ``pulse``, half of it before the instant. For ``freeze``, `width` is the duration of
  ///     the frozen frame, by default 1 s.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.outsideSource`, `.emptyRange` for a width that is not above
  ///   zero, or `.notExact`.
  public func composition(
    of source: MediaSource, at time: MediaTime, slowSpeed: Speed? = nil, width: MediaTime? = nil
  ) throws(MediaError) -> Composition {
    guard time >= .zero, time <= source.duration else {
      throw MediaError(
        .outsideSource,
        "\(time.displayText) s is not inside \(source.path), which ends at "
          + "\(source.duration.displayText) s")
    }
    let width = width ?? usualWidth
    guard width > .zero else {
      throw MediaError(.emptyRange, "a width of \(width.displayText) s is not above zero")
    }
    if self == .freeze {
      var composition = Composition(source)
      try composition.freezeFrame(at: time, for: width)
      return composition
    }
    let moved = try exactly("the preset \(rawValue) at \(time.displayText)") {
      () throws(MediaError) in
      try points(slowSpeed ?? Speed(1, over: 8), width.seconds).map { (point) throws(MediaError) in
        let position = try (time.seconds + point.seconds).checked("a point of the preset")
        return Composition.SpeedPoint(
          try MediaTime(min(max(position, .zero), source.duration.seconds)), point.speed)
      }
    }
    return try .ramped(source, points: moved, easing: .easeInOut)
  }
}
