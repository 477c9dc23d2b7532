// SPDX-License-Identifier: Apache-2.0

import MediaTiming

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
  let samples: Range<Int64>
  /// The source position, in samples, that plays at the first output sample; not always whole.
  let position: Rational
  /// Source samples for each output sample.
  let speed: Speed
  /// How many samples to make before the first and after the last one, for the fades at the
  /// joins with the neighbours.
  var lead: Int64 = 0
  var tail: Int64 = 0
  /// How many of the samples made overlap with the next piece's.
  var overlap: Int64 = 0

  /// How many samples to make.
  var length: Int64 { lead + Int64(samples.count) + tail }

  /// The source position that plays some samples before the first.
  func position(before lead: Int64) throws(RetimingError) -> Rational {
    try exactly("a position in the source") { () throws(TimingError) in
      try position.subtracting(speed.fraction.multiplied(by: Rational(lead)))
    }
  }
}

/// The pieces of an output, which follow each other from sample zero without a hole.
struct AudioPlan: Sendable {
  private(set) var pieces: [AudioPiece] = []
  /// The end of the last one.
  private(set) var sampleCount: Int64

  /// Lays out mappings at their sample positions.
  ///
  /// Every boundary is the instant's own nearest sample, so that no error adds up: a piece is
  /// never longer or shorter than the distance of its boundaries.
  init(
    _ mappings: [TimeMapping], duration: MediaTime?, sampleRate: Int,
    algorithm: AudioTimePitchAlgorithm
  ) throws(RetimingError) {
    let rate = Rational(Int64(sampleRate))
    var end = MediaTime.zero
    sampleCount = 0
    for mapping in mappings {
      guard mapping.target.start >= end else {
        throw RetimingError(
          .invalidMappings, "the sound for \(mapping.target) starts before \(end) s")
      }
      try append(.silence, upTo: Self.sample(at: mapping.target.start, rate))
      try append(mapping, rate, algorithm)
      end = mapping.target.end
    }
    guard let duration else { return }
    guard duration >= end else {
      throw RetimingError(
        .invalidMappings, "the sound ends at \(end) s, after the duration of \(duration) s")
    }
    try append(.silence, upTo: Self.sample(at: duration, rate))
  }

  /// The output sample nearest to an instant.
  private static func sample(
    at time: MediaTime, _ rate: Rational
  ) throws(RetimingError) -> Int64 {
    let position = try exactly("the sample at \(time) s") { () throws(TimingError) in
      try time.seconds.multiplied(by: rate)
    }
    return try position.wholeNumber(.halfAwayFromZero, of: "the sample at \(time) s")
  }

  private mutating func append(
    _ content: AudioPiece.Content, upTo end: Int64, position: Rational = .zero,
    speed: Speed = .normal
  ) {
    defer { sampleCount = max(sampleCount, end) }
    guard end > sampleCount else { return }
    pieces.append(
      AudioPiece(
        content: content, samples: sampleCount..<end, position: position, speed: speed))
  }

  private mutating func append(
    _ mapping: TimeMapping, _ rate: Rational, _ algorithm: AudioTimePitchAlgorithm
  ) throws(RetimingError) {
    let speed = try exactly("the speed of \(mapping.target)") { () throws(TimingError) in
      try mapping.speed()
    }
    guard speed == .normal || algorithm == .mute || AudioRetimer.speeds.contains(speed) else {
      throw RetimingError(
        .speedOutOfRange,
        "sound plays at speeds from \(AudioRetimer.speeds.lowerBound) to "
          + "\(AudioRetimer.speeds.upperBound), and \(mapping.target) is at \(speed); "
          + "at other speeds it can only be muted")
    }
    let end = try Self.sample(at: mapping.target.end, rate)
    let start = sampleCount
    // What plays at the sample, which is not quite at the boundary.
    let position = try exactly("the source of \(mapping.target)") { () throws(TimingError) in
      try mapping.sourceSeconds(of: Rational(start).divided(by: rate)).multiplied(by: rate)
    }
    let continues = try continues(at: position, speed)
    if continues, let last = pieces.popLast() {
      sampleCount = last.samples.lowerBound
      append(last.content, upTo: max(end, start), position: last.position, speed: speed)
    } else {
      append(speed == .normal ? .copy : .retimed, upTo: end, position: position, speed: speed)
    }
  }

  /// Whether the last piece goes on to this position at this speed, exactly: a cut that changes
  /// nothing must not be heard.
  private func continues(at position: Rational, _ speed: Speed) throws(RetimingError) -> Bool {
    guard let last = pieces.last, last.content != .silence, last.speed == speed else {
      return false
    }
    return try distance(of: position, from: last) == .zero
  }

  /// How far a position is from where a piece ends, in source samples.
  private func distance(
    of position: Rational, from piece: AudioPiece
  ) throws(RetimingError) -> Rational {
    let end = try piece.position(before: -Int64(piece.samples.count))
    return try exactly("a position in the source") { () throws(TimingError) in
      try position.subtracting(end)
    }
  }

  /// Lets neighbours overlap for a fade where a hard join would click.
  ///
  /// A fade lies in a retimed piece: speed 1 stays bit for bit. It takes at most half of it.
  mutating func fade(over longest: Int64, unlessContinuous: Bool) throws(RetimingError) {
    guard pieces.count > 1 else { return }
    for index in 0..<pieces.count - 1 {
      let (first, second) = (pieces[index], pieces[index + 1])
      guard first.content == .retimed || second.content == .retimed else { continue }
      if unlessContinuous, first.content != .silence, second.content != .silence {
        // Within one sample of either side the waveform runs on: a fade would only blur it.
        let distance = try distance(of: second.position, from: first).doubleValue.magnitude
        guard distance > max(1, first.speed.fraction.doubleValue, second.speed.fraction.doubleValue)
        else { continue }
      }
      if second.content == .retimed {
        let length = min(longest, Int64(second.samples.count) / 2)
        pieces[index].tail = length
        pieces[index].overlap = length
      } else {
        let length = min(longest, Int64(first.samples.count) / 2)
        pieces[index + 1].lead = length
        pieces[index].overlap = length
      }
    }
  }
}
