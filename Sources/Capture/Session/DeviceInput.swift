// SPDX-License-Identifier: Apache-2.0
public import FormatDiscovery
import LibAV
public import MediaTiming

/// A device opened in one mode, its frame duration locked, ready to deliver frames.
public final class DeviceInput: Sendable {
  /// The device that was opened.
  public let device: CaptureDevice
  /// The mode that was asked for.
  public let format: CaptureFormat
  /// The rate that was asked for.
  public let requestedFrameRate: FrameRate
  /// The rate that the device granted, read back from it.
  public let negotiatedFrameRate: FrameRate
  package let delivery: FrameDelivery
  /// The driver, and which of its buffers are lent to whom.
  package let loans: FrameLoans
  /// The most bytes that a frame can take.
  package let maximumByteCount: Int
  /// What is heard beside the pictures, and when its sample 0 sounds on the capture clock.
  package let sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?

  package var driver: any FrameDriver { loans.driver }
  /// What errors call the device.
  package var deviceName: String { device.path ?? device.id }
  /// The mode as `modes` names it.
  package var modeName: String { format.id }

  /// Opens a device in a mode and locks its frame duration to the mode's shortest.
  ///
  /// - Throws: `CaptureError` when the device is busy, gone or not permitted, or grants another
  ///   mode than it offered.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(CaptureError) {
    var locked = try device.lockForConfiguration()
    try locked.setActiveFormat(format)
    try locked.sharingSettings()
    try self.init(locked)
  }

  /// Takes over a device that was set to a mode.
  init(_ locked: consuming LockedDevice) throws(CaptureError) {
    device = locked.device
    format = locked.activeFormat
    requestedFrameRate = locked.requestedFrameRate
    let opened = try OpenedDevice(locked)
    negotiatedFrameRate = opened.negotiatedFrameRate
    delivery = opened.delivery
    loans = FrameLoans(opened.driver)
    maximumByteCount = opened.maximumByteCount
    sound = opened.sound
  }

  /// Joins a driver of any make to the device and the mode that it plays; it is not opened.
  package init(
    device: CaptureDevice, format: CaptureFormat, driver: any FrameDriver,
    delivery: FrameDelivery, negotiatedFrameRate: FrameRate, maximumByteCount: Int,
    sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)? = nil
  ) {
    self.device = device
    self.format = format
    loans = FrameLoans(driver)
    self.delivery = delivery
    self.negotiatedFrameRate = negotiatedFrameRate
    self.maximumByteCount = maximumByteCount
    self.sound = sound
    requestedFrameRate = format.maxFrameRate
  }
}
