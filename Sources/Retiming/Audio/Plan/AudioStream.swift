// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A rendering of audio for playback, continued block by block.
///
/// The parts of the output are requested one by one.
///
/// An ``AudioRetimer`` needs its whole plan in advance. A stream may be endless, as in a loop. When
/// the speed changes, a new stream replaces it. Parts are joined as in a retimer, and each renderer
/// first processes the samples before its part.
///
/// Not thread-safe: one thread uses a stream.
package final class AudioStream {
  /// A part of the output.
  package struct Part: Hashable, Sendable {
    /// The content of a part: silence or samples of a source.
    package enum Content: Hashable, Sendable {
      /// Silence.
      case silence
      /// Samples of a source at a constant speed.
      ///
      /// `position` is the position of the part's first sample, in source samples.
      case source(AudioSegment.Source, position: Rational, speed: Speed)
      /// A ramp.
      ///
      /// The target range of the segment is in seconds of the output. It starts at the time of the
      /// first output sample of this part of the stream.
      case ramp(AudioSegment)
    }

    /// The output samples of the part.
    package let samples: Range<Int64>
    /// The content of the part.
    package let content: Content

    /// Creates a part.
    package init(_ samples: Range<Int64>, _ content: Content) {
      (self.samples, self.content) = (samples, content)
    }
  }

  /// A closure that returns samples of a source; the range may extend beyond both ends of the
  /// source.
  package typealias Reader = (
    _ source: AudioSegment.Source, _ start: Int64, _ count: Int
  ) throws -> [[Float]]

  private let retimer: AudioRetimer
  private let nextPart: () -> Part?
  private var current: (piece: AudioPiece, renderer: any SegmentRenderer)?
  private var upcoming: AudioPiece?
  /// The number of samples that the current renderer has delivered.
  private var made: Int64 = 0
  /// The last samples of the previous piece, for the crossfade into the current one.
  private var held: Planes
  private var queue: SampleQueue

  /// Creates a stream.
  ///
  /// - Parameters:
  ///   - algorithm: The algorithm for speeds other than 1.
  ///   - sampleRate: The sampling rate of all sources and the output, in hertz.
  ///   - channelCount: The number of channels of all sources and the output.
  ///   - nextPart: Returns the parts in order, without gaps between them; nil at the end. The
  ///     stream requests each part while it renders the part before.
  /// - Throws: `MediaError` with `.unsupportedFormat`.
  package init(
    algorithm: AudioTimePitchAlgorithm, sampleRate: Int, channelCount: Int,
    nextPart: @escaping () -> Part?
  ) throws(MediaError) {
    retimer = try AudioRetimer(
      algorithm: algorithm, sampleRate: sampleRate, channelCount: channelCount)
    self.nextPart = nextPart
    held = Planes.silence(0, channelCount: channelCount)
    queue = SampleQueue(channelCount: channelCount, dropping: 0)
    upcoming = try nextPart().map(piece)
    try advance()
  }

  /// Renders the next samples.
  ///
  /// - Parameters:
  ///   - count: The number of samples per channel.
  ///   - read: Returns source samples.
  /// - Returns: Exactly `count` samples; silence after the last part.
  /// - Throws: `MediaError` of a renderer, or the error of `read`.
  package func next(_ count: Int, _ read: Reader) throws -> [[Float]] {
    while queue.count < count {
      guard try renderBlock(count - queue.count, read) else {
        queue.append(.silence(count - queue.count, channelCount: retimer.channelCount))
        break
      }
    }
    return queue.take(count)
  }

  /// Renders up to `wanted` samples, or one crossfade.
  ///
  /// Returns true if samples follow, and false at the end.
  private func renderBlock(_ wanted: Int, _ read: Reader) throws -> Bool {
    guard let piece = current?.piece else { return false }
    if held.sampleCount > 0 {
      queue.append(held.faded(into: try render(held.sampleCount, read)))
      held = .silence(0, channelCount: retimer.channelCount)
      return true
    }
    let rest = piece.length - piece.overlap - made
    if rest > 0 {
      queue.append(try render(Int(min(Int64(wanted), rest)), read))
      return true
    }
    held = try render(Int(piece.length - made), read)
    try advance()
    return true
  }

  private func render(_ count: Int, _ read: Reader) throws -> Planes {
    guard let source = current?.piece.source else { return [] }
    var samples = try current?.renderer.next(count) { try read(source, $0, $1) } ?? []
    made += Int64(count)
    let missing = count - samples.sampleCount
    if missing > 0 {
      samples.append(samples: .silence(missing, channelCount: retimer.channelCount))
    }
    return samples
  }

  /// Makes the upcoming piece the current one.
  private func advance() throws(MediaError) {
    made = 0
    guard var first = upcoming else {
      current = nil
      return
    }
    upcoming = try nextPart().map(piece)
    if var second = upcoming {
      try AudioPiece.join(&first, &second, retimer.algorithm, fade: Int64(retimer.sampleRate / 200))
      upcoming = second
    }
    current = (first, try retimer.renderer(for: first))
  }

  private func piece(_ part: Part) throws(MediaError) -> AudioPiece {
    let sampleRate = retimer.sampleRate
    switch part.content {
    case .silence:
      return AudioPiece(
        content: .silence, samples: part.samples, position: .zero, speed: .normal,
        sampleRate: sampleRate)
    case .source(let source, let position, let speed):
      return AudioPiece(
        content: speed == .normal ? .copy : .retimed, samples: part.samples, position: position,
        speed: speed, sampleRate: sampleRate, source: source)
    case .ramp(let segment):
      let (mapping, rate) = (segment.mapping, Rational(Int64(sampleRate)))
      let first = Rational(part.samples.lowerBound)
      let ends = [mapping.target.start, mapping.target.end]
      let speeds = try ends.map { (time) throws(MediaError) in
        try mapping.nearSpeed(at: time.seconds)
      }
      let outputs = try ends.map { (time) throws(MediaError) in
        try (time.seconds * rate - first).exact("the ends of a ramp")
      }
      let start = try (mapping.sourceStart * rate).exact("the start of a ramp")
      let end = try (mapping.sourceEnd * rate).exact("the end of a ramp")
      return AudioPiece(
        content: .retimed, samples: part.samples, position: start, speed: speeds[0],
        sampleRate: sampleRate,
        breakpoints: [
          AudioPiece.Breakpoint(
            output: outputs[0], source: start, speed: speeds[0], ramp: mapping),
          AudioPiece.Breakpoint(output: outputs[1], source: end, speed: speeds[1]),
        ], source: segment.source)
    }
  }
}

extension AudioRetimer {
  /// Returns the speed at which `low-quality` plays a requested speed.
  package static func lowQualitySpeed(nearest speed: Speed) -> Speed { snapped(speed) ?? speed }
}
