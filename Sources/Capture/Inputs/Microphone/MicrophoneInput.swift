// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// A microphone opened in one format, ready to deliver sound to a session's outputs.
///
/// ```swift
/// guard let microphone = CaptureDevice.defaultDevice(for: .audio) else { return }
/// try session.addInput(MicrophoneInput(device: microphone))
/// ```
///
/// No other program can record from the device while the input lives.
///
/// All calls may come from any thread; opening waits for the sound card.
public final class MicrophoneInput: CapturingInput {
  /// How its samples are given.
  public let format: AudioFormat
  package let reach: DeviceEnvironment
  package let canReopen: Bool
  /// The device, and its driver as long as that is open.
  private let opened: Mutex<(device: CaptureDevice, driver: (any AudioDriver)?)>
  private let counters = AudioCounters()

  /// Opens a microphone.
  ///
  /// - Parameters:
  ///   - device: One that gives sound.
  ///   - format: One of its ``CaptureDevice/audioFormats()``; nil for that which
  ///     it prefers.
  /// - Throws: `MediaError` when the device is busy, gone or not permitted, gives no sound, or
  ///   lacks the format.
  public convenience init(
    device: CaptureDevice, format: AudioFormat? = nil
  ) throws(MediaError) {
    _ = try Self.node(of: device)
    let wanted = if let format { format } else { try device.preferredAudioFormat() }
    self.init(
      device: device, driver: try ALSADriver(Self.node(of: device), wanted), canReopen: true)
  }

  /// Joins a driver of any make to the device that it plays.
  package convenience init(device: CaptureDevice, driver: any AudioDriver) {
    self.init(device: device, driver: driver, canReopen: false)
  }

  private init(device: CaptureDevice, driver: any AudioDriver, canReopen: Bool) {
    format = driver.format
    reach = DeviceEnvironment()
    self.canReopen = canReopen
    opened = Mutex((device, driver))
  }

  /// The device that was opened.
  public var device: CaptureDevice { opened.withLock { $0.device } }

  /// One port, of sound.
  public var ports: [InputPort] { [InputPort(mediaType: .audio, audioFormat: format)] }

  /// Samples of each channel that arrived since the input was made.
  public var sampleCount: Int64 { counters.samples.load(ordering: .relaxed) }
  /// How often the card's buffer ran over because this program did not come in time.
  public var overrunCount: Int64 { counters.overruns.load(ordering: .relaxed) }
  /// How often the machine slept meanwhile.
  public var suspensionCount: Int64 { counters.suspensions.load(ordering: .relaxed) }
  /// Samples of each channel that were lost by both, to the nearest by the time stamps.
  public var lostSampleCount: Int64 { counters.lostSamples.load(ordering: .relaxed) }

  package func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) -> any InputCapture {
    guard let driver = opened.withLock({ $0.driver }) else {
      throw MediaError(
        .deviceLost, "\(device.address) was closed, and could not be opened again",
        recovery: "look whether it is there, and start again")
    }
    return try RunningAudio(
      driver, counters, into: try connections.audioSinks, control: control, whenEnded: whenEnded)
  }

  /// The node of a device that gives sound.
  private static func node(of device: CaptureDevice) throws(MediaError) -> AudioNode {
    if case .alsa(let node) = device.source { return node }
    throw MediaError(
      .modeRefused, "\(device.address) is no microphone",
      recovery: Recovery("choose a microphone that is listed", .listDevices))
  }

  package func close() { opened.withLock { $0.driver = nil } }

  package func openIfClosed() throws(MediaError) {
    if opened.withLock({ $0.driver == nil }) { try reopen(at: device) }
  }

  package func reopen(at device: CaptureDevice) throws(MediaError) {
    // Nobody can open a card twice, not even who has it.
    close()
    let driver = try reach.perform { () throws(MediaError) in
      try ALSADriver(Self.node(of: device), format)
    }
    opened.withLock { $0 = (device, driver) }
  }
}
