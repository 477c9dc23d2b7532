// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2

extension CaptureDevice {
  /// Takes the device's settings, so that no other program changes them meanwhile.
  ///
  /// Other programs are refused with `EBUSY` until the value goes, or the session that was made of
  /// it; that is the driver's doing (`VIDIOC_S_PRIORITY` with `V4L2_PRIORITY_RECORD`). Drivers that
  /// keep no priorities refuse nobody. The corresponding call is
  /// `AVCaptureDevice.lockForConfiguration()`.
  ///
  /// - Throws: `MediaError`: `.deviceBusy` where another program has taken them, `.deviceLost`,
  ///   `.noPermission`.
  public func lockForConfiguration() throws(MediaError) -> DeviceConfiguration {
    try DeviceConfiguration(self)
  }
}

/// A device whose settings this program has taken, to choose its mode.
///
/// ```swift
/// var locked = try camera.lockForConfiguration()
/// try locked.setActiveFormat(try camera.fastestFormat())
/// try locked.setActiveVideoFrameDuration(MediaTime(1, over: 120))
/// let input = try locked.makeInput()
/// ```
public struct DeviceConfiguration: ~Copyable {
  /// The device.
  public let device: CaptureDevice
  /// The mode that was set, or that the device was found in.
  public private(set) var activeFormat: CaptureFormat
  /// The shortest time from one frame to the next, in seconds, as the driver granted it.
  ///
  /// V4L2 drivers keep one frame duration, so the shortest and the longest are always equal: the
  /// rate is locked.
  public private(set) var activeVideoMinFrameDuration: MediaTime
  /// The longest time from one frame to the next, in seconds; equal to the shortest.
  public var activeVideoMaxFrameDuration: MediaTime { activeVideoMinFrameDuration }

  /// The rate that was asked for last.
  private(set) var requestedFrameRate: FrameRate
  /// The open node; nil for a camera that is a program.
  var node: VideoDevice?
  /// What the driver granted; nil where nothing was set yet.
  private(set) var granted: StreamFormat?
  /// The frame duration in force before; nil where the driver keeps none.
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

  /// Sets the device to a mode, at its highest rate.
  ///
  /// `VIDIOC_S_FMT`, then `VIDIOC_S_PARM`, which the first would reset, then the read-back of both.
  ///
  /// - Throws: `MediaError` with `.modeRefused` where the device sets itself to another size or
  ///   pixel format; a rate that it rounds is no error.
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

  /// Sets the time from one frame to the next, the shortest and the longest at once.
  ///
  /// - Parameter duration: In seconds, above zero.
  /// - Returns: The duration that the driver granted, which may be another: drivers round.
  /// - Throws: `MediaError` with `.modeRefused` for a duration that the active format does not
  ///   have, or that is no frame duration at all.
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
        "\(name) has no frame duration of \(duration.displayText) s in \(activeFormat.id)",
        recovery: Recovery("choose another format", .listFormats(device: name)))
    }
    do throws(DeviceError) { activeVideoMinFrameDuration = try setDuration(duration) } catch {
      throw MediaError(capturing: error)
    }
    requestedFrameRate = rate
    return activeVideoMinFrameDuration
  }

  /// Makes an input of the device as it is set; its settings stay taken as long as it lives.
  ///
  /// - Throws: `MediaError` where the device is busy or its frames cannot be read.
  public consuming func makeInput() throws(MediaError) -> DeviceInput {
    try DeviceInput(self, sharesSettings: false)
  }

  /// Gives the settings back to every program; the mode stays set.
  public consuming func unlockForConfiguration() {}

  /// Lets other programs change the device again, while this one keeps it open.
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

  /// The frame duration in force; nil where the driver keeps none.
  private static func durationInForce(
    _ node: borrowing VideoDevice
  ) throws(DeviceError) -> MediaTime? {
    do throws(DeviceError) {
      return try node.frameDuration()
    } catch  where error.keepsNoFrameDuration { return nil }
  }

  /// The rate of a frame duration in force; one frame a second where the driver keeps none.
  private static func rate(of duration: MediaTime?) throws(MediaError) -> FrameRate {
    do throws(MediaError) {
      return try FrameRate(frameDuration: duration ?? MediaTime(seconds: 1))
    } catch {
      throw MediaError(
        .modeRefused, "the device keeps a frame duration that is no rate: \(error)",
        recovery: Recovery("choose a format", .change(.format)))
    }
  }

  /// Asks for a frame duration; a driver that keeps none has the one rate it lists.
  private mutating func setDuration(_ duration: MediaTime) throws(DeviceError) -> MediaTime {
    do throws(DeviceError) {
      return try node?.setFrameDuration(duration) ?? duration
    } catch  where error.keepsNoFrameDuration { return duration }
  }
}

extension CaptureFormat {
  /// The mode that a driver was found in.
  fileprivate init(_ found: StreamFormat, _ rate: FrameRate) {
    let fourcc = FourCC(rawValue: found.fourcc)
    self.init(
      fourcc: fourcc, width: Int(found.width), height: Int(found.height),
      isCompressed: found.bytesPerLine == 0, frameRateRange: FrameRateRange(rate), driverOrder: 0)
  }
}
