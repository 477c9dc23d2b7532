// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankALSA
import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// A configured ALSA capture device.
final class ALSADriver: AudioDriver {
  let format: AudioFormat
  private let device: AudioDevice

  /// Opens and configures a device.
  ///
  /// - Throws: `MediaError` if the device is busy, lost or not permitted, or does not support the
  ///   format.
  init(_ node: AudioNode, _ format: AudioFormat) throws(MediaError) {
    do throws(CallFailure) {
      let device = try AudioDevice(opening: node)
      // The period is 10 ms. The buffer holds 0.5 s, so that this program may read late without an
      // overrun.
      _ = try device.configure(
        AudioSettings(
          layout: format.sampleFormat.layout, channelCount: format.channelCount,
          rate: format.sampleRate, periodSize: max(1, format.sampleRate / 100),
          bufferSize: max(2, format.sampleRate / 2)))
      self.device = device
    } catch {
      let isFormat = error.operation == AudioOperation.setFormat.rawValue
      throw MediaError(error, at: isFormat ? .capturing : .capturingAudio)
    }
    self.format = format
  }

  func nanoseconds() -> Int64 { device.nanoseconds() }

  func start() throws(MediaError) {
    try CallStage.capturingAudio.converting { () throws(CallFailure) in try device.start() }
  }

  func stop() { device.stop() }

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    do throws(CallFailure) { return try take(into: memory, timeoutMilliseconds) } catch {
      throw MediaError(error, at: .capturingAudio)
    }
  }

  private func take(
    into memory: UnsafeMutableRawBufferPointer, _ timeout: Int32
  ) throws(CallFailure) -> AudioReading {
    let arrival = try device.wait(milliseconds: timeout)
    guard case .samples(let available, let time) = arrival, let start = memory.baseAddress else {
      return try recover(from: arrival, timeout)
    }
    let space = memory.count / format.bytesPerSample
    let (count, loss) = try device.read(into: start, count: min(available, space))
    if let loss { return try recover(from: loss, timeout) }
    // The timestamp is the capture time of the next sample that the card will deliver. All
    // available samples come before that sample, so its index equals the number of available
    // samples.
    return count > 0
      ? .samples(count: count, SampleStamp(sample: available, nanoseconds: time)) : .none
  }

  private func recover(
    from arrival: AudioDevice.Arrival, _ timeout: Int32
  ) throws(CallFailure) -> AudioReading {
    switch arrival {
    case .samples, .none: return .none
    case .overrun:
      try device.start(.recover)
      return .lost(.overrun)
    case .suspended:
      if try device.resume() { return .lost(.suspended) }
      usleep(UInt32(clamping: timeout) * 100)  // Still suspended: waits a tenth of the timeout.
      return .none
    }
  }
}
