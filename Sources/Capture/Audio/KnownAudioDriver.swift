// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankSimulatedCameras

/// The driver for the audio of a simulated camera.
///
/// If frames are delivered in real time, so is the audio. Otherwise audio follows the clock of the
/// frames, and frames and audio wait for each other.
final class KnownAudioDriver: AudioDriver {
  let format: AudioFormat
  /// Used only by the capture thread.
  private nonisolated(unsafe) let reader: any KnownAudioReader
  /// Returns the time of sample 0, in microseconds of the capture clock, or 0 while it is unknown.
  private let epoch: @Sendable () -> Int64
  private let frameClock: FrameClock?
  /// The next sample's index, or nil before the first read.
  ///
  /// Used only by the capture thread.
  private nonisolated(unsafe) var next: Int64?

  init(
    _ source: any KnownAudio, epoch: @escaping @Sendable () -> Int64, frameClock: FrameClock?
  ) {
    format = AudioFormat(
      .float, sampleRate: source.sampleRate, channelCount: source.channelCount)
    reader = source.makeReader()
    (self.epoch, self.frameClock) = (epoch, frameClock)
  }

  var waitsForTakers: Bool { frameClock != nil }
  var reportsSilence: Bool { false }

  func nanoseconds() -> Int64 {
    frameClock.map { $0.microseconds() * 1_000 } ?? MonotonicClock.nanoseconds()
  }

  func start() { next = nil }

  func stop() { frameClock?.didHear(untilMicroseconds: .max) }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    let (rate, epoch) = (Int64(format.sampleRate), self.epoch())
    guard epoch > 0, let start = memory.baseAddress else {
      MonotonicClock.pause()
      return .none
    }
    let now = nanoseconds() / 1_000
    // If the audio starts after frame 0, it starts at a whole multiple of 10 ms after frame 0. At
    // 48 kHz that is a whole number of samples, so the index is exact.
    let first = next ?? max(0, (now - epoch + 9_999) / 10_000) * (rate / 100)
    let count = min(rate / 100, Int64(memory.count / format.bytesPerSample))
    let end = epoch + (first + count) * 1_000_000 / rate
    if let frameClock {
      next = first
      frameClock.didHear(untilMicroseconds: epoch + first * 1_000_000 / rate)
      guard end <= now else {
        MonotonicClock.pause()
        return .none
      }
    } else {
      guard end <= now + Int64(timeoutMilliseconds) * 1_000 else {
        MonotonicClock.sleep(untilMicroseconds: now + Int64(timeoutMilliseconds) * 1_000)
        return .none
      }
      MonotonicClock.sleep(untilMicroseconds: end)
    }
    let samples = start.bindMemory(
      to: Float.self, capacity: Int(count) * format.channelCount)
    reader.read(Int(count), from: first, into: samples)
    next = first + count
    return .samples(
      count: Int(count), SampleStamp(sample: Int(count), nanoseconds: end * 1_000))
  }
}
