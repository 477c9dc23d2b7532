// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankCameraControls
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// A microphone opened in one sample format, as an input of a session.
///
/// ```swift
/// guard let microphone = CaptureDevice.defaultDevice(for: .audio) else { return }
/// try session.addInput(MicrophoneInput(device: microphone))
/// ```
///
/// The input uses the device exclusively: no other program can record from it.
///
/// All calls may come from any thread. Opening blocks until the sound card answers.
public final class MicrophoneInput: CapturingInput {
  /// The sample format.
  public let format: AudioFormat
  /// Whether a session runs without the microphone if it cannot start, or if a camera can start only
  /// without it.
  public let isOptional: Bool
  package let reach: DeviceEnvironment
  package let canReopen: Bool
  /// The device, and its driver.
  ///
  /// The driver is nil while the device is closed.
  private let opened: Mutex<(device: CaptureDevice, driver: (any AudioDriver)?)>
  private let counters = AudioCounters()

  /// Opens a microphone.
  ///
  /// - Parameters:
  ///   - device: A device with audio.
  ///   - format: One of the device's ``CaptureDevice/audioFormats()``. Nil selects
  ///     the preferred format.
  ///   - isOptional: Whether a session runs without the microphone if it cannot start, or if a camera
  ///     can start only without it.
  /// - Throws: `MediaError` if the device is not a microphone, is busy or lost, may not be opened
  ///   by this user, or does not support the format.
  public convenience init(
    device: CaptureDevice, format: AudioFormat? = nil, isOptional: Bool = false
  ) throws(MediaError) {
    _ = try Self.node(of: device)
    let wanted = if let format { format } else { try device.preferredAudioFormat() }
    self.init(
      device: device, driver: try ALSADriver(Self.node(of: device), wanted), canReopen: true,
      isOptional: isOptional)
  }

  /// Opens the microphone of a camera, that of the same USB device, as an optional input.
  ///
  /// - Returns: Nil if the camera has no microphone of its own.
  /// - Throws: `MediaError` as ``init(device:format:isOptional:)`` does.
  public convenience init?(ofCamera camera: CaptureDevice) throws(MediaError) {
    guard let device = camera.microphone else { return nil }
    try self.init(device: device, isOptional: true)
  }

  /// Creates an input from a device and a custom driver.
  package convenience init(
    device: CaptureDevice, driver: any AudioDriver, isOptional: Bool = false
  ) {
    self.init(device: device, driver: driver, canReopen: false, isOptional: isOptional)
  }

  private init(
    device: CaptureDevice, driver: any AudioDriver, canReopen: Bool, isOptional: Bool
  ) {
    format = driver.format
    self.isOptional = isOptional
    reach = DeviceEnvironment()
    self.canReopen = canReopen
    opened = Mutex((device, driver))
  }

  /// The open device.
  public var device: CaptureDevice { opened.withLock { $0.device } }

  /// The input's only port, which is for audio.
  public var ports: [InputPort] { [InputPort(of: self, mediaType: .audio, audioFormat: format)] }

  /// The number of samples per channel that arrived since the input was created.
  public var sampleCount: Int64 { counters.samples.load(ordering: .relaxed) }
  /// The number of overflows of the sound card's buffer.
  public var overrunCount: Int64 { counters.overruns.load(ordering: .relaxed) }
  /// The number of system suspensions during capture.
  public var suspensionCount: Int64 { counters.suspensions.load(ordering: .relaxed) }
  /// The number of samples per channel lost to overflows and suspensions, estimated from
  /// timestamps.
  public var lostSampleCount: Int64 { counters.lostSamples.load(ordering: .relaxed) }

  package func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) -> any InputCapture {
    guard let driver = opened.withLock({ $0.driver }) else {
      throw MediaError(
        .deviceLost, "\(device.address) was closed, and could not be reopened",
        recovery: "reconnect the device and start again")
    }
    return try RunningAudio(
      driver, counters, into: try connections.audioSinks, control: control, whenEnded: whenEnded)
  }

  /// The ALSA node of a microphone.
  private static func node(of device: CaptureDevice) throws(MediaError) -> AudioNode {
    if case .alsa(let node) = device.source { return node }
    throw MediaError(
      .modeRefused, "\(device.address) is not a microphone",
      recovery: Recovery("choose a listed microphone", .listDevices))
  }

  package func close() { opened.withLock { $0.driver = nil } }

  package func openIfClosed() throws(MediaError) {
    if opened.withLock({ $0.driver == nil }) { try reopen(at: device) }
  }

  package func reopen(at device: CaptureDevice) throws(MediaError) {
    // The device is closed before it is opened again, because an ALSA capture device can be open
    // only once, even within one program.
    close()
    let driver = try reach.perform { () throws(MediaError) in
      try ALSADriver(Self.node(of: device), format)
    }
    opened.withLock { $0 = (device, driver) }
  }
}
