// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankALSA
import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// The capture device of a sound card, set up.
final class ALSADriver: AudioDriver {
  let format: AudioFormat
  private let device: AudioDevice

  /// Opens a device in a format.
  ///
  /// - Throws: `MediaError` when the device is busy, gone or not permitted, or lacks the format.
  init(_ node: AudioNode, _ format: AudioFormat) throws(MediaError) {
    do throws(ALSAError) {
      let device = try AudioDevice(opening: node)
      // 10 ms from interrupt to interrupt; half a second may wait until this program comes.
      _ = try device.configure(
        AudioSettings(
          layout: format.sampleFormat.layout, channelCount: format.channelCount,
          rate: format.sampleRate, periodSize: max(1, format.sampleRate / 100),
          bufferSize: max(2, format.sampleRate / 2)))
      self.device = device
    } catch { throw MediaError(capturing: error) }
    self.format = format
  }

  func nanoseconds() -> Int64 { device.nanoseconds() }

  func start() throws(MediaError) {
    do throws(ALSAError) { try device.start() } catch { throw MediaError(capturing: error) }
  }

  func stop() { device.stop() }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    do throws(ALSAError) { return try take(into: memory, timeoutMilliseconds) } catch {
      throw MediaError(capturing: error)
    }
  }

  private func take(
    into memory: UnsafeMutableRawBufferPointer, _ timeout: Int32
  ) throws(ALSAError) -> AudioReading {
    let arrival = try device.wait(milliseconds: timeout)
    guard case .samples(let available, let time) = arrival, let start = memory.baseAddress else {
      return try recover(from: arrival, timeout)
    }
    let space = memory.count / format.bytesPerSample
    let (count, loss) = try device.read(into: start, count: min(available, space))
    if let loss { return try recover(from: loss, timeout) }
    // The sample after those that waited then was due just at that time.
    return count > 0
      ? .samples(count: count, SampleStamp(sample: available, nanoseconds: time)) : .none
  }

  private func recover(
    from arrival: AudioDevice.Arrival, _ timeout: Int32
  ) throws(ALSAError) -> AudioReading {
    switch arrival {
    case .samples, .none: return .none
    case .overrun:
      try device.start(.recover)
      return .lost(.overrun)
    case .suspended:
      if try device.resume() { return .lost(.suspended) }
      usleep(UInt32(clamping: timeout) * 100)  // A tenth of the limit; it has still to wake.
      return .none
    }
  }
}

extension MediaError {
  /// A microphone that failed, refused or went while it was opened for capture or streamed.
  init(capturing error: ALSAError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .notFound, .unplugged: .deviceLost
      case .busy: .deviceBusy
      case .notSupported: error.operation == .setFormat ? .modeRefused : .deviceFailed
      case .outOfMemory: .outOfMemory
      case .tooManyFiles, .other: .deviceFailed
      }
    self.init(code, error.description, recovery: error.recovery, cause: error.cause)
  }
}
