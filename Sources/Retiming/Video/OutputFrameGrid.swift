// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The output frames of a constant-rate export.
///
/// At a rate of f frames per second, frame n is shown at n/f seconds. A duration of D seconds has
/// ceil(D·f) frames. D may exceed a whole number of frames by up to one source tick, because source
/// durations are rounded to ticks. Such an excess adds no frame. If a tick is longer than half an
/// output period, D·f is rounded to the nearest integer instead. There is at least one frame.
public struct OutputFrameGrid: Hashable, Sendable {
  /// The frame rate of the export.
  public let rate: FrameRate
  /// The number of output frames; at least one.
  public let count: Int64

  /// Creates the output frames of a composition.
  ///
  /// - Parameters:
  ///   - duration: The duration in seconds, above zero.
  ///   - rate: The frame rate.
  ///   - sourceTick: The duration of one tick of the source's time base after retiming, in
  ///     composition seconds; zero or above.
  /// - Throws: `MediaError` with `.invalidMappings` for an argument out of range, `.notExact` if
  ///   the number of frames does not fit.
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
      throw MediaError(.notExact, "\(what) exceeds 64 bits")
    }
    (self.rate, self.count) = (rate, count)
  }

  /// Returns the time of an output frame in composition seconds.
  public func seconds(of slot: Int64) -> Rational {
    // The product of a 64-bit and a 32-bit number always fits in 128 bits.
    let above = Int128(slot) * Int128(rate.denominator)
    return Rational(above, over: Int128(rate.numerator))
  }

  /// Returns the number of output frames before a time in composition seconds.
  ///
  /// - Throws: `MediaError` with `.notExact` if the number cannot be computed exactly.
  package func count(before time: Rational) throws(MediaError) -> Int64 {
    let position = try (time * rate.framesPerSecond).exact("the slot at \(time.displayText) s")
    let before = try position.rounded(.towardPositiveInfinity)
    return Int64(clamping: min(max(before, 0), Int128(count)))
  }
}
