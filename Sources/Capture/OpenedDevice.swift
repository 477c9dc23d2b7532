// SPDX-License-Identifier: Apache-2.0
import FormatDiscovery
import LibAV
import MediaTiming
import V4L2

/// A driver for a device of any kind, set to a mode, and what it granted.
struct OpenedDevice {
  let driver: any FrameDriver
  let delivery: FrameDelivery
  let negotiatedFrameRate: FrameRate
  let maximumByteCount: Int
  var sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?

  init(_ device: CaptureDevice, _ format: CaptureFormat) throws(CaptureError) {
    switch device.source {
    case .v4l2(let path): try self.init(device, path: path, format)
    case .synthetic(let camera): try self.init(camera, format)
    case .file(let camera): try self.init(camera, format)
    }
  }

  /// Sets a V4L2 device to the mode.
  ///
  /// S_FMT, then S_PARM, which S_FMT would reset, then the read-back of both. A rate that comes back other than asked is reported, not refused: the
  /// report tells requested, negotiated and measured apart.
  private init(
    _ device: CaptureDevice, path: String, _ format: CaptureFormat
  ) throws(CaptureError) {
    guard let layout = format.layout, let width = UInt32(exactly: format.width),
      let height = UInt32(exactly: format.height)
    else { throw .unstorable(format) }
    var node: VideoDevice
    let granted: StreamFormat
    let duration: MediaTime
    let durationBefore: MediaTime?
    do throws(DiscoveryError) {
      node = try device.openNode(at: path)
    } catch { throw CaptureError(error) }
    do throws(DeviceError) {
      durationBefore = try Self.durationInForce(node)
      _ = try node.setFormat(fourcc: format.fourcc.rawValue, width: width, height: height)
      duration = try Self.lock(&node, format.minFrameDuration)
      granted = try node.currentFormat()
    } catch { throw CaptureError(error) }
    guard granted.fourcc == format.fourcc.rawValue, granted.width == width,
      granted.height == height
    else {
      throw CaptureError(
        .modeRefused,
        "\(path) was asked for \(format.id) and set itself to "
          + "\(granted.width)x\(granted.height)/\(FourCC(rawValue: granted.fourcc))",
        hint: "choose another mode; slowmo modes \(path) lists them")
    }
    guard let rate = try? FrameRate(frameDuration: duration) else {
      throw CaptureError(
        .modeRefused, "\(path) grants a frame duration of \(duration) s, which is no rate",
        hint: "choose another mode; slowmo modes \(path) lists them")
    }
    let planes = try Self.planesToJoin(granted, layout, of: format, path)
    do throws(DeviceError) {
      driver = try V4L2Driver(
        node, joining: planes, frameDuration: duration, durationBefore: durationBefore)
    } catch { throw CaptureError(error) }
    negotiatedFrameRate = rate
    maximumByteCount = planes.isEmpty ? Int(granted.bytesPerFrame) : planes.reduce(0, +)
    delivery = try Self.delivery(
      layout, width: format.width, height: format.height, bytesPerRow: Int(granted.bytesPerLine))
  }

  /// The bytes of each plane of the picture, where they lie apart and are to be joined; empty
  /// for a frame in one piece.
  private static func planesToJoin(
    _ granted: StreamFormat, _ layout: PixelLayout, of format: CaptureFormat, _ path: String
  ) throws(CaptureError) -> [Int] {
    let planes = granted.planes
    if planes.count == 1, layout.separatePlaneCount == 1 { return [] }
    guard planes.count == layout.separatePlaneCount, case .pixels(let name) = layout.coding,
      let picture = PixelFormat(named: name),
      let sizes = try? MediaFrame.planeByteCounts(
        width: format.width, height: format.height, pixelFormat: picture,
        bytesPerRow: planes.map { Int($0.bytesPerLine) }),
      zip(sizes, planes).allSatisfy({ $0 <= Int($1.byteCount) })
    else {
      throw CaptureError(
        .modeRefused,
        "\(path) delivers \(format.fourcc) in \(planes.count) planes that cannot be joined",
        hint: "choose a format whose frames lie in one piece; slowmo modes \(path) lists them")
    }
    return sizes
  }

  /// The frame duration in force; nil where the driver keeps none.
  private static func durationInForce(
    _ device: borrowing VideoDevice
  ) throws(DeviceError) -> MediaTime? {
    do throws(DeviceError) {
      return try device.frameDuration()
    } catch  where error.keepsNoFrameDuration {
      return nil
    }
  }

  /// Asks for the frame duration; a driver that keeps none has the one rate it lists.
  private static func lock(
    _ device: inout VideoDevice, _ duration: MediaTime
  ) throws(DeviceError) -> MediaTime {
    do throws(DeviceError) {
      return try device.setFrameDuration(duration)
    } catch  where error.keepsNoFrameDuration {
      return duration
    }
  }

  private init(_ camera: SyntheticCamera, _ format: CaptureFormat) throws(CaptureError) {
    let layout: SyntheticDriver.Settings.Layout =
      switch format.fourcc {
      case .mjpg: .mjpeg
      case .yuyv: .yuyv
      case .grey: .grey
      default: throw .unstorable(format)
      }
    var settings = SyntheticDriver.Settings(
      width: format.width, height: format.height, frameRate: format.maxFrameRate, layout: layout)
    settings.dropShare = camera.dropShare
    settings.seed = camera.seed
    let driver = try SyntheticDriver(settings: settings)
    self.driver = driver
    guard let pixels = format.layout else { throw .unstorable(format) }
    delivery = try Self.delivery(
      pixels, width: format.width, height: format.height, bytesPerRow: 0)
    negotiatedFrameRate = format.maxFrameRate
    maximumByteCount = driver.maximumByteCount
    sound = (SyntheticSound(), { driver.firstFrameMicroseconds })
  }

  private init(_ camera: FileCamera, _ format: CaptureFormat) throws(CaptureError) {
    guard let pixels = format.layout else { throw .unstorable(format) }
    let layout: FileDriver.Layout =
      switch format.fourcc {
      case .mjpg: .mjpeg
      case .h264: .h264
      default: .yuv420p
      }
    let driver = FileDriver(
      path: camera.path, pace: camera.pace == .maximum ? .maximum : .realTime, layout: layout,
      width: format.width, height: format.height)
    self.driver = driver
    delivery = try Self.delivery(
      pixels, width: format.width, height: format.height, bytesPerRow: 0)
    negotiatedFrameRate = format.maxFrameRate
    maximumByteCount = driver.maximumByteCount
  }

  private static func delivery(
    _ layout: PixelLayout, width: Int, height: Int, bytesPerRow: Int
  ) throws(CaptureError) -> FrameDelivery {
    do throws(LibAVError) {
      switch layout.coding {
      case .codec(let codec):
        return try FrameDelivery(layout: .compressed(codec), width: width, height: height)
      case .pixels(let name):
        guard let format = PixelFormat(named: name) else {
          throw LibAVError("find", "the pixel format \(name)", code: -22)
        }
        return try FrameDelivery(
          layout: .raw(format, bytesPerRow: bytesPerRow), width: width, height: height)
      }
    } catch {
      throw CaptureError(
        .modeRefused, error.description, hint: "choose another mode with --mode")
    }
  }
}

extension CaptureError {
  fileprivate static func unstorable(_ format: CaptureFormat) -> CaptureError {
    CaptureError(
      .modeRefused, "frames of the mode \(format.id) cannot be read",
      hint: "choose another mode with --mode")
  }
}
