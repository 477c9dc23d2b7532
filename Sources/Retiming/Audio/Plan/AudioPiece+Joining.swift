// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

extension AudioPiece {
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
