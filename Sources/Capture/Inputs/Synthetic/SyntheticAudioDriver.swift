// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The driver for the synthetic camera's audio.
///
/// If frames are delivered in real time, so is the audio. Otherwise audio follows the clock of the
/// frames, and frames and audio wait for each other.
final class SyntheticAudioDriver: AudioDriver {
  let format = AudioFormat(
    .float, sampleRate: SyntheticAudio.sampleRate, channelCount: SyntheticAudio.channelCount)
  private let source: SyntheticAudio
  /// Returns the time of sample 0, in microseconds of the capture clock, or 0 while it is unknown.
  private let epoch: @Sendable () -> Int64
  private let frameClock: FrameClock?
  /// The next sample's index, or nil before the first read.
  ///
  /// Used only by the capture thread.
  private nonisolated(unsafe) var next: Int64?

  init(
    _ source: SyntheticAudio, epoch: @escaping @Sendable () -> Int64, frameClock: FrameClock?
  ) {
    self.source = source
    self.epoch = epoch
    self.frameClock = frameClock
  }

  var waitsForTakers: Bool { frameClock != nil }

  func nanoseconds() -> Int64 {
    frameClock.map { $0.microseconds() * 1_000 } ?? MonotonicClock.nanoseconds()
  }

  func start() { next = nil }

  func stop() { frameClock?.didHear(untilMicroseconds: .max) }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    let (rate, epoch) = (Int64(SyntheticAudio.sampleRate), self.epoch())
    guard epoch > 0 else {
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
    var position = 0
    for number in first..<first + count {
      for _ in 0..<SyntheticAudio.channelCount {
        let bits = source.sample(number).bitPattern.littleEndian
        memory.storeBytes(of: bits, toByteOffset: position, as: UInt32.self)
        position += MemoryLayout<UInt32>.size
      }
    }
    next = first + count
    return .samples(
      count: Int(count), SampleStamp(sample: Int(count), nanoseconds: end * 1_000))
  }
}
