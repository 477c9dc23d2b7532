// SPDX-License-Identifier: Apache-2.0

/// A speed ramp as a floating-point function from output position to source position, for signal
/// processing.
///
/// The ramp's polynomial is evaluated directly and not approximated by straight lines. Before the
/// ramp, the curve continues at the start speed, and after the ramp at the end speed. Positions are
/// relative to origins near the ramp, so that they stay small. `Double` then has errors of about
/// 1e-9 positions, which are inaudible. Do not use these positions for cuts, which need exact
/// positions.
package struct PlaybackCurve: Sendable {
  /// The polynomial from the played fraction of the ramp's output to the played fraction of the
  /// ramp's source, both from 0 to 1.
  ///
  /// The constant term is first.
  private let coefficients: [Double]
  /// The start and the length of the part of the ramp that the mapping plays, as fractions of the
  /// output duration of the whole ramp.
  private let lower: Double
  private let length: Double
  /// The output position at which the mapping starts, and the mapping's length in output positions.
  private let start: Double
  private let outputLength: Double
  /// The source position at which the whole ramp starts, and the whole ramp's length in source
  /// positions.
  private let wholeStart: Double
  private let wholeLength: Double
  /// The source positions at the start and the end of the mapping.
  private let sources: (first: Double, last: Double)
  /// Speeds at the start and the end of the mapping, in source positions per output position.
  package let speeds: (first: Double, last: Double)

  /// Makes the curve of a forward ramp; nil for every other mapping.
  ///
  /// - Parameters:
  ///   - mapping: The ramp or a part of one.
  ///   - perSecond: Positions per second, in both source and output.
  ///   - source: The source position that counts as zero.
  ///   - output: The output position that counts as zero.
  /// - Throws: `MediaError` with `.overflow` when the ratio of the ramp's speeds does not fit
  ///   128-bit integers.
  package init?(
    _ mapping: PlaybackMapping, perSecond: Int64, source: Rational, output: Rational
  ) throws(MediaError) {
    guard case .ramp(let ramp) = mapping.motion, !mapping.isReversed else { return nil }
    let polynomial = try ramp.shareOfSource()
    coefficients = polynomial.coefficients.map { Double($0) / Double(polynomial.divisor) }
    // The exact numbers are subtracted first. Their difference is small, so `Double` represents it
    // precisely.
    func seconds(_ time: Rational, from origin: Rational) -> Double {
      let scale = Rational(perSecond)
      let exact = time * scale - origin
      return exact.isValid
        ? exact.doubleValue : time.doubleValue * Double(perSecond) - origin.doubleValue
    }
    lower = mapping.part.lower.doubleValue
    let part = mapping.part.upper - mapping.part.lower
    length = part.isValid ? part.doubleValue : mapping.part.upper.doubleValue - lower
    start = seconds(mapping.target.start.seconds, from: output)
    outputLength = seconds(mapping.target.end.seconds, from: output) - start
    wholeStart = seconds(mapping.whole.start.seconds, from: source)
    wholeLength = seconds(mapping.whole.end.seconds, from: source) - wholeStart
    sources = (
      seconds(mapping.sourceStart, from: source), seconds(mapping.sourceEnd, from: source)
    )
    let scale = wholeLength * length / outputLength
    speeds = (
      Self.slope(coefficients, at: lower) * scale,
      Self.slope(coefficients, at: lower + length) * scale
    )
  }

  private static func slope(_ coefficients: [Double], at share: Double) -> Double {
    var slope = 0.0
    for power in coefficients.indices.dropFirst().reversed() {
      slope = slope * share + coefficients[power] * Double(power)
    }
    return slope
  }

  /// Returns the source position that plays at an output position.
  package func source(at output: Double) -> Double {
    let distance = output - start
    if distance <= 0 { return sources.first + distance * speeds.first }
    if distance >= outputLength { return sources.last + (distance - outputLength) * speeds.last }
    let share = lower + length * (distance / outputLength)
    return wholeStart + wholeLength * coefficients.reversed().reduce(0) { $0 * share + $1 }
  }

  /// Returns the speed at an output position, in source positions per output position.
  package func speed(atOutput output: Double) -> Double {
    let part = min(max((output - start) / outputLength, 0), 1)
    return Self.slope(coefficients, at: lower + length * part) * wholeLength * length
      / outputLength
  }

  /// Returns the output position at which a source position plays.
  package func output(at source: Double) -> Double {
    if source <= sources.first { return start + (source - sources.first) / speeds.first }
    if source >= sources.last {
      return start + outputLength + (source - sources.last) / speeds.last
    }
    // Newton's method. `low` and `high` enclose the solution; a step beyond them is replaced by the
    // middle between them.
    var (low, high) = (start, start + outputLength)
    var seconds =
      low + (high - low) * (source - sources.first) / (sources.last - sources.first)
    for _ in 0..<60 {
      let error = self.source(at: seconds) - source
      if error > 0 { high = seconds } else { low = seconds }
      let step = error / speed(atOutput: seconds)
      if step.magnitude < 1e-9 { break }
      let next = seconds - step
      seconds = low < next && next < high ? next : (low + high) / 2
    }
    return seconds
  }
}

extension PlaybackMapping {
  /// Returns the speed at an instant, in source seconds per composition second.
  ///
  /// The result is exact if it is a fraction of 128-bit integers; otherwise its error is below
  /// 1e-12.
  ///
  /// The mapping must play forward and must not be a hold.
  ///
  /// - Throws: `MediaError` with `.overflow` when neither the exact speed nor the approximation
  ///   fits.
  package func nearSpeed(at time: Rational) throws(MediaError) -> Speed {
    if let exact = try? speed(at: time) { return try Speed(exact) }
    let curve = try PlaybackCurve(self, perSecond: 1, source: .zero, output: .zero)
    let value = (curve?.speed(atOutput: time.doubleValue) ?? 0) * 0x1p40
    guard value >= 1, let above = Int64(exactly: value.rounded()) else {
      throw .overflow("the speed at \(time.displayText) s")
    }
    return try Speed(Rational(Int128(above), over: 1 << 40))
  }
}
