// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2

extension CaptureDevice {
  /// Locks the device for configuration, so that other programs cannot change its settings.
  ///
  /// Other programs get `EBUSY` until the returned value, or an input made from it, is destroyed.
  /// The driver enforces this (`VIDIOC_S_PRIORITY` with `V4L2_PRIORITY_RECORD`); drivers without
  /// priorities do not. ``CameraControls`` of this program use the handle that holds the lock, so
  /// they still work. If this program already captures from the device, the device can be locked
  /// too: its controls can then be set, but its format cannot. Corresponds to
  /// `AVCaptureDevice.lockForConfiguration()`.
  ///
  /// - Throws: `MediaError` with `.deviceBusy` if another program or another
  ///   ``DeviceConfiguration`` holds the lock. `.deviceLost` or `.noPermission` if the device
  ///   cannot be opened.
  public func lockForConfiguration() throws(MediaError) -> DeviceConfiguration {
    try DeviceConfiguration(self)
  }
}

/// A device that is locked for configuration.
///
/// ```swift
/// var locked = try camera.lockForConfiguration()
/// try locked.setActiveFormat(try camera.fastestFormat())
/// try locked.setActiveVideoFrameDuration(MediaTime(1, over: 120))
/// let input = try locked.makeInput()
/// ```
public struct DeviceConfiguration: ~Copyable {
  /// The locked device.
  public let device: CaptureDevice
  /// The mode that was last set or, before any change, the device's current mode.
  public private(set) var activeFormat: CaptureFormat
  /// The minimum frame duration in seconds, as the driver reports it.
  ///
  /// V4L2 drivers have a single frame duration. The minimum and the maximum are therefore equal,
  /// and the rate is locked.
  public private(set) var activeVideoMinFrameDuration: MediaTime
  /// The maximum frame duration in seconds, which equals the minimum.
  public var activeVideoMaxFrameDuration: MediaTime { activeVideoMinFrameDuration }

  /// The most recently requested frame rate.
  private(set) var requestedFrameRate: FrameRate
  /// The open node, or nil for a synthetic camera and a file.
  var node: VideoDevice?
  /// Whether an input of this program captures from the node, so that the format cannot change.
  private let isCapturing: Bool
  /// The lock on the device's settings; nil for a camera without a node.
  private let lock: SettingsLock?
  /// The format that the driver selected, or nil if no format was set since the device was locked.
  private(set) var granted: StreamFormat?
  /// The frame duration that the device had when it was locked.
  ///
  /// Nil if the driver has none.
  let durationBefore: MediaTime?

  init(_ device: CaptureDevice) throws(MediaError) {
    guard case .v4l2(let path) = device.source else {
      activeFormat = try device.fastestFormat()
      self.device = device
      activeVideoMinFrameDuration = activeFormat.minFrameDuration
      requestedFrameRate = activeFormat.maxFrameRate
      durationBefore = nil
      isCapturing = false
      lock = nil
      return
    }
    let node = try Self.open(device, path)
    let lock = try Self.lock(node)
    let duration: MediaTime?
    let found: StreamFormat
    do throws(CallFailure) {
      duration = try Self.durationInForce(node)
      found = try node.currentFormat()
    } catch { throw MediaError(error, at: .capturing) }
    let rate = try Self.rate(of: duration)
    self.device = device
    activeFormat = CaptureFormat(found, rate)
    activeVideoMinFrameDuration = rate.frameDuration
    requestedFrameRate = rate
    durationBefore = duration
    isCapturing = node.isCapturing
    self.node = consume node
    self.lock = consume lock
  }

  /// Sets the device to a mode at its highest rate.
  ///
  /// Calls `VIDIOC_S_FMT`, then `VIDIOC_S_PARM`, and reads both back. The frame rate is set last,
  /// because setting the format resets it.
  ///
  /// - Throws: `MediaError` with `.modeRefused` if the driver selects another size or pixel format,
  ///   or `.deviceBusy` if an input of this program captures from the device. A rounded rate is not
  ///   an error.
  public mutating func setActiveFormat(_ format: CaptureFormat) throws(MediaError) {
    try refuseCapturing()
    if node != nil {
      guard let width = UInt32(exactly: format.width), let height = UInt32(exactly: format.height)
      else { throw .unstorable(format) }
      let granted: StreamFormat
      do throws(CallFailure) {
        _ = try node?.setFormat(fourcc: format.fourcc.rawValue, width: width, height: height)
        activeVideoMinFrameDuration = try setDuration(format.minFrameDuration)
        guard let inForce = try node?.currentFormat() else { return }
        granted = inForce
      } catch { throw MediaError(error, at: .capturing) }
      guard granted.fourcc == format.fourcc.rawValue, granted.width == width,
        granted.height == height
      else { throw .refused(format, granted, by: device.address) }
      self.granted = granted
    } else {
      activeVideoMinFrameDuration = format.minFrameDuration
    }
    activeFormat = format
    requestedFrameRate = format.maxFrameRate
  }

  /// Sets the minimum and maximum frame duration to one value.
  ///
  /// - Parameter duration: The duration in seconds, above zero.
  /// - Returns: The duration that the driver then reports. Drivers may round it.
  /// - Throws: `MediaError` with `.modeRefused` for a duration outside the range of the active
  ///   format.
  @discardableResult
  public mutating func setActiveVideoFrameDuration(
    _ duration: MediaTime
  ) throws(MediaError) -> MediaTime {
    try refuseCapturing()
    let name = device.address
    guard let rate = try? FrameRate(frameDuration: duration),
      activeFormat.frameRateRange.contains(rate)
    else {
      throw MediaError(
        .modeRefused,
        "\(name) does not support frames of \(duration.displayText) s in \(activeFormat.id)",
        recovery: Recovery("choose another format", .listFormats(device: name)))
    }
    do throws(CallFailure) { activeVideoMinFrameDuration = try setDuration(duration) } catch {
      throw MediaError(error, at: .capturing)
    }
    requestedFrameRate = rate
    return activeVideoMinFrameDuration
  }

  /// Creates an input from the configured device.
  ///
  /// The device stays locked as long as the input exists.
  ///
  /// - Throws: `MediaError` if the device is busy or its frames cannot be read.
  public consuming func makeInput() throws(MediaError) -> DeviceInput {
    try refuseCapturing()
    return try DeviceInput(self, sharesSettings: false)
  }

  /// Releases the lock on the device's settings.
  ///
  /// The mode stays set.
  public consuming func unlockForConfiguration() {}

  /// Releases the lock on the device's settings but keeps the device open, so that other programs
  /// can change the settings.
  func sharingSettings() throws(MediaError) {
    do throws(CallFailure) { try lock?.unlock() } catch {
      throw MediaError(error, at: .capturing)
    }
  }

  private func refuseCapturing() throws(MediaError) {
    guard isCapturing else { return }
    throw MediaError(
      .deviceBusy, "an input of this program captures from \(device.address)",
      recovery: "call setActiveFormat of that input")
  }

  /// Opens the node or, if this program already captures from it, shares the handle of that
  /// capture.
  private static func open(
    _ device: CaptureDevice, _ path: String
  ) throws(MediaError) -> VideoDevice {
    if let capturing = VideoDevice(capturingAt: path) { return capturing }
    return try device.openNode(at: path)
  }

  private static func lock(_ node: borrowing VideoDevice) throws(MediaError) -> SettingsLock {
    do throws(CallFailure) { return try node.lockSettings() } catch {
      throw MediaError(error, at: .capturing)
    }
  }

  /// The current frame duration, or nil if the driver has none.
  private static func durationInForce(
    _ node: borrowing VideoDevice
  ) throws(CallFailure) -> MediaTime? {
    do throws(CallFailure) {
      return try node.frameDuration()
    } catch  where error.keepsNoFrameDuration { return nil }
  }

  /// The frame rate with this frame duration.
  ///
  /// 1 fps if the driver has no frame duration.
  private static func rate(of duration: MediaTime?) throws(MediaError) -> FrameRate {
    do throws(MediaError) {
      return try FrameRate(frameDuration: duration ?? MediaTime(seconds: 1))
    } catch {
      throw MediaError(
        .modeRefused, "the device reports an invalid frame duration: \(error)",
        recovery: Recovery("choose a format", .change(.format)))
    }
  }

  /// Sets the frame duration and returns the duration that the driver then reports.
  ///
  /// If the driver cannot set frame durations, it lists a single rate, and `duration` is returned.
  private mutating func setDuration(_ duration: MediaTime) throws(CallFailure) -> MediaTime {
    do throws(CallFailure) {
      return try node?.setFrameDuration(duration) ?? duration
    } catch  where error.keepsNoFrameDuration { return duration }
  }
}

extension CaptureFormat {
  /// Creates the description of a driver's current mode.
  fileprivate init(_ found: StreamFormat, _ rate: FrameRate) {
    let fourcc = FourCC(rawValue: found.fourcc)
    self.init(
      fourcc: fourcc, width: Int(found.width), height: Int(found.height),
      isCompressed: found.bytesPerLine == 0, frameRateRange: FrameRateRange(rate), driverOrder: 0)
  }
}
