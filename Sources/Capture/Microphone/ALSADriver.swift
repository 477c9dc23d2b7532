// SPDX-License-Identifier: Apache-2.0
import ALSA
import FormatDiscovery
import Glibc

/// The capture device of a sound card, set up.
final class ALSADriver: SoundDriver {
  let format: AudioFormat
  private let device: SoundDevice

  /// Opens a device in a format.
  ///
  /// - Throws: `CaptureError` when the device is busy, gone or not permitted, or lacks the format.
  init(_ node: SoundNode, _ format: AudioFormat) throws(CaptureError) {
    do throws(SoundError) {
      let device = try SoundDevice(opening: node)
      // 10 ms from interrupt to interrupt; half a second may wait until this program comes.
      _ = try device.configure(
        SoundSettings(
          layout: format.sampleFormat.layout, channelCount: format.channelCount,
          rate: format.sampleRate, periodSize: max(1, format.sampleRate / 100),
          bufferSize: max(2, format.sampleRate / 2)))
      self.device = device
    } catch { throw CaptureError(error) }
    self.format = format
  }

  func nanoseconds() -> Int64 { device.nanoseconds() }

  func start() throws(CaptureError) {
    do throws(SoundError) { try device.start() } catch { throw CaptureError(error) }
  }

  func stop() { device.stop() }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(CaptureError) -> SoundReading {
    do throws(SoundError) { return try take(into: memory, timeoutMilliseconds) } catch {
      throw CaptureError(error)
    }
  }

  private func take(
    into memory: UnsafeMutableRawBufferPointer, _ timeout: Int32
  ) throws(SoundError) -> SoundReading {
    let arrival = try device.wait(milliseconds: timeout)
    guard case .samples(let available, let time) = arrival, let start = memory.baseAddress else {
      return try recover(from: arrival, timeout)
    }
    let room = memory.count / format.bytesPerSample
    let (count, loss) = try device.read(into: start, count: min(available, room))
    if let loss { return try recover(from: loss, timeout) }
    // The sample after those that waited then was due just at that time.
    return count > 0
      ? .samples(count: count, SampleStamp(sample: available, nanoseconds: time)) : .none
  }

  private func recover(
    from arrival: SoundDevice.Arrival, _ timeout: Int32
  ) throws(SoundError) -> SoundReading {
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

extension CaptureError {
  init(_ error: SoundError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .notFound, .unplugged: .deviceLost
      case .busy: .deviceBusy
      case .notSupported: error.operation == .setFormat ? .modeRefused : .deviceFailed
      case .outOfMemory: .outOfMemory
      case .tooManyFiles, .other: .deviceFailed
      }
    self.init(code, error.description, hint: error.hint)
  }
}
