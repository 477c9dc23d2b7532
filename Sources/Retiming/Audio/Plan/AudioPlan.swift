// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The pieces of an audio output, which follow each other from sample zero without gaps.
struct AudioPlan: Sendable {
  private(set) var pieces: [AudioPiece] = []
  /// The end of the last piece in samples.
  private(set) var sampleCount: Int64
  private let sampleRate: Int
  /// The end of the last appended mapping; nil if that mapping was too short for a sample.
  private var lastEnd: End?
  /// The ranges whose speed was changed to a supported speed.
  let snapped: [SnappedSpeed]

  /// The source time and the composition time at which a mapping ends.
  private struct End: Equatable {
    let source: AudioSegment.Source
    let position: Rational
    let time: MediaTime
  }

  /// Creates a plan for segments.
  ///
  /// Every boundary is rounded independently to the nearest output sample, so rounding errors do
  /// not accumulate.
  init(
    _ requested: [AudioSegment], duration: MediaTime?, sampleRate: Int,
    algorithm: AudioTimePitchAlgorithm, otherSpeeds: UnsupportedSpeedPolicy
  ) throws(MediaError) {
    let rate = Rational(Int64(sampleRate))
    var end = MediaTime.zero
    sampleCount = 0
    self.sampleRate = sampleRate
    let segments: [AudioSegment]
    (segments, snapped) =
      algorithm == .lowQuality ? try Self.snapped(requested, otherSpeeds) : (requested, [])
    for segment in segments {
      let (mapping, source) = (segment.mapping, segment.source)
      guard mapping.target.start >= end else {
        throw MediaError(
          .invalidMappings,
          "the audio for \(mapping.target.displayText) starts before \(end.displayText) s")
      }
      guard !mapping.isReversed else {
        throw MediaError(
          .invalidMappings, "the audio for \(mapping.target.displayText) plays backwards")
      }
      try append(.silence, upTo: Self.sample(at: mapping.target.start, rate))
      switch mapping.motion {
      case .constant: try append(mapping.line, of: source, rate, algorithm)
      case .ramp(let ramp) where ramp.from == ramp.to:
        let line = try exactly("the source of \(mapping.target.displayText)") {
          () throws(MediaError) in
          try TimeMapping(
            source: TimeRange(
              start: MediaTime(mapping.sourceStart), end: MediaTime(mapping.sourceEnd)),
            target: mapping.target)
        }
        try append(line, of: source, rate, algorithm)
      case .ramp: try append(ramp: mapping, of: source, rate, algorithm)
      case .hold: break
      }
      end = mapping.target.end
    }
    // A segment whose speed was changed may end early. The output still lasts until the requested
    // end.
    end = requested.last?.mapping.target.end ?? end
    let duration = duration ?? end
    guard duration >= end else {
      throw MediaError(
        .invalidMappings,
        "the audio ends at \(end.displayText) s, after the duration of \(duration.displayText) s")
    }
    try append(.silence, upTo: Self.sample(at: duration, rate))
  }

  /// Returns the output sample nearest to an instant.
  private static func sample(
    at time: MediaTime, _ rate: Rational
  ) throws(MediaError) -> Int64 {
    let position = try (time.seconds * rate).exact("the sample at \(time.displayText) s")
    return try position.wholeNumber(.halfAwayFromZero, of: "the sample at \(time.displayText) s")
  }

  private mutating func append(
    _ content: AudioPiece.Content, upTo end: Int64, position: Rational = .zero,
    speed: Speed = .normal, of source: AudioSegment.Source = AudioSegment.Source()
  ) {
    defer { sampleCount = max(sampleCount, end) }
    guard end > sampleCount else { return }
    pieces.append(
      AudioPiece(
        content: content, samples: sampleCount..<end, position: position, speed: speed,
        sampleRate: sampleRate, source: source))
  }

  private func check(
    _ speeds: [Speed], of target: TimeRange, _ algorithm: AudioTimePitchAlgorithm
  ) throws(MediaError) {
    // The first and last speed of a ramp are computed from rounded times, so a speed at the limit
    // of the supported speeds may seem to exceed this limit. Ramps are therefore allowed a relative
    // error of 1e-6.
    let least = AudioRetimer.speeds.lowerBound.fraction.doubleValue * 0.999_999
    let most = AudioRetimer.speeds.upperBound.fraction.doubleValue * 1.000_001
    for speed in speeds where algorithm != .mute {
      let isInside =
        speeds.count > 1
        ? (least...most).contains(speed.fraction.doubleValue) : AudioRetimer.speeds.contains(speed)
      guard isInside else {
        throw MediaError(
          .speedOutOfRange,
          "audio can play at speeds from \(AudioRetimer.speeds.lowerBound) to "
            + "\(AudioRetimer.speeds.upperBound), and \(target.displayText) is at \(speed); "
            + "other speeds must be muted")
      }
    }
  }

  private mutating func append(
    _ line: TimeMapping?, of source: AudioSegment.Source, _ rate: Rational,
    _ algorithm: AudioTimePitchAlgorithm
  ) throws(MediaError) {
    guard let mapping = line else { return }
    let speed = try exactly("the speed of \(mapping.target.displayText)") {
      () throws(MediaError) in
      try mapping.speed()
    }
    if speed != .normal { try check([speed], of: mapping.target, algorithm) }
    let end = try Self.sample(at: mapping.target.end, rate)
    let isSnapped = snapped.contains { $0.target.start == mapping.target.start }
    let content: AudioPiece.Content = speed == .normal && !isSnapped ? .copy : .retimed
    let start = sampleCount
    // The piece starts at a whole output sample, so its source position is computed for that sample
    // and not for the exact boundary.
    let position = try (mapping.sourceSeconds(of: Rational(start) / rate) * rate)
      .exact("the source of \(mapping.target.displayText)")
    let begin = End(
      source: source, position: mapping.source.start.seconds, time: mapping.target.start)
    let isOn = lastEnd == begin
    // Content that continues the last piece at the same speed extends that piece. After a ramp this
    // is not always possible: content at speed 1 is copied instead of rendered, and varispeed uses
    // different resamplers for constant speeds and for ramps.
    let isLike =
      pieces.last.map {
        $0.hasRamp ? algorithm.followsBreakpoints && content == .retimed : true
      } ?? false
    if isLike, try continues(at: position, speed, of: source) {
      extend(upTo: end)
    } else if let last = pieces.last, last.content == .retimed, content == .retimed,
      algorithm.followsBreakpoints, isOn
    {
      let what = "the start of \(mapping.target.displayText)"
      let first = Rational(last.samples.lowerBound)
      let breakpoint = AudioPiece.Breakpoint(
        output: try (mapping.target.start.seconds * rate - first).exact(what),
        source: try (mapping.source.start.seconds * rate).exact(what), speed: speed)
      pieces[pieces.count - 1].breakpoints.append(breakpoint)
      extend(upTo: end)
    } else {
      append(content, upTo: end, position: position, speed: speed, of: source)
      guard sampleCount > start else {
        lastEnd = nil
        return
      }
    }
    lastEnd = End(
      source: source, position: mapping.source.end.seconds, time: mapping.target.end)
  }

  /// Appends a ramp as two breakpoints: one at its start and one at its end.
  private mutating func append(
    ramp mapping: PlaybackMapping, of source: AudioSegment.Source, _ rate: Rational,
    _ algorithm: AudioTimePitchAlgorithm
  ) throws(MediaError) {
    let target = mapping.target
    let speeds = try [target.start, target.end].map { (time) throws(MediaError) in
      try exactly("the speed at \(time.displayText) s") { () throws(MediaError) in
        try mapping.nearSpeed(at: time.seconds)
      }
    }
    try check(speeds, of: target, algorithm)
    let end = try Self.sample(at: target.end, rate)
    let start = sampleCount
    let isOn =
      lastEnd == End(source: source, position: mapping.sourceStart, time: target.start)
    if let last = pieces.last, last.content == .retimed, algorithm.followsBreakpoints, isOn {
      extend(upTo: end)
    } else {
      let distance = Rational(start) - target.start.seconds * rate
      let position = try (mapping.sourceStart * rate + distance * speeds[0].fraction)
        .exact("the source of \(target.displayText)")
      append(.retimed, upTo: end, position: position, speed: speeds[0], of: source)
      guard sampleCount > start else {
        lastEnd = nil
        return
      }
    }
    let first = Rational(pieces[pieces.count - 1].samples.lowerBound)
    let what = "the ends of \(target.displayText)"
    pieces[pieces.count - 1].breakpoints += [
      AudioPiece.Breakpoint(
        output: try (target.start.seconds * rate - first).exact(what),
        source: try (mapping.sourceStart * rate).exact(what), speed: speeds[0], ramp: mapping),
      AudioPiece.Breakpoint(
        output: try (target.end.seconds * rate - first).exact(what),
        source: try (mapping.sourceEnd * rate).exact(what), speed: speeds[1]),
    ]
    lastEnd = End(source: source, position: mapping.sourceEnd, time: target.end)
  }

  /// Extends the last piece to an output sample.
  private mutating func extend(upTo end: Int64) {
    guard end > sampleCount, let last = pieces.last else { return }
    pieces[pieces.count - 1].samples = last.samples.lowerBound..<end
    sampleCount = end
  }

  /// Returns true if content at this source position and speed continues the last piece without a
  /// jump, and false otherwise.
  ///
  /// Such content can be added to the last piece, so that the boundary is inaudible.
  private func continues(
    at position: Rational, _ speed: Speed, of source: AudioSegment.Source
  ) throws(MediaError) -> Bool {
    guard let last = pieces.last, last.content != .silence, last.lastSpeed == speed,
      last.source == source
    else { return false }
    return try last.distance(to: position) == .zero
  }

  /// Joins neighboring pieces without clicks; see ``AudioPiece/join(_:_:_:fade:)``.
  mutating func join(_ algorithm: AudioTimePitchAlgorithm, fade longest: Int64)
    throws(MediaError)
  {
    guard pieces.count > 1 else { return }
    for index in 0..<pieces.count - 1 {
      var (first, second) = (pieces[index], pieces[index + 1])
      try AudioPiece.join(&first, &second, algorithm, fade: longest)
      (pieces[index], pieces[index + 1]) = (first, second)
    }
  }
}
