// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Ways to slow a clip down around one instant that people ask for by name.
///
/// Where the clip begins or ends too near to the instant, ramps are as long as there is room.
public enum RetimingPreset: String, Hashable, Sendable, CaseIterable {
  /// A blow or a kick: eased down to an eighth before it, through it, and up again.
  case impact
  /// A jump that lands: eased down to an eighth up to it, a quarter of a second of that, and on
  /// at once at full speed.
  case landing
  /// The picture stands for a second at the instant, in silence.
  case freeze
  /// Faster up to it, an eighth through it, and faster away from it.
  case pulse

  /// How long the slow part lasts in the time of the source, or the picture stands, unless another
  /// width is asked for.
  private var usualWidth: MediaTime {
    switch self {
    case .impact: MediaTime(microseconds: 300_000)
    case .landing: MediaTime(microseconds: 250_000)
    case .freeze: MediaTime(seconds: 1)
    case .pulse: MediaTime(microseconds: 200_000)
    }
  }

  /// The speeds around the instant: seconds of the source from it, and the speed there.
  ///
  /// Ramps are as long whatever the width is.
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

  /// Makes a composition that plays a whole source in this way.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - time: The instant, in the time of the source.
  ///   - slowSpeed: The speed of the slow part, an eighth where nil. A ``freeze`` has none, and does
  ///     without.
  ///   - width: How long the slow part lasts in the time of the source, above zero: 0.3 s for an
  ///     ``impact``, a third of it before the instant; 0.25 s for a ``landing``, all of it after the
  ///     instant; 0.2 s for a ``pulse``, half of it on either side. For a ``freeze`` how long the
  ///     picture stands: 1 s.
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
    let placed = try exactly("the preset \(rawValue) at \(time.displayText)") {
      () throws(MediaError) in
      try points(slowSpeed ?? Speed(1, over: 8), width.seconds).map { (point) throws(MediaError) in
        let position = try (time.seconds + point.seconds).checked("a point of the preset")
        return Composition.SpeedPoint(
          try MediaTime(min(max(position, .zero), source.duration.seconds)), point.speed)
      }
    }
    return try .ramped(source, points: placed, easing: .easeInOut)
  }
}
