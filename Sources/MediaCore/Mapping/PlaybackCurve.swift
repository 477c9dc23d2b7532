// SPDX-License-Identifier: Apache-2.0

/// What plays along a ramp, in numbers for signal processing: positions in the source by positions
/// in the output, each counted from an origin near to it.
///
/// The curve itself, not lines that follow it; past its ends it goes on at the speeds that it has
/// there. A Double is exact enough where an error of a billionth is none. Boundaries are counted
/// in whole numbers elsewhere.
package struct PlaybackCurve: Sendable {
  /// What has played after a share of the whole ramp: a sum of these times the share's powers.
  private let coefficients: [Double]
  /// The part of the ramp that plays, of 0 to 1.
  private let lower: Double
  private let length: Double
  /// Where it plays, in the output.
  private let start: Double
  private let outputLength: Double
  /// The source at the ramp's share of zero, and how much of it the whole ramp plays.
  private let wholeStart: Double
  private let wholeLength: Double
  /// The source at both ends of the part.
  private let sources: (first: Double, last: Double)
  /// Source positions for each output position, at the start and at the end.
  package let speeds: (first: Double, last: Double)

  /// Makes the curve of a ramp that plays forwards; nil for anything else.
  ///
  /// - Parameters:
  ///   - mapping: The ramp, or a part of one.
  ///   - perSecond: Positions in a second, of the source and of the output.
  ///   - source: The position in the source that counts as zero.
  ///   - output: The position in the output that counts as zero.
  /// - Throws: `MediaError` with `.overflow` for speeds whose ratio does not fit.
  package init?(
    _ mapping: PlaybackMapping, perSecond: Int64, source: Rational, output: Rational
  ) throws(MediaError) {
    guard case .ramp(let ramp) = mapping.motion, !mapping.isReversed else { return nil }
    let polynomial = try ramp.shareOfSource()
    coefficients = polynomial.coefficients.map { Double($0) / Double(polynomial.divisor) }
    // Differences before they are rounded, where they are small.
    func place(_ time: Rational, from origin: Rational) -> Double {
      let scale = Rational(perSecond)
      let exact = time * scale - origin
      return exact.isValid
        ? exact.doubleValue : time.doubleValue * Double(perSecond) - origin.doubleValue
    }
    lower = mapping.part.lower.doubleValue
    let part = mapping.part.upper - mapping.part.lower
    length = part.isValid ? part.doubleValue : mapping.part.upper.doubleValue - lower
    start = place(mapping.target.start.seconds, from: output)
    outputLength = place(mapping.target.end.seconds, from: output) - start
    wholeStart = place(mapping.whole.start.seconds, from: source)
    wholeLength = place(mapping.whole.end.seconds, from: source) - wholeStart
    sources = (
      place(mapping.sourceStart, from: source), place(mapping.sourceEnd, from: source)
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

  /// The source position that plays at a position of the output.
  package func source(at output: Double) -> Double {
    let distance = output - start
    if distance <= 0 { return sources.first + distance * speeds.first }
    if distance >= outputLength { return sources.last + (distance - outputLength) * speeds.last }
    let share = lower + length * (distance / outputLength)
    return wholeStart + wholeLength * coefficients.reversed().reduce(0) { $0 * share + $1 }
  }

  /// Source positions for each output position, at a position of the output.
  package func speed(atOutput output: Double) -> Double {
    let part = min(max((output - start) / outputLength, 0), 1)
    return Self.slope(coefficients, at: lower + length * part) * wholeLength * length
      / outputLength
  }

  /// The position in the output at which a source position plays.
  package func output(at source: Double) -> Double {
    if source <= sources.first { return start + (source - sources.first) / speeds.first }
    if source >= sources.last {
      return start + outputLength + (source - sources.last) / speeds.last
    }
    // Newton's steps, as long as they stay between what is known to be before and behind.
    var (low, high) = (start, start + outputLength)
    var place =
      low + (high - low) * (source - sources.first) / (sources.last - sources.first)
    for _ in 0..<60 {
      let error = self.source(at: place) - source
      if error > 0 { high = place } else { low = place }
      let step = error / speed(atOutput: place)
      if step.magnitude < 1e-9 { break }
      let next = place - step
      place = low < next && next < high ? next : (low + high) / 2
    }
    return place
  }
}

extension PlaybackMapping {
  /// Source seconds per composition second at an instant: exact where that fits, else to a part in
  /// a trillion.
  ///
  /// For what plays forwards, and not for what is held.
  ///
  /// - Throws: `MediaError` with `.overflow` when not even that fits.
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
