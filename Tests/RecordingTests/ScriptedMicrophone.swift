// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// A scripted microphone without a clock.
///
/// Its samples are a function of the time since a camera's first frame.
final class ScriptedMicrophone: AudioDriver {
  /// A step of the script.
  enum Step {
    /// Samples arrive, in blocks of 10 ms.
    case samples(Int64)
    /// Samples are lost.
    case lost(Int64, AudioGap.Cause)
    /// The audio card is unplugged.
    case unplugged
  }

  let format: AudioFormat
  private let epoch: Int64
  /// Called when the stream starts and, with false, when it stops.
  private let switched: @Sendable (Bool) throws(MediaError) -> Void
  private let wave: @Sendable (_ seconds: Double, _ channel: Int) -> Double
  // Used only by the capture thread.
  private nonisolated(unsafe) var steps: [Step]
  private nonisolated(unsafe) var sample: Int64 = 0

  /// Prepares a script.
  ///
  /// Its first sample has the given capture time in nanoseconds.
  init(
    _ steps: [Step], rate: Int = 48_000, channels: Int = 2, atNanoseconds epoch: Int64,
    switched: @escaping @Sendable (Bool) throws(MediaError) -> Void = { _ in },
    wave: @escaping @Sendable (_ seconds: Double, _ channel: Int) -> Double
  ) {
    format = AudioFormat(.float, sampleRate: rate, channelCount: channels)
    self.steps = steps
    self.epoch = epoch
    self.switched = switched
    self.wave = wave
  }

  func nanoseconds() -> Int64 { nanoseconds(sample) }

  private func nanoseconds(_ sample: Int64) -> Int64 {
    epoch + sample * 1_000_000_000 / Int64(format.sampleRate)
  }

  func start() throws(MediaError) { try switched(true) }
  func stop() { try? switched(false) }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    switch steps.first {
    case .samples(let count):
      let taken = min(count, Int64(format.sampleRate / 100))
      steps[0] = .samples(count - taken)
      if count == taken { steps.removeFirst() }
      for position in 0..<Int(taken) {
        for channel in 0..<format.channelCount {
          let seconds = Double(nanoseconds(sample + Int64(position))) / 1e9
          memory.storeBytes(
            of: Float(wave(seconds, channel)).bitPattern.littleEndian,
            toByteOffset: (position * format.channelCount + channel) * 4, as: UInt32.self)
        }
      }
      sample += taken
      return .samples(
        count: Int(taken),
        SampleStamp(sample: Int(taken), nanoseconds: nanoseconds(sample)))
    case .lost(let count, let cause):
      steps.removeFirst()
      sample += count
      return .lost(cause)
    case .unplugged:
      throw MediaError(.deviceLost, "the microphone is gone", recovery: "plug it in again")
    case nil:
      usleep(1_000)
      return .none
    }
  }
}

/// A scripted camera that runs for 1.5 seconds at 100 fps, with a scripted microphone.
enum MicrophoneScene {
  /// The capture time of the camera's frame 0, in microseconds.
  static let zero: Int64 = 77_000_000

  /// The tone that the microphone records on a channel, at a time.
  @Sendable static func tone(_ seconds: Double, _ channel: Int) -> Double {
    0.5 * sin(2 * .pi * (channel == 0 ? 300 : 410) * seconds)
  }

  /// A session of the camera and the microphone, without an output.
  ///
  /// The audio begins `offset` nanoseconds after the first frame.
  static func session(
    _ steps: [ScriptedMicrophone.Step], beginsAt offset: Int64, rate: Int = 48_000,
    channels: Int = 2
  ) throws -> CaptureSession {
    var camera = try ScriptedCamera(100)
    camera.base = zero
    let base = zero * 1_000
    let microphone = ScriptedMicrophone(
      steps, rate: rate, channels: channels, atNanoseconds: base + offset
    ) { seconds, channel in tone(seconds - Double(base) / 1e9, channel) }
    let device = try CaptureDevice.named("synthetic")
    let session = CaptureSession(MicrophoneInput(device: device, driver: microphone))
    try session.addInput(
      try #require(camera.session(ScriptedDriver(try camera.frames(0..<150))).inputs.first))
    return session
  }
}
