// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankRetiming

/// Consecutive parts of the audio of a transport run, beginning with its first sample.
///
/// Each part ends at the first sample at or after the exact end of a segment, of the loop, or of
/// the composition. The start of a part is computed from the run and not from the previous part, so
/// rounding errors cannot add up.
struct AudioParts {
  private let run: TransportRun
  private var sample: Int64
  /// The output sample at which a silence ends.
  ///
  /// Silence fills a range that `low-quality` plays too fast and thus too short.
  private var silenceEnd: Int64?

  init(_ run: TransportRun) {
    self.run = run
    sample = run.start
  }

  /// Returns the next part; nil at the end of the audio, after which there is only silence.
  mutating func next() -> AudioStream.Part? {
    guard run.rate != .zero, sample < TransportRun.end else { return nil }
    if let end = silenceEnd, end > sample {
      silenceEnd = nil
      return part(upTo: end, .silence)
    }
    let position = run.position(at: Rational(sample))
    if position.isAtEnd { return nil }
    let (time, isBackward) = (position.time, run.isBackward)
    var edge = isBackward ? Rational.zero : run.timeline.duration
    if let loop = run.loop {
      if isBackward, time > loop.start { edge = loop.start }
      if !isBackward, time < loop.end { edge = loop.end }
    }
    let segment = PlaybackTimeline.segment(
      of: run.timeline.audio, at: time, before: isBackward)
    if let segment, segment.start <= time, time <= segment.end {
      let inner = isBackward ? max(edge, segment.start) : min(edge, segment.end)
      if isBackward ? inner < time : inner > time { edge = inner }
    } else if let segment, isBackward {
      edge = max(edge, segment.end)
    }
    var end = run.sample(after: (edge - time).magnitude, from: sample)
    guard let segment, segment.start <= time, time <= segment.end, let content = segment.content,
      content.mapping.motion != .hold, run.timeline.assets[content.asset].asset.audioTrack != nil
    else { return part(upTo: end, .silence) }
    if run.algorithm == .lowQuality, content.mapping.motion != .constant {
      // `low-quality` plays a ramp as short steps of constant speed, as in an export.
      end = min(end, sample + Int64(max(1, run.sampleRate / 25)))
    }
    guard let part = audio(content, from: time, to: edge, end: end) else {
      return self.part(upTo: end, .silence)
    }
    guard run.algorithm == .lowQuality, case .source(let source, let start, let speed) = part
    else {
      return self.part(upTo: end, part)
    }
    let played = AudioRetimer.lowQualitySpeed(nearest: speed)
    if played > speed {
      // The audio of the range ends before its video, so silence fills the rest.
      let length = Rational(end - sample) * speed.fraction / played.fraction
      let shorter = sample + max(1, Int64(clamping: (try? length.rounded(.towardZero)) ?? 1))
      if shorter < end {
        silenceEnd = end
        end = shorter
      }
    }
    return self.part(upTo: end, .source(source, position: start, speed: played))
  }

  private mutating func part(
    upTo end: Int64, _ content: AudioStream.Part.Content
  ) -> AudioStream.Part {
    defer { sample = end }
    return AudioStream.Part(sample..<end, content)
  }

  /// Returns the audio of a segment between two composition times; nil for a speed at which audio
  /// is not played.
  private func audio(
    _ content: PlaybackTimeline.Segment.Content, from time: Rational, to edge: Rational, end: Int64
  ) -> AudioStream.Part.Content? {
    let mapping = content.mapping
    let isReversed = mapping.isReversed != run.isBackward
    let rate = Rational(Int64(run.sampleRate))
    let sourceEnd = run.timeline.assets[content.asset].asset.audioTrack?.end ?? .zero
    func position(_ seconds: Rational) -> Rational {
      (isReversed ? sourceEnd - seconds : seconds) * rate
    }
    let start = mapping.nearSourceSeconds(of: time)
    if case .ramp = mapping.motion, run.algorithm != .lowQuality {
      guard
        let segment = try? ramp(content, isReversed, from: time, to: edge, sourceEnd: sourceEnd)
      else { return nil }
      let speeds = [segment.mapping.target.start, segment.mapping.target.end].compactMap {
        try? segment.mapping.nearSpeed(at: $0.seconds)
      }
      return speeds.allSatisfy(AudioRetimer.speeds.contains) ? .ramp(segment) : nil
    }
    // The speed of the whole part. It is exact at constant speed, and the mean in a step of a ramp.
    let share: Rational
    if mapping.motion == .constant {
      share = (mapping.sourceEnd - mapping.sourceStart) / mapping.target.duration * run.rate
    } else {
      let last = run.position(at: Rational(end)).time
      share =
        (mapping.nearSourceSeconds(of: last) - start) * rate / Rational(end - sample)
    }
    guard let speed = Speed(exactly: share.magnitude), AudioRetimer.speeds.contains(speed) else {
      return nil
    }
    let source = AudioSegment.Source(id: content.asset, isReversed: isReversed)
    let first = position(start)
    return first.isValid ? .source(source, position: first, speed: speed) : nil
  }

  /// Returns the part of a ramp between two composition times; its target range is in output
  /// seconds.
  private func ramp(
    _ content: PlaybackTimeline.Segment.Content, _ isReversed: Bool, from time: Rational,
    to edge: Rational, sourceEnd: Rational
  ) throws(MediaError) -> AudioSegment? {
    guard case .ramp(let ramp) = content.mapping.motion else { return nil }
    let bounds = [content.mapping.position(at: time), content.mapping.position(at: edge)].sorted()
    let start = MediaTime(sample, over: Int32(clamping: run.sampleRate))
    let end = start.seconds + (edge - time).magnitude / run.rate.magnitude
    let units = try (end * 1_000_000_000).rounded(.halfAwayFromZero)
    let target = try TimeRange(
      start: start,
      end: MediaTime(exactly: end) ?? MediaTime(nanoseconds: Int64(clamping: units)))
    let part = try PlaybackMapping(
      partOf: ramp, source: content.mapping.whole, from: bounds[0], to: bounds[1],
      isReversed: isReversed, target: target)
    return try AudioSegment(playing: part, of: content.asset, endingAt: sourceEnd)
  }
}
