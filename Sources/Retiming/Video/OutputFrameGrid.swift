// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The frames of an export at a constant rate: how many there are, and when each is shown.
///
/// Slot n is at n/f seconds of the composition. There are ceil(D·f) of them for D seconds, but a
/// last slot of which no more than one tick of the source would be left makes no frame: it is
/// there because the source could not say its length any better. Where a tick is longer than half
/// a slot, the nearest number of slots is taken. There is always one.
public struct OutputFrameGrid: Hashable, Sendable {
  /// Frames per second.
  public let rate: FrameRate
  /// How many slots there are; at least one.
  public let count: Int64

  /// Lays out the slots of a composition.
  ///
  /// - Parameters:
  ///   - duration: Seconds, above zero.
  ///   - rate: Frames per second.
  ///   - sourceTick: The unit in which the source's times are given, in seconds of the
  ///     composition; zero or above.
  /// - Throws: `MediaError` with `.invalidMappings` when one of these is out of its range,
  ///   `.notExact` when the number of slots does not fit.
  public init(
    duration: Rational, rate: FrameRate, sourceTick: Rational
  ) throws(MediaError) {
    guard duration > .zero, sourceTick >= .zero else {
      throw MediaError(
        .invalidMappings,
        "\(duration.displayText) s in ticks of \(sourceTick.displayText) s cannot be cut into frames"
      )
    }
    let what = "the number of frames of \(duration.displayText) s at \(rate) fps"
    let slots = try (duration * rate.framesPerSecond).exact(what)
    let whole = try slots.rounded(.towardNegativeInfinity)
    let remainder = try ((slots - Rational(whole)) / rate.framesPerSecond).exact(what)
    let half = try (Rational(1, over: 2) / rate.framesPerSecond).exact(what)
    let needsPart = remainder > sourceTick || remainder >= half
    let (counted, overflow) = whole.addingReportingOverflow(needsPart ? 1 : 0)
    guard !overflow, let count = Int64(exactly: max(1, counted)) else {
      throw MediaError(.notExact, "\(what) does not fit 64 bits")
    }
    self.rate = rate
    self.count = count
  }

  /// When a slot is shown, in seconds of the composition.
  public func seconds(of slot: Int64) -> Rational {
    // 64 and 32 bits over 32: always fits, and the rate is above zero.
    let above = Int128(slot) * Int128(rate.denominator)
    return Rational(above, over: Int128(rate.numerator))
  }

  /// The number of slots before an instant, in seconds of the composition.
  ///
  /// - Throws: `MediaError` with `.notExact` when it cannot be computed exactly.
  package func count(before time: Rational) throws(MediaError) -> Int64 {
    let position = try (time * rate.framesPerSecond).exact("the slot at \(time.displayText) s")
    let before = try position.rounded(.towardPositiveInfinity)
    return Int64(clamping: min(max(before, 0), Int128(count)))
  }
}
