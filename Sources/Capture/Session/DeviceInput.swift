// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// A device opened in one mode, its frame duration locked, ready to deliver frames.
///
/// A session opens it anew, in the same mode, when the device was gone and is there again; a
/// session's preset opens it in another mode.
///
/// All calls may come from any thread. Opening waits for the driver; measuring waits for frames, and
/// needs the device for itself: no session may capture from the input meanwhile.
public final class DeviceInput: Sendable {
  /// What is heard beside the pictures, when its sample 0 sounds on the capture clock, and the
  /// clock of frames that do not wait for their time; nil for those that do.
  package typealias Audio = (
    source: SyntheticAudio, epochMicroseconds: @Sendable () -> Int64, frameClock: FrameClock?
  )

  /// What was opened last.
  private let opened: Mutex<OpenedDevice>
  package let reach: DeviceEnvironment
  /// Whether other programs may change the device meanwhile; nil where it cannot be opened anew.
  private let sharesSettings: Bool?
  private var current: OpenedDevice { opened.withLock { $0 } }
  /// The mode that the input was made with.
  let originalFormat: CaptureFormat
  package var canReopen: Bool { sharesSettings != nil }

  /// The device that was opened.
  public var device: CaptureDevice { current.device }
  /// The mode that was asked for.
  public var format: CaptureFormat { current.format }
  /// The rate that was asked for.
  public var requestedFrameRate: FrameRate { current.requestedFrameRate }
  /// The rate that the device granted, read back from it.
  public var negotiatedFrameRate: FrameRate { current.negotiatedFrameRate }
  package var delivery: FrameDelivery { current.delivery }
  /// The driver with its pool of buffers.
  package var pool: BufferPool { current.pool }
  /// The most bytes that a frame can take.
  package var maximumByteCount: Int { current.maximumByteCount }
  package var audio: Audio? { current.audio }

  package var driver: any FrameDriver { pool.driver }
  /// The mode as `modes` names it.
  package var modeName: String { format.id }

  /// Opens a device in a mode and locks its frame duration to the mode's shortest.
  ///
  /// - Throws: `MediaError` when the device is busy, gone or not permitted, or grants another
  ///   mode than it offered.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    var locked = try device.lockForConfiguration()
    try locked.setActiveFormat(format)
    try locked.sharingSettings()
    try self.init(locked, sharesSettings: true)
  }

  /// Takes over a device that was set to a mode.
  init(_ locked: consuming DeviceConfiguration, sharesSettings: Bool) throws(MediaError) {
    reach = DeviceEnvironment()
    self.sharesSettings = sharesSettings
    let first = try OpenedDevice(locked)
    originalFormat = first.format
    opened = Mutex(first)
  }

  /// Joins a driver of any make to the device and the mode that it plays; it is not opened.
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

  /// The modes that the device has.
  func knownFormats() throws(MediaError) -> [CaptureFormat] {
    let device = device
    return try reach.perform { () throws(MediaError) in try device.formats() }
  }

  package func close() { pool.close() }

  package func openIfClosed() throws(MediaError) { if pool.isClosed { try open() } }

  package func reopen(at device: CaptureDevice) throws(MediaError) { try open(at: device) }

  /// Opens the device anew, which must not stream.
  ///
  /// Buffers that are still held stay readable.
  ///
  /// - Parameters:
  ///   - newDevice: The same device where it is now; nil where it was.
  ///   - format: Another mode, at its highest rate; nil for the one that it had.
  /// - Throws: `MediaError` as ``init(device:format:)``; the input cannot be started then until
  ///   it was opened.
  func open(
    at newDevice: CaptureDevice? = nil, as format: CaptureFormat? = nil
  ) throws(MediaError) {
    guard let sharesSettings else {
      throw MediaError(
        .badConfiguration, "\(device.address) cannot be opened anew",
        recovery: "make another input of it")
    }
    let before = current
    // A driver takes no other mode while it has buffers of the one before.
    before.pool.close()
    try reach.perform { () throws(MediaError) in
      var locked = try (newDevice ?? before.device).lockForConfiguration()
      try locked.setActiveFormat(format ?? before.format)
      if format == nil, before.requestedFrameRate != before.format.maxFrameRate {
        try locked.setActiveVideoFrameDuration(before.requestedFrameRate.frameDuration)
      }
      if sharesSettings { try locked.sharingSettings() }
      let new = try OpenedDevice(locked)
      opened.withLock { $0 = new }
    }
  }
}
