// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankALSA
import OvercrankDeviceDiscovery
import TestSupport

@testable import OvercrankCapture

/// A simulated microphone whose samples a test determines, in a session with an output.
struct Listening {
  let card: FakeAudioCard
  let input: MicrophoneInput
  let output = AudioDataOutput()
  let session: CaptureSession
  /// A signal for each further audio period that the card may deliver.
  let credits = DispatchSemaphore(value: 0)

  static let rate = 48_000
  static let period: Int64 = 480

  // The card delivers `periods` periods before the first block is taken, and one more for each
  // block taken.
  init(
    periods: Int = 100, format: AudioFormat.SampleFormat = .s16, seed: UInt64 = 1,
    retryMilliseconds: Int = 1_000,
    _ change: (inout FakeAudioCard.Description) -> Void = { _ in }
  ) throws {
    var description = FakeAudioCard.Description()
    description.wave = { sample, channel in Self.value(sample, channel) }
    let credits = credits
    for _ in 0..<periods { credits.signal() }
    description.pace = { _ in credits.wait() }
    description.layouts = [.s16, .s32, .float]
    change(&description)
    card = FakeAudioCard(description, seed: seed)
    input = try ALSASystem.$calls.withValue(card) {
      let device = try CaptureDevice.named("hw:0")
      return try MicrophoneInput(
        device: device,
        format: AudioFormat(format, sampleRate: Self.rate, channelCount: 2))
    }
    session = CaptureSession(input, retryMilliseconds: retryMilliseconds)
    try session.addOutput(output)
  }

  /// A sample value that encodes the sample number and the channel.
  static func value(_ sample: Int64, _ channel: Int) -> Double {
    Double((sample &* 2 + Int64(channel)) % 32_749) / 32_768
  }

  /// Takes audio blocks until the card delivers no more.
  func takeAll(_ body: (AudioSampleBuffer) throws -> Void) async throws {
    let lost: Int64 = card.description.faults.reduce(0) { sum, fault in
      switch fault.kind {
      case .overrun(let lost), .suspend(let lost): sum + lost
      case .unplug, .unplugWhileWaiting, .error: sum
      }
    }
    var missing = card.description.length - lost
    for await block in output.blocks {
      credits.signal()
      try body(block)
      missing -= Int64(block.sampleCount)
      if missing <= 0 { break }
    }
  }
}
