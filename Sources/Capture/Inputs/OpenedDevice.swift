// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankSimulatedCameras
import OvercrankV4L2

/// An open device in one mode, with the settings that its driver selected.
struct OpenedDevice: Sendable {
  let device: CaptureDevice
  let format: CaptureFormat
  let requestedFrameRate: FrameRate
  let negotiatedFrameRate: FrameRate
  let delivery: FrameDelivery
  let pool: BufferPool
  let maximumByteCount: Int
  var audio: DeviceInput.Audio?

  /// Opens a device in a mode.
  ///
  /// - Throws: `MediaError` from the device.
  init(
    _ device: CaptureDevice, in mode: CameraMode, sharesSettings: Bool
  ) throws(MediaError) {
    var locked = try device.lockForConfiguration()
    try locked.setActiveFormat(mode.format)
    if mode.frameRate != mode.format.maxFrameRate {
      try locked.setActiveVideoFrameDuration(mode.frameRate.frameDuration)
    }
    if sharesSettings { try locked.sharingSettings() }
    try self.init(locked)
  }

  /// Opens a device in its configured mode.
  init(_ locked: consuming DeviceConfiguration) throws(MediaError) {
    switch locked.device.source {
    case .v4l2(let path): try self.init(locked, path: path)
    case .synthetic(let camera): try self.init(camera, locked)
    case .file(let camera): try self.init(camera, locked)
    // This case cannot occur: microphones have no video modes, so no configuration exists for them.
    case .alsa: throw .unstorable(locked.activeFormat)
    }
  }

  /// Creates an open device from a custom driver and the mode that it simulates.
  init(
    device: CaptureDevice, format: CaptureFormat, driver: any FrameDriver,
    delivery: FrameDelivery, negotiatedFrameRate: FrameRate, maximumByteCount: Int,
    audio: DeviceInput.Audio?
  ) {
    (self.device, self.format) = (device, format)
    requestedFrameRate = format.maxFrameRate
    (self.negotiatedFrameRate, self.delivery) = (negotiatedFrameRate, delivery)
    pool = BufferPool(driver)
    (self.maximumByteCount, self.audio) = (maximumByteCount, audio)
  }

  /// Takes ownership of a configured V4L2 node.
  private init(_ locked: consuming DeviceConfiguration, path: String) throws(MediaError) {
    let format = locked.activeFormat
    guard let known = format.known else { throw .unstorable(format) }
    let duration = locked.activeVideoMinFrameDuration
    let durationBefore = locked.durationBefore
    guard let rate = try? FrameRate(frameDuration: duration) else {
      throw MediaError(
        .modeRefused,
        "\(path) reports an invalid frame duration of \(duration.displayText) s",
        recovery: Recovery("choose another format", .listFormats(device: path)))
    }
    guard let granted = locked.granted, let node = locked.node.take() else {
      throw MediaError(
        .modeRefused, "\(path) was not set to a mode", recovery: "set its active format first")
    }
    node.keepSettings()
    let planes = try Self.planesToJoin(granted, known, of: format, path)
    do throws(CallFailure) {
      pool = BufferPool(
        try V4L2Driver(
          node, joining: planes, frameDuration: duration, durationBefore: durationBefore))
    } catch { throw MediaError(error, at: .capturing) }
    device = locked.device
    self.format = format
    requestedFrameRate = locked.requestedFrameRate
    negotiatedFrameRate = rate
    maximumByteCount = planes.isEmpty ? Int(granted.bytesPerFrame) : planes.reduce(0, +)
    delivery = try Self.delivery(
      known.mediaSubType, width: format.width, height: format.height,
      bytesPerRow: Int(granted.bytesPerLine), matrix: Self.matrix(of: known, granted))
  }

  /// The matrix of a camera's frames; JPEG has that of BT.601 whatever the driver states.
  private static func matrix(
    of format: FourCCFormat, _ granted: StreamFormat
  ) -> MediaFrame.Matrix {
    guard case .pixels = format.mediaSubType else { return .bt601 }
    return switch granted.encoding {
    case .bt601: .bt601
    case .bt709: .bt709
    case .other: .other
    }
  }

  /// The number of bytes to copy from each plane to join the planes in one buffer.
  ///
  /// Empty if the driver delivers all planes in one contiguous buffer.
  private static func planesToJoin(
    _ granted: StreamFormat, _ known: FourCCFormat, of format: CaptureFormat, _ path: String
  ) throws(MediaError) -> [Int] {
    let planes = granted.planes
    if planes.count == 1, known.separatePlaneCount == 1 { return [] }
    guard planes.count == known.separatePlaneCount, case .pixels(let name) = known.mediaSubType,
      let image = LibAVPixelFormat(name),
      let sizes = try? MediaFrame.planeByteCounts(
        width: format.width, height: format.height, pixelFormat: image,
        bytesPerRow: planes.map { Int($0.bytesPerLine) }),
      zip(sizes, planes).allSatisfy({ $0 <= Int($1.byteCount) })
    else {
      throw MediaError(
        .modeRefused,
        "\(path) delivers \(format.fourcc) in \(planes.count) planes that cannot be joined",
        recovery: Recovery(
          "choose a format with contiguous frames", .listFormats(device: path)))
    }
    return sizes
  }

  private init(
    _ camera: SyntheticCamera, _ locked: borrowing DeviceConfiguration
  ) throws(MediaError) {
    device = locked.device
    format = locked.activeFormat
    requestedFrameRate = locked.requestedFrameRate
    let layout: SyntheticDriver.Settings.Layout =
      switch format.fourcc {
      case .mjpg: .mjpeg
      case .yuyv: .yuyv
      case .gray: .gray
      default: throw .unstorable(format)
      }
    var settings = SyntheticDriver.Settings(
      width: format.width, height: format.height, frameRate: format.maxFrameRate, layout: layout)
    settings.dropShare = camera.dropShare
    settings.seed = camera.seed
    settings.counterPath = camera.counterPath
    settings.pace = camera.pace
    settings.scene = camera.scene
    let driver = try SyntheticDriver(settings: settings)
    pool = BufferPool(driver)
    guard let subType = format.mediaSubType else { throw .unstorable(format) }
    delivery = try Self.delivery(
      subType, width: format.width, height: format.height, bytesPerRow: 0)
    negotiatedFrameRate = format.maxFrameRate
    maximumByteCount = driver.maximumByteCount
    audio = (
      SyntheticAudio(of: camera.scene.ball), { driver.firstFrameMicroseconds },
      { driver.runningFirstFrameMicroseconds }, driver.frameClock
    )
  }

  private init(
    _ camera: FileCamera, _ locked: borrowing DeviceConfiguration
  ) throws(MediaError) {
    device = locked.device
    format = locked.activeFormat
    requestedFrameRate = locked.requestedFrameRate
    guard let subType = format.mediaSubType else { throw .unstorable(format) }
    let layout: FileDriver.Layout =
      switch format.fourcc {
      case .mjpg: .mjpeg
      case .h264: .h264
      default: .yuv420p
      }
    let driver = try FileDriver(
      path: camera.path, pace: camera.pace, layout: layout, width: format.width,
      height: format.height)
    pool = BufferPool(driver)
    delivery = try Self.delivery(
      subType, width: format.width, height: format.height, bytesPerRow: 0,
      matrix: driver.matrix)
    negotiatedFrameRate = format.maxFrameRate
    maximumByteCount = driver.maximumByteCount
    audio = driver.audio
  }

  /// The frames of cameras are BT.601 unless a driver or a file states something else.
  private static func delivery(
    _ subType: MediaSubType, width: Int, height: Int, bytesPerRow: Int,
    matrix: MediaFrame.Matrix? = .bt601
  ) throws(MediaError) -> FrameDelivery {
    do throws(CallFailure) {
      switch subType {
      case .codec(let codec):
        return try FrameDelivery(
          layout: .compressed(codec), width: width, height: height, matrix: matrix)
      case .pixels(let name):
        return try FrameDelivery(
          layout: .raw(LibAVPixelFormat(finding: name), bytesPerRow: bytesPerRow), width: width,
          height: height, matrix: matrix)
      }
    } catch {
      throw MediaError(
        .modeRefused, error.description,
        recovery: Recovery("choose another format", .change(.format)))
    }
  }
}

extension MediaError {
  static func unstorable(_ format: CaptureFormat) -> MediaError {
    MediaError(
      .modeRefused, "frames of the mode \(format.id) cannot be read",
      recovery: Recovery("choose another format", .change(.format)))
  }

  static func refused(
    _ format: CaptureFormat, _ granted: StreamFormat, by path: String
  ) -> MediaError {
    MediaError(
      .modeRefused,
      "\(path) selected another mode than \(format.id): "
        + "\(granted.width)x\(granted.height)/\(FourCC(rawValue: granted.fourcc))",
      recovery: Recovery("choose another format", .listFormats(device: path)))
  }
}
