// SPDX-License-Identifier: Apache-2.0

import MediaTiming

/// Which source position plays at each output sample of a piece, and the other way round: straight
/// lines that meet, which go on past both ends.
///
/// Positions are numbers of samples from those at which the piece starts, exact enough for signal
/// processing: a Double holds a week of sound at 192 kHz to a millionth of a sample. Whole samples
/// and boundaries are counted elsewhere, in whole numbers.
struct SpeedMap: Sendable {
  /// A line from one point of source and output on.
  private struct Line: Sendable {
    let output: Double
    let source: Double
    /// Source samples for each output sample.
    let speed: Double
  }

  private let lines: [Line]

  /// The lines of a piece; source positions count from `origin`.
  init(_ piece: AudioPiece, origin: Int64) {
    lines =
      [
        Line(
          output: 0, source: Self.offset(piece.position, from: origin),
          speed: piece.speed.fraction.doubleValue)
      ]
      + piece.knees.map { knee in
        Line(
          output: knee.output.doubleValue, source: Self.offset(knee.source, from: origin),
          speed: knee.speed.fraction.doubleValue)
      }
  }

  /// A difference taken before it is rounded to a Double, where it is small.
  private static func offset(_ position: Rational, from origin: Int64) -> Double {
    (try? position.subtracting(Rational(origin)).doubleValue)
      ?? position.doubleValue - Double(origin)
  }

  /// The least and the most source samples for each output sample.
  var speeds: ClosedRange<Double> {
    let all = lines.map(\.speed)
    return (all.min() ?? 1)...(all.max() ?? 1)
  }

  /// The source position that plays at an output sample.
  func source(at output: Double) -> Double {
    let line = lines[index { $0.output <= output }]
    return line.source + (output - line.output) * line.speed
  }

  /// The output sample at which a source position plays.
  func output(at source: Double) -> Double {
    let line = lines[index { $0.source <= source }]
    return line.output + (source - line.source) / line.speed
  }

  /// Source samples for each output sample, where a source position plays.
  func speed(at source: Double) -> Double {
    lines[index { $0.source <= source }].speed
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
