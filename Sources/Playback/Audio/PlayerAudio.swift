// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankMediaCore
import OvercrankRetiming

/// A source of samples for a player's audio output; each block continues the block before it.
private protocol RunRenderer: AnyObject {
  func next(_ count: Int) throws -> [[Float]]
}

/// The renderer of a player's audio output.
///
/// Each run of the transport has its own audio stream, which is primed with the samples before the
/// run. Two streams meet at the first sample of the new run: directly if both use `varispeed` and
/// the position continues, otherwise in a crossfade of 5 ms.
///
/// Only the audio thread uses it.
final class PlayerAudio {
  private let format: PlayerAudioFormat
  private var run: TransportRun?
  private var renderer: any RunRenderer
  private var isAudible = false
  /// Readers of the assets' audio, in two sets.
  ///
  /// A jump switches to the other set, so that both sides of its crossfade can read at their own
  /// positions.
  private var sources: [[Int: AudioSource]] = [[:], [:]]
  private var set = 0
  private var gain: Float = 1
  /// The first error since the last call of ``takeFailure()``.
  private var failure: MediaError?

  init(_ format: PlayerAudioFormat) {
    self.format = format
    renderer = SilenceRenderer(format)
  }

  private var fadeLength: Int { format.sampleRate / 200 }

  /// Renders the samples of one run.
  ///
  /// - Parameters:
  ///   - count: The number of samples per channel.
  ///   - run: The run of the transport; a new run starts at the first of these samples.
  ///   - isMuted: Whether the samples fade to silence. Muted audio keeps advancing.
  /// - Returns: Exactly `count` samples per channel.
  func render(_ count: Int, of run: TransportRun, isMuted: Bool) -> [[Float]] {
    if run.id != self.run?.id { begin(run) }
    var samples: [[Float]]
    do { samples = try renderer.next(count) } catch {
      fail(error)
      renderer = SilenceRenderer(format)
      samples = silence(count)
    }
    if let crossfade = renderer as? Crossfade, crossfade.isOver { renderer = crossfade.incoming }
    scale(&samples, to: isMuted ? 0 : 1)
    return samples
  }

  /// Returns the first error since the last call.
  func takeFailure() -> MediaError? {
    defer { failure = nil }
    return failure
  }

  private func begin(_ run: TransportRun) {
    let last = self.run
    self.run = run
    // A pause after silence needs no new renderer.
    guard run.rate != .zero || isAudible else { return }
    if run.isJump { set = 1 - set }
    let incoming = makeRenderer(run)
    let joins =
      isAudible && !(renderer is Crossfade) && run.rate != .zero && !run.isJump
      && run.algorithm == .varispeed && last?.algorithm == .varispeed && last?.rate != .zero
    isAudible = run.rate != .zero
    renderer =
      joins ? incoming : Crossfade(from: renderer, to: incoming, length: fadeLength)
  }

  private func makeRenderer(_ run: TransportRun) -> any RunRenderer {
    guard run.rate != .zero else { return SilenceRenderer(format) }
    do { return try StreamRenderer(run, format, self, set: set) } catch {
      fail(error)
      return SilenceRenderer(format)
    }
  }

  fileprivate func read(
    _ source: AudioSegment.Source, _ start: Int64, _ count: Int, _ timeline: PlaybackTimeline,
    set: Int
  ) throws -> [[Float]] {
    if let open = sources[set][source.id] {
      return try open.samples(from: start, count: count, isReversed: source.isReversed)
    }
    let asset = timeline.assets[source.id].asset
    guard let track = asset.audioTrack else { return silence(count) }
    let open = try AudioSource(
      asset, track, sampleRate: format.sampleRate, channelCount: format.channelCount, seeks: true)
    sources[set][source.id] = open
    return try open.samples(from: start, count: count, isReversed: source.isReversed)
  }

  private func fail(_ error: any Error) {
    failure =
      failure ?? error as? MediaError
      ?? MediaError(.invalidData, "the audio cannot be played: \(error)")
  }

  private func silence(_ count: Int) -> [[Float]] {
    Array(repeating: [Float](repeating: 0, count: count), count: format.channelCount)
  }

  /// Moves the gain toward a target, and applies it to the samples.
  ///
  /// The full range from 0 to 1 takes the length of a fade.
  private func scale(_ samples: inout [[Float]], to wanted: Float) {
    guard gain != wanted || wanted != 1 else { return }
    let step = 1 / Float(fadeLength)
    let start = gain
    for channel in samples.indices {
      gain = start
      for index in samples[channel].indices {
        gain += max(-step, min(step, wanted - gain))
        samples[channel][index] *= gain
      }
    }
  }

  /// The audio of one run of the transport.
  private final class StreamRenderer: RunRenderer {
    private let stream: AudioStream
    private let timeline: PlaybackTimeline
    private unowned let audio: PlayerAudio
    private let set: Int

    init(
      _ run: TransportRun, _ format: PlayerAudioFormat, _ audio: PlayerAudio, set: Int
    ) throws(MediaError) {
      var parts = AudioParts(run)
      stream = try AudioStream(
        algorithm: run.algorithm, sampleRate: format.sampleRate,
        channelCount: format.channelCount, nextPart: { parts.next() })
      timeline = run.timeline
      (self.audio, self.set) = (audio, set)
    }

    func next(_ count: Int) throws -> [[Float]] {
      try stream.next(count) { source, start, length in
        try audio.read(source, start, length, timeline, set: set)
      }
    }
  }
}

/// A renderer of silence.
private final class SilenceRenderer: RunRenderer {
  private let format: PlayerAudioFormat

  init(_ format: PlayerAudioFormat) { self.format = format }

  func next(_ count: Int) -> [[Float]] {
    Array(repeating: [Float](repeating: 0, count: count), count: format.channelCount)
  }
}

/// A crossfade from one renderer to another; the gains follow half a cosine and add up to 1.
private final class Crossfade: RunRenderer {
  private let outgoing: any RunRenderer
  let incoming: any RunRenderer
  private let length: Int
  private var made = 0

  init(from outgoing: any RunRenderer, to incoming: any RunRenderer, length: Int) {
    (self.outgoing, self.incoming, self.length) = (outgoing, incoming, length)
  }

  var isOver: Bool { made >= length }

  func next(_ count: Int) throws -> [[Float]] {
    var samples = try incoming.next(count)
    let fading = min(count, length - made)
    guard fading > 0 else { return samples }
    let old = try outgoing.next(fading)
    for index in 0..<fading {
      let share = (Double(made + index) + 0.5) / Double(length)
      let gain = Float(0.5 - 0.5 * cos(.pi * share))
      for channel in samples.indices {
        samples[channel][index] =
          old[channel][index] + (samples[channel][index] - old[channel][index]) * gain
      }
    }
    made += fading
    return samples
  }
}
