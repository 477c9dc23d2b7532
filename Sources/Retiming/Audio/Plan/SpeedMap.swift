// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Which source position plays at each output sample of a piece, and the other way round: straight
/// lines and ramps that meet, which go on past both ends.
///
/// Positions are numbers of samples from those at which the piece starts, exact enough for signal
/// processing: a Double holds a week of sound at 192 kHz to a millionth of a sample. Whole samples
/// and boundaries are counted elsewhere, in whole numbers.
struct SpeedMap: Sendable {
  /// A line from one point of source and output on, or a ramp.
  private struct Line: Sendable {
    let output: Double
    let source: Double
    /// Source samples for each output sample.
    let speed: Double
    var curve: PlaybackCurve?
  }

  private let lines: [Line]

  /// The lines of a piece; source positions count from `origin`.
  init(_ piece: AudioPiece, origin: Int64) throws(MediaError) {
    var lines = [
      Line(
        output: 0, source: Self.offset(piece.position, from: origin),
        speed: piece.speed.fraction.doubleValue)
    ]
    for breakpoint in piece.breakpoints {
      var line = Line(
        output: breakpoint.output.doubleValue, source: Self.offset(breakpoint.source, from: origin),
        speed: breakpoint.speed.fraction.doubleValue)
      if let ramp = breakpoint.ramp {
        line.curve = try exactly("the ramp to \(ramp.target)") { () throws(MediaError) in
          try PlaybackCurve(
            ramp, perSecond: Int64(piece.sampleRate), source: Rational(origin),
            output: Rational(piece.samples.lowerBound))
        }
      }
      // What starts at the first sample, or before it, is there from the first on.
      if lines.count == 1, line.output <= 0 { lines = [] }
      lines.append(line)
    }
    self.lines = lines
  }

  /// A difference taken before it is rounded to a Double, where it is small.
  private static func offset(_ position: Rational, from origin: Int64) -> Double {
    (position - Rational(origin)).ifValid?.doubleValue ?? position.doubleValue - Double(origin)
  }

  /// The least and the most source samples for each output sample.
  var speeds: ClosedRange<Double> {
    // A ramp's speed goes from one end to the other, and never beyond.
    let all = lines.flatMap { line in
      line.curve.map { [$0.speeds.first, $0.speeds.last] } ?? [line.speed]
    }
    return (all.min() ?? 1)...(all.max() ?? 1)
  }

  /// The source position that plays at an output sample.
  func source(at output: Double) -> Double {
    let line = lines[index { $0.output <= output }]
    return line.curve?.source(at: output) ?? line.source + (output - line.output) * line.speed
  }

  /// The output sample at which a source position plays.
  func output(at source: Double) -> Double {
    let line = lines[index { $0.source <= source }]
    return line.curve?.output(at: source) ?? line.output + (source - line.source) / line.speed
  }

  /// Source samples for each output sample, where a source position plays.
  func speed(at source: Double) -> Double {
    let line = lines[index { $0.source <= source }]
    return line.curve.map { $0.speed(atOutput: $0.output(at: source)) } ?? line.speed
  }

  /// Source samples for each output sample, at one of these.
  func speed(atOutput output: Double) -> Double {
    let line = lines[index { $0.output <= output }]
    return line.curve?.speed(atOutput: output) ?? line.speed
  }

  /// The last line of which this is so, or the first one; it is so of a line only if of all before.
  private func index(where isReached: (Line) -> Bool) -> Int {
    var (low, high) = (0, lines.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if isReached(lines[middle]) { low = middle } else { high = middle }
    }
    return low
  }
}
