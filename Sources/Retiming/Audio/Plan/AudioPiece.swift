// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// One piece of the output and where its samples come from.
struct AudioPiece: Hashable, Sendable {
  enum Content: Hashable, Sendable {
    /// No source plays.
    case silence
    /// The source at speed 1: its samples as they are.
    case copy
    /// The source at another speed.
    case retimed
  }

  let content: Content
  /// The first output sample, and the first one after.
  var samples: Range<Int64>
  /// The source position, in samples, that plays at the first output sample; not always whole.
  let position: Rational
  /// Source samples for each output sample.
  let speed: Speed
  /// Samples per second, in hertz.
  let sampleRate: Int
  /// Where the speed changes later on, while the source runs on; ascending.
  var breakpoints: [Breakpoint] = []
  /// The source sample that comes first, and the one that follows the last, where a neighbour at
  /// speed 1 runs on from or into this piece: to be met exactly.
  var entry: Int64?
  var exit: Int64?
  /// How many samples to make before the first and after the last one, for the fades at the
  /// joins with the neighbours.
  var lead: Int64 = 0
  var tail: Int64 = 0
  /// How many of the samples made overlap with the next piece's.
  var overlap: Int64 = 0
  /// Where its samples come from.
  var source = AudioSegment.Source()

  /// A point at which another speed starts.
  struct Breakpoint: Hashable, Sendable {
    /// How far it is from the piece's first sample, in samples; not always whole.
    let output: Rational
    /// The source position that plays there, in samples.
    let source: Rational
    /// Source samples for each output sample, from there on.
    let speed: Speed
    /// The ramp that starts there, with that speed; nil for what plays at one speed.
    var ramp: PlaybackMapping?
  }

  /// Whether its speed changes without a step.
  var hasRamp: Bool { breakpoints.contains { $0.ramp != nil } }

  /// The source sample that a piece at speed 1 starts with.
  func firstCopied() throws(MediaError) -> Int64 {
    try position.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
  }

  /// How many samples to make.
  var length: Int64 { lead + Int64(samples.count) + tail }

  /// Source samples for each output sample, at the end.
  var lastSpeed: Speed { breakpoints.last?.speed ?? speed }

  /// The source position that plays at a sample not inside the piece, counted from the first one.
  func position(at sample: Int64) throws(MediaError) -> Rational {
    // A boundary is its nearest sample, which may come before the breakpoint that lies there.
    let near = try (Rational(sample) + Rational(1, over: 2)).exact("a position in the source")
    let breakpoint = breakpoints.last { $0.output <= near }
    let speed = breakpoint?.speed ?? speed
    let distance = Rational(sample) - (breakpoint?.output ?? .zero)
    return try ((breakpoint?.source ?? position) + speed.fraction * distance)
      .exact("a position in the source")
  }
}
