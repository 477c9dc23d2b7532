// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankMediaCore
import OvercrankPlayback
import Synchronization
import TestSupport
import Testing

/// A simulated audio device that plays by a virtual clock.
private final class FakeOutputCard: ALSAOutputCalls {
  struct State {
    var openResult: CInt = 0
    var layouts: Set<SampleLayout> = [.s16]
    var settings: AudioSettings?
    var written: Int64 = 0
    var played: Int64 = 0
    var isGone = false
    var bytes: [UInt8] = []
  }
  /// The delay between the buffer and the loudspeaker, in samples.
  static let latency: Int64 = 240
  let state = Mutex(State())

  func play(_ samples: Int64) { state.withLock { $0.played += samples } }

  func openOutput(_ name: String, _ handle: inout AudioHandle) -> CInt {
    handle = AudioHandle(bits: 1)
    return state.withLock { $0.openResult }
  }

  func close(_ handle: AudioHandle) { state.withLock { $0.settings = nil } }

  func configure(_ handle: AudioHandle, _ settings: inout AudioSettings) -> CInt {
    state.withLock { state in
      guard state.layouts.contains(settings.layout) else { return -22 }
      state.settings = settings
      return 0
    }
  }

  func prepare(_ handle: AudioHandle) -> CInt {
    state.withLock { state in
      state.played = state.written
      return 0
    }
  }

  func resume(_ handle: AudioHandle) -> CInt { 0 }
  func drop(_ handle: AudioHandle) -> CInt { 0 }
  func wait(_ handle: AudioHandle, milliseconds: CInt) -> CInt { 1 }

  func available(_ handle: AudioHandle) -> Int {
    state.withLock { state in
      if state.isGone { return -19 }
      let size = Int64(state.settings?.bufferSize ?? 0)
      return state.played > state.written ? -32 : Int(size - (state.written - state.played))
    }
  }

  func delay(_ handle: AudioHandle, samples: inout Int) -> CInt {
    state.withLock { state in
      samples = Int(state.written - state.played + Self.latency)
      return 0
    }
  }

  func write(_ handle: AudioHandle, _ memory: UnsafeRawPointer, count: Int) -> Int {
    state.withLock { state in
      if state.isGone { return -19 }
      if state.played > state.written { return -32 }
      let stride = (state.settings?.channelCount ?? 0) * (state.settings?.layout.byteCount ?? 0)
      state.bytes += UnsafeRawBufferPointer(start: memory, count: count * stride)
      state.written += Int64(count)
      return count
    }
  }

  func nanoseconds() -> Int64 { state.withLock { $0.played * 1_000_000_000 / 48_000 } }
}

struct OutputTests {
  @Test func `The audio sink converts float samples to 16-bit integers`() throws {
    let card = FakeOutputCard()
    try ALSASystem.$outputCalls.withValue(card) {
      let sink = ALSAAudioSink()
      try sink.open(sampleRate: 48_000, channelCount: 2)
      #expect(sink.writableCount == 960)
      #expect(sink.timing == nil)
      #expect(try sink.write([[0, 0.5, 2], [-1, 0.25, .nan]]))
      let words = card.state.withLock { state in
        stride(from: 0, to: state.bytes.count, by: 2).map {
          Int16(truncatingIfNeeded: Int(state.bytes[$0]) | Int(state.bytes[$0 + 1]) << 8)
        }
      }
      #expect(words == [0, -32_768, 16_384, 8_192, 32_767, 0])
      #expect(card.state.withLock { $0.settings?.layout } == .s16)
    }
  }

  @Test func `Playback time accounts for the delay of the audio device`() throws {
    let card = FakeOutputCard()
    try ALSASystem.$outputCalls.withValue(card) {
      let sink = ALSAAudioSink()
      try sink.open(sampleRate: 48_000, channelCount: 1)
      _ = try sink.write([[Float](repeating: 0, count: 960)])
      #expect(sink.writableCount == 0)
      card.play(480)
      #expect(sink.writableCount == 480)
      #expect(sink.timing?.sample == 240)
      #expect(sink.timing?.hostTime == MediaTime(nanoseconds: 10_000_000))
    }
  }

  @Test func `An audio underrun is reported and playback continues`() throws {
    let card = FakeOutputCard()
    try ALSASystem.$outputCalls.withValue(card) {
      let sink = ALSAAudioSink()
      try sink.open(sampleRate: 48_000, channelCount: 1)
      #expect(try sink.write([[0, 0]]))
      card.play(100)
      #expect(try !sink.write([[0, 0]]))
      #expect(try sink.write([[0, 0]]))
      card.state.withLock { $0.isGone = true }
      #expect { try sink.write([[0, 0]]) } throws: {
        ($0 as? MediaError)?.code == .noAudioOutput
      }
    }
  }

  @Test func `A player without an audio card plays on its own clock`() throws {
    let card = FakeOutputCard()
    card.state.withLock { $0.openResult = -2 }
    try ALSASystem.$outputCalls.withValue(card) {
      let scratch = try Scratch()
      let asset = try Movies.painted(scratch, count: 96, hasAudio: true)
      let stage = try Stage(asset) { $0.audioSink = ALSAAudioSink() }
      #expect(stage.player.audioError?.code == .noAudioOutput)
      #expect(stage.player.audioFormat == nil)
      try stage.player.setRate(1)
      #expect(stage.number(at: 100_000_000) == 24)
    }
  }
}
