// SPDX-License-Identifier: Apache-2.0

/// The floating-point curve of a speed ramp for signal processing: source position as a function of
/// output position.
///
/// Both positions count from nearby origins. The curve is the exact polynomial, without linear
/// segments. Past its ends the curve continues at the end speeds. `Double` suffices, since errors
/// of 1e-9 are inaudible; cut positions are computed in whole numbers elsewhere.
package struct PlaybackCurve: Sendable {
  /// Coefficients of the polynomial from output share to source share, both 0 to 1, constant term
  /// first.
  private let coefficients: [Double]
  /// The start and the length of this part of the ramp, within 0 to 1.
  private let lower: Double
  private let length: Double
  /// The output position of the part's start, and its length in the output.
  private let start: Double
  private let outputLength: Double
  /// The source position at the start of the whole ramp, and the whole ramp's source length.
  private let wholeStart: Double
  private let wholeLength: Double
  /// The source positions at the start and the end of this part.
  private let sources: (first: Double, last: Double)
  /// Speeds at the start and the end of this part, in source positions per output position.
  package let speeds: (first: Double, last: Double)

  /// Makes the curve of a forward ramp; nil for every other mapping.
  ///
  /// - Parameters:
  ///   - mapping: The ramp or a part of one.
  ///   - perSecond: Positions per second, in both source and output.
  ///   - source: The source position that counts as zero.
  ///   - output: The output position that counts as zero.
  /// - Throws: `MediaError` with `.overflow` when the ratio of the speeds does not fit.
  package init?(
    _ mapping: PlaybackMapping, perSecond: Int64, source: Rational, output: Rational
  ) throws(MediaError) {
    guard case .ramp(let ramp) = mapping.motion, !mapping.isReversed else { return nil }
    let polynomial = try ramp.shareOfSource()
    coefficients = polynomial.coefficients.map { Double($0) / Double(polynomial.divisor) }
    // Subtracting before converting to `Double` keeps precision, because the difference is small.
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
    // Newton's method, with bisection where a Newton step leaves the bracket.
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
  /// Exact where the fraction fits, else within 1e-12.
  ///
  /// Only for forward mappings that are not a hold.
  ///
  /// - Throws: `MediaError` with `.overflow` when the approximation does not fit either.
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
