// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Synchronization

/// An audio output in memory, which plays at exactly the rate of a clock.
///
/// Use it in tests, and in programs that process a player's audio. The first sample counts as heard
/// when the output is opened.
public final class MemoryAudioSink: AudioSink {
  private struct State {
    var start: MediaTime?
    var sampleRate = 48_000
    var samples: [[Float]] = []
  }

  private let clock: any HostClock
  /// Samples per write.
  public let period: Int
  /// A period can be written while at most this many written samples are not played yet.
  public let renderAhead: Int
  private let state = Mutex(State())

  /// Creates an output.
  ///
  /// - Parameters:
  ///   - clock: The clock of playback; pass the player's clock.
  ///   - period: The number of samples per write, above zero.
  ///   - renderAhead: See ``renderAhead``.
  public init(clock: any HostClock, period: Int = 480, renderAhead: Int = 960) {
    (self.clock, self.period, self.renderAhead) = (clock, period, renderAhead)
  }

  /// The samples written so far, one array per channel.
  public var samples: [[Float]] { state.withLock { $0.samples } }

  /// Opens the output, which supports every format.
  public func open(sampleRate: Int, channelCount: Int) {
    let now = clock.now
    state.withLock { state in
      state.sampleRate = sampleRate
      state.samples = Array(repeating: [], count: channelCount)
      state.start = now
    }
  }

  /// The number of samples that can be written now, in whole periods.
  public var writableCount: Int {
    let now = clock.now
    return state.withLock { state in
      guard let played = Self.played(state, now) else { return 0 }
      let whole = (try? played.rounded(.towardNegativeInfinity)) ?? 0
      let written = state.samples.first?.count ?? 0
      let space = Int(clamping: whole) + renderAhead + period - written
      return max(0, space / period * period)
    }
  }

  /// Waits for one period, unless samples can be written now.
  public func waitUntilWritable() {
    guard writableCount == 0 else { return }
    let now = clock.now
    let rate = state.withLock { $0.sampleRate }
    let next = now.seconds + Rational(Int128(period), over: Int128(rate))
    clock.sleep(until: MediaTime(exactly: next) ?? now)
  }

  /// Keeps the samples.
  public func write(_ samples: [[Float]]) -> Bool {
    let now = clock.now
    return state.withLock { state in
      let written = state.samples.first?.count ?? 0
      for channel in state.samples.indices { state.samples[channel] += samples[channel] }
      return Self.played(state, now).map { $0 <= Rational(Int64(written)) } ?? true
    }
  }

  /// The number of the sample that is heard now, and the host time.
  public var timing: AudioSinkTiming? {
    let now = clock.now
    return state.withLock { state in
      Self.played(state, now).map { AudioSinkTiming(sample: $0, hostTime: now) }
    }
  }

  private static func played(_ state: State, _ now: MediaTime) -> Rational? {
    state.start.map { (now - $0) * Rational(Int64(state.sampleRate)) }
  }

  /// Stops the clock of the output; the samples remain.
  public func close() { state.withLock { $0.start = nil } }
}
