// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2

extension CaptureDevice {
  /// Locks the device for configuration, so that other programs cannot change its settings.
  ///
  /// Other programs get `EBUSY` until the returned value, or an input made from it, is destroyed.
  /// The driver enforces this (`VIDIOC_S_PRIORITY` with `V4L2_PRIORITY_RECORD`). Drivers without
  /// priorities do not. Corresponds to `AVCaptureDevice.lockForConfiguration()`.
  ///
  /// - Throws: `MediaError` with `.deviceBusy` if another program holds the lock, `.deviceLost` or
  ///   `.noPermission`.
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
  /// The mode that was set, or the device's mode before the first change.
  public private(set) var activeFormat: CaptureFormat
  /// The minimum frame duration in seconds, as the driver reports it.
  ///
  /// V4L2 drivers have a single frame duration. The minimum and the maximum are therefore equal,
  /// and the rate is locked.
  public private(set) var activeVideoMinFrameDuration: MediaTime
  /// The maximum frame duration in seconds, which equals the minimum.
  public var activeVideoMaxFrameDuration: MediaTime { activeVideoMinFrameDuration }

  /// The frame rate of the last request.
  private(set) var requestedFrameRate: FrameRate
  /// The open node, or nil for a synthetic camera and a file.
  var node: VideoDevice?
  /// The format that the driver selected, or nil before the first change.
  private(set) var granted: StreamFormat?
  /// The frame duration before the first change.
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
      return
    }
    let node = try device.openNode(at: path)
    let duration: MediaTime?
    let found: StreamFormat
    do throws(DeviceError) {
      try Self.takeSettings(of: node)
      duration = try Self.durationInForce(node)
      found = try node.currentFormat()
    } catch { throw MediaError(capturing: error) }
    let rate = try Self.rate(of: duration)
    self.device = device
    activeFormat = CaptureFormat(found, rate)
    activeVideoMinFrameDuration = rate.frameDuration
    requestedFrameRate = rate
    durationBefore = duration
    self.node = consume node
  }

  /// Sets the device to a mode at its highest rate.
  ///
  /// Calls `VIDIOC_S_FMT`, then `VIDIOC_S_PARM`, and reads both back. The order matters because the
  /// former resets the latter.
  ///
  /// - Throws: `MediaError` with `.modeRefused` if the driver selects another size or pixel format.
  ///   A rounded rate is not an error.
  public mutating func setActiveFormat(_ format: CaptureFormat) throws(MediaError) {
    if node != nil {
      guard let width = UInt32(exactly: format.width), let height = UInt32(exactly: format.height)
      else { throw .unstorable(format) }
      let granted: StreamFormat
      do throws(DeviceError) {
        _ = try node?.setFormat(fourcc: format.fourcc.rawValue, width: width, height: height)
        activeVideoMinFrameDuration = try setDuration(format.minFrameDuration)
        guard let inForce = try node?.currentFormat() else { return }
        granted = inForce
      } catch { throw MediaError(capturing: error) }
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
    let name = device.address
    guard let rate = try? FrameRate(frameDuration: duration),
      activeFormat.frameRateRange.contains(rate)
    else {
      throw MediaError(
        .modeRefused,
        "\(name) does not support frames of \(duration.displayText) s in \(activeFormat.id)",
        recovery: Recovery("choose another format", .listFormats(device: name)))
    }
    do throws(DeviceError) { activeVideoMinFrameDuration = try setDuration(duration) } catch {
      throw MediaError(capturing: error)
    }
    requestedFrameRate = rate
    return activeVideoMinFrameDuration
  }

  /// Creates an input from the configured device.
  ///
  /// The lock lasts as long as the input.
  ///
  /// - Throws: `MediaError` if the device is busy or its frames cannot be read.
  public consuming func makeInput() throws(MediaError) -> DeviceInput {
    try DeviceInput(self, sharesSettings: false)
  }

  /// Releases the lock.
  ///
  /// The mode stays set.
  public consuming func unlockForConfiguration() {}

  /// Lets other programs change settings again, while the device stays open.
  func sharingSettings() throws(MediaError) {
    do throws(DeviceError) {
      try node?.setPriority(.interactive)
    } catch  where error.reason != .notSupported { throw MediaError(capturing: error) } catch {}
  }

  private static func takeSettings(of node: borrowing VideoDevice) throws(DeviceError) {
    do throws(DeviceError) {
      try node.setPriority(.record)
    } catch  where error.reason != .notSupported { throw error } catch {}
  }

  /// The current frame duration, or nil if the driver has none.
  private static func durationInForce(
    _ node: borrowing VideoDevice
  ) throws(DeviceError) -> MediaTime? {
    do throws(DeviceError) {
      return try node.frameDuration()
    } catch  where error.keepsNoFrameDuration { return nil }
  }

  /// The frame rate of a duration.
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

  /// Sets the frame duration.
  ///
  /// A driver without frame durations keeps the single rate that it lists.
  private mutating func setDuration(_ duration: MediaTime) throws(DeviceError) -> MediaTime {
    do throws(DeviceError) {
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
