// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankPlayback
import TestSupport

/// A player on a virtual clock.
///
/// Its work is done on the test's thread.
final class Stage {
  /// The host time at which the player was created, in nanoseconds.
  static let start: Int64 = 5_000_000_000
  let clock: VirtualClock
  let sink: MemoryAudioSink?
  let player: Player

  init(
    _ composition: Composition, of assets: [Asset], hasAudio: Bool = false,
    _ change: (inout PlayerSettings) -> Void = { _ in }
  ) throws {
    clock = VirtualClock(at: Self.start)
    sink = hasAudio ? MemoryAudioSink(clock: clock) : nil
    var settings = PlayerSettings()
    settings.audioSink = sink
    settings.clock = clock
    settings.hasThreads = false
    change(&settings)
    player = try Player(composition, of: assets, settings: settings)
    work()
  }

  convenience init(
    _ asset: Asset, hasAudio: Bool = false, _ change: (inout PlayerSettings) -> Void = { _ in }
  ) throws {
    try self.init(
      Composition(asset.mediaSource()), of: [asset], hasAudio: hasAudio, change)
  }

  /// Renders the audio and decodes the frames that are due.
  func work() {
    if sink != nil { player.renderAudio() }
    player.decodePending()
  }

  /// Returns the number painted on the frame that is shown at a host time, relative to the start.
  func number(at nanoseconds: Int64) -> Int? {
    clock.set(Self.start + nanoseconds)
    work()
    return player.frame(at: clock.now).flatMap { PaintedBlocks.number(in: $0.image) }
  }

  /// Advances the clock in steps of the sink's period, and renders audio.
  func play(for nanoseconds: Int64) {
    var rest = nanoseconds
    while rest > 0 {
      let step = min(rest, 10_000_000)
      clock.advance(by: step)
      if sink != nil { player.renderAudio() }
      rest -= step
    }
  }
}

/// The movies of the tests.
enum Movies {
  /// A movie at 240 fps whose frames carry their numbers, with a chirp if `hasAudio`.
  static func painted(
    _ scratch: Scratch, count: Int64 = 480, gop: Int = 24, reordered: Bool = false,
    hasAudio: Bool = false, name: String = "clip.mov"
  ) throws -> Asset {
    var recipe = MovieRecipe.constant(240, count: count, timescale: 240_000)
      .h264(gop: gop, reordered: reordered)
    if hasAudio { recipe.audio = Chirp.audio(seconds: Double(count) / 240) }
    return try recipe.asset(at: scratch.file(name))
  }

  /// A movie with only the chirp.
  static func chirp(_ scratch: Scratch, seconds: Double) throws -> Asset {
    var recipe = MovieRecipe()
    recipe.timescale = 48_000
    recipe.audio = Chirp.audio(seconds: seconds)
    return try recipe.asset(at: scratch.file("chirp.mov"))
  }
}

/// A signal whose phase encodes the source time of each sample.
///
/// One channel is the cosine and the other the sine of a phase that rises faster and faster. The
/// frequency stays low enough to play at 32 times the speed.
enum Chirp {
  static let sampleRate = 48_000
  static let amplitude = 0.5

  /// The phase at a source time, in radians.
  ///
  /// The frequency starts at 20 Hz and rises by half a hertz per second.
  static func phase(at seconds: Double) -> Double {
    2 * .pi * (20 * seconds + 0.25 * seconds * seconds)
  }

  static func audio(seconds: Double) -> MovieRecipe.Audio {
    var audio = MovieRecipe.Audio()
    audio.codec = "pcm_s16le"
    audio.sampleRate = sampleRate
    audio.sampleCount = Int(seconds * Double(sampleRate))
    audio.wave = { channel, sample in
      let phase = phase(at: Double(sample) / Double(sampleRate))
      return Float(amplitude * (channel == 0 ? cos(phase) : sin(phase)))
    }
    return audio
  }

  /// Returns the difference between the source time that a sample encodes and the expected time, in
  /// seconds.
  ///
  /// The result is unique if the difference is below half a period of the chirp.
  static func error(_ samples: [[Float]], at index: Int, expected seconds: Double) -> Double {
    let measured = atan2(Double(samples[1][index]), Double(samples[0][index]))
    let difference = remainder(measured - phase(at: seconds), 2 * .pi)
    return difference / (2 * .pi * (20 + 0.5 * seconds))
  }

  /// The level of a sample: 1 where the chirp has full volume.
  static func level(_ samples: [[Float]], at index: Int) -> Double {
    hypot(Double(samples[0][index]), Double(samples[1][index])) / amplitude
  }
}
