// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
public import OvercrankMediaCore
import Synchronization

/// A sound card as a player's audio output.
///
/// The time at which a sample is heard is computed from the delay that the device reports. It
/// includes the buffers of the card and of a sound server.
public final class ALSAAudioSink: AudioSink {
  private struct Open: ~Copyable {
    let device: AudioOutputDevice
    let settings: AudioSettings
    var written: Int64 = 0
  }

  /// The ALSA name of the device.
  public let device: String
  private let open = Mutex<Open?>(nil)

  /// The longest time that samples wait in the buffer, and the time between two writes, both in
  /// milliseconds.
  private static let (renderAhead, period) = (20, 10)

  /// Creates an output for an ALSA device; `default` is the user's default device.
  public init(device: String = "default") { self.device = device }

  /// Opens the device.
  ///
  /// - Throws: `MediaError` with `.noAudioOutput` if the device does not exist, is busy, or does not
  ///   support the format.
  public func open(sampleRate: Int, channelCount: Int) throws(MediaError) {
    do throws(CallFailure) {
      let device = try AudioOutputDevice(opening: device)
      let settings = try Self.configure(device, sampleRate, channelCount)
      let opened = Open(device: device, settings: settings)
      var cell: Open? = consume opened
      open.withLock { $0 = cell.take() }
    } catch { throw Self.failure(error) }
  }

  /// Configures the device with the first sample layout that it supports: float, 32 bits or 16
  /// bits.
  private static func configure(
    _ device: borrowing AudioOutputDevice, _ sampleRate: Int, _ channelCount: Int
  ) throws(CallFailure) -> AudioSettings {
    let period = sampleRate * period / 1000
    func settings(_ layout: SampleLayout) -> AudioSettings {
      AudioSettings(
        layout: layout, channelCount: channelCount, rate: sampleRate, periodSize: period,
        bufferSize: 4 * period)
    }
    for layout in [SampleLayout.float, .s32] {
      if let granted = try? device.configure(settings(layout)) { return granted }
    }
    return try device.configure(settings(.s16))
  }

  /// The number of samples that can be written without exceeding 20 ms in the buffer.
  public var writableCount: Int {
    open.withLock { open in
      guard let available = try? open?.device.available() ?? 0, let settings = open?.settings else {
        return open?.settings.periodSize ?? 0
      }
      let ahead = max(2 * settings.periodSize, settings.rate * Self.renderAhead / 1000)
      return max(0, ahead - (settings.bufferSize - available))
    }
  }

  /// Waits for up to half a period, until samples can be written.
  public func waitUntilWritable() throws(MediaError) {
    // ALSA would wake whenever its buffer has space, but playback fills only a part of the buffer.
    // So this sleeps for half a period instead.
    MonotonicHostClock().sleep(until: wakeTime)
  }

  private var wakeTime: MediaTime {
    let now = MonotonicHostClock().now
    let half = MediaTime(nanoseconds: Int64(Self.period) * 500_000)
    return writableCount > 0 ? now : MediaTime(exactly: now + half) ?? now
  }

  /// Writes samples to the device.
  public func write(_ samples: [[Float]]) throws(MediaError) -> Bool {
    do throws(CallFailure) {
      return try open.withLock { (open) throws(CallFailure) in
        try Self.write(samples, to: &open)
      }
    } catch { throw Self.failure(error) }
  }

  private static func write(
    _ samples: [[Float]], to open: inout Open?
  ) throws(CallFailure) -> Bool {
    guard let layout = open?.settings.layout else { return true }
    let bytes = InterleavedSamples.bytes(of: samples, layout)
    let count = samples.first?.count ?? 0
    let stride = layout.byteCount * samples.count
    var (done, isContinuous, attempts) = (0, true, 0)
    while done < count, attempts < 8 {
      attempts += 1
      let (first, rest) = (done * stride, count - done)
      let progress = try bytes.span.withUnsafeBytes {
        (bytes) throws(CallFailure) -> AudioOutputDevice.Progress? in
        guard let start = bytes.baseAddress else { return nil }
        return try open?.device.write(start + first, count: rest)
      }
      switch progress {
      case .written(let part): done += part
      case .underrun: isContinuous = false
      case nil: return true
      }
    }
    // Samples that the device did not take also count as written, so that later samples keep their
    // numbers.
    open?.written += Int64(count)
    return isContinuous && done == count
  }

  /// The number of the sample that is heard now, and the host time.
  public var timing: AudioSinkTiming? {
    open.withLock { open in
      guard let written = open?.written, written > 0, let delay = open?.device.delay() else {
        return nil
      }
      return AudioSinkTiming(
        sample: Rational(written - Int64(delay.samples)),
        hostTime: MediaTime(nanoseconds: delay.nanoseconds))
    }
  }

  /// Closes the device.
  public func close() {
    open.withLock { open in
      open?.device.stop()
      open = nil
    }
  }

  private static func failure(_ error: CallFailure) -> MediaError {
    MediaError(
      .noAudioOutput, error.description,
      recovery: error.kind == .busy
        ? "close the program that plays audio, or play without audio"
        : "connect a sound card, or play without audio", cause: error.cause)
  }
}

/// Converts samples to the sample layout of a sound card.
enum InterleavedSamples {
  /// Interleaves the channels, and clips samples to full scale.
  static func bytes(of channels: [[Float]], _ layout: SampleLayout) -> [UInt8] {
    let count = channels.first?.count ?? 0
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count * channels.count * layout.byteCount)
    for index in 0..<count {
      for channel in channels { append(channel[index], layout, to: &bytes) }
    }
    return bytes
  }

  private static func append(_ sample: Float, _ layout: SampleLayout, to bytes: inout [UInt8]) {
    let limited = Double(max(-1, min(1, sample.isNaN ? 0 : sample)))
    func integer(_ bits: Int) -> Int32 {
      let scale = Double(Int64(1) << (bits - 1))
      return Int32(min(scale - 1, (limited * scale).rounded()))
    }
    func add(_ value: some FixedWidthInteger, _ length: Int) {
      withUnsafeBytes(of: value.littleEndian) { bytes += $0.prefix(length) }
    }
    switch layout {
    case .s16: add(integer(16), 2)
    case .s24: add(integer(24), 4)
    case .s24Packed: add(integer(24), 3)
    case .s32: add(integer(32), 4)
    case .float: add(Float(limited).bitPattern, 4)
    }
  }
}
