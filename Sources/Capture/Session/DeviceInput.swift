// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A capture device opened in one mode with a locked frame duration.
///
/// When a lost device returns, the session reopens it in the same mode. A session preset reopens
/// the device in another mode.
///
/// All calls may come from any thread. Opening blocks until the driver answers. Measuring blocks
/// until frames arrive and needs the device exclusively: no session may use the input meanwhile.
public final class DeviceInput: Sendable {
  /// The camera's audio and its timing.
  ///
  /// - `source`: The audio signal.
  /// - `epochMicroseconds`: The time of sample 0 on the capture clock. It stays valid after the
  ///   stream has ended.
  /// - `runningEpochMicroseconds`: The same time while the camera streams, and 0 otherwise.
  /// - `frameClock`: The clock that follows the delivered frames, or nil if frames are delivered in
  ///   real time.
  package typealias Audio = (
    source: SyntheticAudio, epochMicroseconds: @Sendable () -> Int64,
    runningEpochMicroseconds: @Sendable () -> Int64, frameClock: FrameClock?
  )

  /// The device as it was last opened.
  private let opened: Mutex<OpenedDevice>
  package let reach: DeviceEnvironment
  /// Whether other programs may change the device's settings while this input exists.
  ///
  /// The same choice applies when the input reopens the device. Nil if the device cannot be
  /// reopened.
  private let sharesSettings: Bool?
  private var current: OpenedDevice { opened.withLock { $0 } }
  /// Observes the brightness of frames, for the torch and for subject area changes.
  let scene = SceneMonitor()
  /// The camera's zoom, and the flips that its driver applies.
  let geometry = CameraGeometry()
  /// The mode that the input was created with.
  let originalFormat: CaptureFormat
  package var canReopen: Bool { sharesSettings != nil }

  /// The open device.
  public var device: CaptureDevice { current.device }
  /// The mode that was requested.
  public var format: CaptureFormat { current.format }
  /// The frame rate that was requested.
  public var requestedFrameRate: FrameRate { current.requestedFrameRate }
  /// The frame rate that the driver reports after the request.
  public var negotiatedFrameRate: FrameRate { current.negotiatedFrameRate }
  package var delivery: FrameDelivery { current.delivery }
  /// The driver and its buffer pool.
  package var pool: BufferPool { current.pool }
  /// The maximum size of a frame, in bytes.
  package var maximumByteCount: Int { current.maximumByteCount }
  package var audio: Audio? { current.audio }

  package var driver: any FrameDriver { pool.driver }
  /// The name of the mode, as in ``CaptureFormat/id``.
  package var modeName: String { format.id }

  /// Opens a device in a mode and locks the mode's shortest frame duration.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` if the device is busy, lost or not permitted, or if its driver selects
  ///   another mode than requested.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    var locked = try device.lockForConfiguration()
    try locked.setActiveFormat(format)
    try locked.sharingSettings()
    try self.init(locked, sharesSettings: true)
  }

  /// Takes ownership of a configured device.
  init(_ locked: consuming DeviceConfiguration, sharesSettings: Bool) throws(MediaError) {
    reach = DeviceEnvironment()
    self.sharesSettings = sharesSettings
    let first = try OpenedDevice(locked)
    originalFormat = first.format
    opened = Mutex(first)
    showScene(of: first.device)
  }

  /// Creates an input from a custom driver and the mode that it simulates.
  ///
  /// No device is opened.
  package init(
    device: CaptureDevice, format: CaptureFormat, driver: any FrameDriver,
    delivery: FrameDelivery, negotiatedFrameRate: FrameRate, maximumByteCount: Int,
    audio: Audio? = nil
  ) {
    reach = DeviceEnvironment()
    sharesSettings = nil
    originalFormat = format
    opened = Mutex(
      OpenedDevice(
        device: device, format: format, driver: driver, delivery: delivery,
        negotiatedFrameRate: negotiatedFrameRate, maximumByteCount: maximumByteCount,
        audio: audio))
  }

  deinit {
    scene.end()
    geometry.end()
  }

  /// Registers the scene monitor with the device, so that ``CameraControls`` of this device can
  /// observe the brightness of frames.
  private func showScene(of device: CaptureDevice) {
    guard case .v4l2(let path) = device.source else { return }
    DeviceSystem.calls.handles.setCompanion(scene, of: path)
  }

  /// The modes that the device supports.
  func knownFormats() throws(MediaError) -> [CaptureFormat] {
    let device = device
    return try reach.perform { () throws(MediaError) in try device.formats() }
  }

  package func close() { pool.close() }

  package func openIfClosed() throws(MediaError) { if pool.isClosed { try open() } }

  package func reopen(at device: CaptureDevice) throws(MediaError) { try open(at: device) }

  /// Reopens the device, which must not be streaming.
  ///
  /// Buffers that are still held stay readable.
  ///
  /// - Parameters:
  ///   - newDevice: The same device at its current location. Nil keeps the location.
  ///   - format: Another mode. Nil keeps the mode.
  ///   - frameRate: The frame rate. Nil keeps that of the mode, or selects the highest of another
  ///     mode.
  /// - Throws: `MediaError` as ``init(device:format:)`` does. The input is then closed, and cannot
  ///   start until a call of this method succeeds.
  func open(
    at newDevice: CaptureDevice? = nil, as format: CaptureFormat? = nil,
    frameRate: FrameRate? = nil
  ) throws(MediaError) {
    guard let sharesSettings else {
      throw MediaError(
        .badConfiguration, "\(device.address) cannot be reopened",
        recovery: "create another input")
    }
    let before = current
    // The previous buffers are released first. While they are allocated, the driver rejects a new
    // mode.
    before.pool.close()
    try reach.perform { () throws(MediaError) in
      var locked = try (newDevice ?? before.device).lockForConfiguration()
      let mode = format ?? before.format
      let rate = frameRate ?? (format == nil ? before.requestedFrameRate : mode.maxFrameRate)
      try locked.setActiveFormat(mode)
      if rate != mode.maxFrameRate { try locked.setActiveVideoFrameDuration(rate.frameDuration) }
      if sharesSettings { try locked.sharingSettings() }
      let new = try OpenedDevice(locked)
      opened.withLock { $0 = new }
      showScene(of: new.device)
    }
  }
}
