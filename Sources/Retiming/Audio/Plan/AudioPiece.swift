// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// One piece of the audio output, rendered by one renderer.
struct AudioPiece: Hashable, Sendable {
  enum Content: Hashable, Sendable {
    /// Silence without a source.
    case silence
    /// Source samples copied at speed 1.
    case copy
    /// Source samples rendered at another speed.
    case retimed
  }

  let content: Content
  /// The output samples of the piece.
  var samples: Range<Int64>
  /// The source position of the first output sample, in samples; may be fractional.
  let position: Rational
  /// Source samples per output sample.
  let speed: Speed
  /// The sampling rate in hertz.
  let sampleRate: Int
  /// Later speed changes inside the piece, in ascending order.
  var breakpoints: [Breakpoint] = []
  /// The source samples at which the piece joins neighbors that play at speed 1; nil without such a
  /// neighbor.
  ///
  /// A neighbor at speed 1 copies source samples. For a join without a click, the piece starts
  /// exactly at source sample `entry` and ends just before source sample `exit`.
  var entry: Int64?
  var exit: Int64?
  /// Extra samples to render before the first sample (`lead`) and after the last one (`tail`), for
  /// crossfades with neighbors.
  var lead: Int64 = 0
  var tail: Int64 = 0
  /// The number of rendered samples that overlap with the next piece.
  var overlap: Int64 = 0
  /// The source of the samples.
  var source = AudioSegment.Source()

  /// A point where the speed changes.
  struct Breakpoint: Hashable, Sendable {
    /// The distance from the piece's first output sample, in samples; may be fractional.
    let output: Rational
    /// The source position at this point, in samples.
    let source: Rational
    /// Source samples per output sample from this point on.
    let speed: Speed
    /// The ramp that starts at this point; nil for a constant speed.
    var ramp: PlaybackMapping?
  }

  /// Whether the piece contains a speed ramp.
  var hasRamp: Bool { breakpoints.contains { $0.ramp != nil } }

  /// Returns the first source sample of a piece at speed 1.
  func firstCopied() throws(MediaError) -> Int64 {
    try position.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
  }

  /// The number of samples to render, including lead and tail.
  var length: Int64 { lead + Int64(samples.count) + tail }

  /// The speed at the end of the piece.
  var lastSpeed: Speed { breakpoints.last?.speed ?? speed }

  /// Returns the source position of an output sample, counted from the piece's first sample.
  ///
  /// Use it only for samples before the piece, or at its end and later. Inside the piece it would
  /// treat a ramp as a constant speed.
  func position(at sample: Int64) throws(MediaError) -> Rational {
    // A piece ends at a whole sample, which may lie up to half a sample before the breakpoint at
    // the exact end of the piece. Half a sample is added, so that this breakpoint is included.
    let near = try (Rational(sample) + Rational(1, over: 2)).exact("a position in the source")
    let breakpoint = breakpoints.last { $0.output <= near }
    let speed = breakpoint?.speed ?? speed
    let distance = Rational(sample) - (breakpoint?.output ?? .zero)
    return try ((breakpoint?.source ?? position) + speed.fraction * distance)
      .exact("a position in the source")
  }

  /// Joins a piece and its successor without a click.
  ///
  /// If the source continues and the algorithm can continue the source, the pieces meet at the same
  /// source sample. Otherwise they overlap for a crossfade. The crossfade lies inside a retimed
  /// piece and takes at most half of it. Content at speed 1 stays bit-exact.
  static func join(
    _ first: inout AudioPiece, _ second: inout AudioPiece, _ algorithm: AudioTimePitchAlgorithm,
    fade longest: Int64
  ) throws(MediaError) {
    guard algorithm != .mute, first.content == .retimed || second.content == .retimed else {
      return
    }
    if algorithm != .spectral, first.content != .silence, second.content != .silence,
      first.source == second.source
    {
      // Piece boundaries are rounded to output samples. So even if the source continues, the source
      // positions of the two pieces may differ by one output sample, which is `speed` source
      // samples.
      let distance = try first.distance(to: second.position).doubleValue.magnitude
      if distance
        <= max(1, first.lastSpeed.fraction.doubleValue, second.speed.fraction.doubleValue),
        try meet(&first, &second, algorithm)
      {
        return
      }
    }
    if second.content == .retimed {
      let length = min(longest, Int64(second.samples.count) / 2)
      first.tail = length
      first.overlap = length
    } else {
      let length = min(longest, Int64(first.samples.count) / 2)
      second.lead = length
      first.overlap = length
    }
  }

  /// Makes a piece and its successor meet at the same source sample.
  ///
  /// Returns true if the pieces now meet, and false if the algorithm cannot do this.
  private static func meet(
    _ first: inout AudioPiece, _ second: inout AudioPiece, _ algorithm: AudioTimePitchAlgorithm
  ) throws(MediaError) -> Bool {
    // Varispeed renders fractional source positions exactly, so both pieces already meet.
    if algorithm == .varispeed { return true }
    if first.content == .copy {
      second.entry = try first.firstCopied() + Int64(first.samples.count)
      return true
    }
    guard second.content == .copy else { return false }
    first.exit = try second.firstCopied()
    return true
  }

  /// Returns the distance from the end of the piece to a position, in source samples.
  func distance(to position: Rational) throws(MediaError) -> Rational {
    let end = try self.position(at: Int64(samples.count))
    return try (position - end).exact("a position in the source")
  }
}
