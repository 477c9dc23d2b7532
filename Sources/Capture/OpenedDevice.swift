// SPDX-License-Identifier: Apache-2.0
import FormatDiscovery
import LibAV
import MediaTiming

/// A driver for a device of any kind, set to a mode, and what it granted.
struct OpenedDevice {
  var driver: any FrameDriver
  var delivery: FrameDelivery
  var negotiatedFrameRate: FrameRate
  var maximumByteCount: Int
  var sound: (source: SyntheticSound, epochMicroseconds: @Sendable () -> Int64)?

  init(_ device: CaptureDevice, _ format: CaptureFormat) throws(CaptureError) {
    let settings = SyntheticDriver.Settings(
      width: format.width, height: format.height, frameRate: format.maxFrameRate, layout: .mjpeg)
    let driver = try SyntheticDriver(settings: settings)
    self.driver = driver
    do {
      delivery = try FrameDelivery(
        layout: .compressed("mjpeg"), width: format.width, height: format.height)
    } catch { throw CaptureError(.deviceFailed, "\(error)", hint: "") }
    negotiatedFrameRate = format.maxFrameRate
    maximumByteCount = driver.maximumByteCount
    sound = (SyntheticSound(), { driver.firstFrameMicroseconds })
  }
}
