// SPDX-License-Identifier: Apache-2.0

public import MediaTiming

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

  /// The speeds around the instant: seconds of the source from it, and the speed there.
  private var points: [(milliseconds: Int64, speed: Int64, over: Int64)] {
    switch self {
    case .impact: [(-400, 1, 1), (-100, 1, 8), (200, 1, 8), (500, 1, 1)]
    case .landing: [(-500, 1, 1), (0, 1, 8), (250, 1, 8), (250, 1, 1)]
    case .freeze: []
    case .pulse:
      [(-800, 1, 1), (-500, 2, 1), (-100, 1, 8), (100, 1, 8), (500, 2, 1), (800, 1, 1)]
    }
  }

  /// Makes a composition that plays a whole source in this way.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - time: The instant, in the time of the source.
  /// - Returns: The composition.
  /// - Throws: `EditingError` with `.outsideSource`, or `.notExact`.
  public func composition(
    of source: MediaSource, at time: MediaTime
  ) throws(EditingError) -> Composition {
    guard time >= .zero, time <= source.duration else {
      throw EditingError(
        .outsideSource,
        "\(time.secondsText) s is not inside \(source.path), which ends at "
          + "\(source.duration.secondsText) s")
    }
    if self == .freeze {
      var composition = Composition(source)
      try composition.freezeFrame(at: time, for: MediaTime(seconds: 1))
      return composition
    }
    let placed = try exactly("the preset \(rawValue) at \(time)") { () throws(TimingError) in
      try points.map { (point) throws(TimingError) in
        Composition.SpeedPoint(
          min(
            max(try time + MediaTime(microseconds: point.milliseconds * 1_000), .zero),
            source.duration),
          try Speed(Rational(Int128(point.speed), Int128(point.over))))
      }
    }
    return try .ramped(source, points: placed, easing: .eased)
  }
}
