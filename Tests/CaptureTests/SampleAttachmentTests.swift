// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Claims about the attachments of a frame.
struct SampleAttachmentTests {
  @Test(arguments: [false, true])
  func `Frame attachments state a manual exposure and gain`(
    keepsLock: Bool
  ) async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb")
    machine.pace()
    let (input, controls) = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let format = try camera.fastestFormat()
      let controls = try CameraControls(device: camera)
      guard keepsLock else {
        return (try DeviceInput(device: camera, format: format), controls)
      }
      var locked = try camera.lockForConfiguration()
      try locked.setActiveFormat(format)
      return (try locked.makeInput(), controls)
    }
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    var iterator = output.frames.makeAsyncIterator()
    let first = try #require(await iterator.next())
    #expect(first.attachments.isExposureCustom == false)
    #expect(first.attachments.exposureDuration == nil && first.attachments.gain == nil)
    #expect(first.exif["ExposureMode"] == "0" && first.exif["ExposureTime"] == nil)
    // The exposure is set through a separate handle, as another program would set it, or through
    // the handle of the stream.
    let wanted = MediaTime(microseconds: 2_000)
    try controls.setExposureModeCustom(duration: wanted, gain: 10, rounding: .towardZero)
    var sample = try #require(await iterator.next())
    while sample.attachments.gain != 10 || sample.attachments.exposureDuration != wanted {
      sample = try #require(await iterator.next())
    }
    #expect(sample.attachments.isExposureCustom == true)
    #expect(sample.exif["ExposureMode"] == "1" && sample.exif["ExposureTime"] == "1/500")
    // The exposure is read again when the stream starts.
    await session.stopRunning()
    try await session.startRunning()
    #expect(try await iterator.next()?.attachments.exposureDuration == wanted)
    try controls.setExposureMode(.continuousAutoExposure)
    while sample.attachments.isExposureCustom == true {
      sample = try #require(await iterator.next())
    }
    #expect(sample.attachments.exposureDuration == nil && sample.attachments.gain == nil)
    await session.stopRunning()
  }

  @Test func `Exif holds only the settings that a camera reports`() async throws {
    let machine = try FakeVideoSystemCalls("sensor-module")
    machine.pace()
    let (input, controls) = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return (
        try DeviceInput(device: camera, format: try camera.fastestFormat()),
        try CameraControls(device: camera)
      )
    }
    try controls.setISO(200)
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    var iterator = output.frames.makeAsyncIterator()
    var sample = try #require(await iterator.next())
    let keys = ["ISOSpeedRatings", "ExposureBiasValue", "MeteringMode", "WhiteBalance", "Flash"]
    #expect(keys.map { sample.exif[$0] } == ["200", "0/1", "2", "0", "0"])
    #expect(sample.attachments.whiteBalanceTemperature == nil)
    #expect(sample.exif["FNumber"] == nil && sample.exif["FocalLength"] == nil)
    try controls.setISO(800)
    try controls.setExposureTargetBias(-500)
    try controls.setWhiteBalanceModeLocked(temperature: 3_200)
    while sample.attachments.whiteBalanceTemperature != 3_200 {
      sample = try #require(await iterator.next())
    }
    #expect(keys.map { sample.exif[$0] } == ["800", "-1/2", "2", "1", "0"])
    await session.stopRunning()
  }

  @Test func `Attachments set by the program are in Exif and pixel buffers`() async throws {
    let sample = try await SampleBuffer.first(of: "synthetic:128x96@240")
    sample.attachments.iso = 400
    sample.attachments.properties = ["LensModel": "25 mm", "PixelXDimension": "127"]
    #expect(sample.exif["ISOSpeedRatings"] == "400" && sample.exif["LensModel"] == "25 mm")
    #expect(sample.exif["PixelXDimension"] == "127")
    #expect(try sample.pixelBuffer(as: .gray).attachments == sample.attachments.properties)
  }

  @Test func `The f-number is a hundredth of the iris control value`() {
    var exposure = ExposureInForce()
    #expect(exposure.fNumber == nil && exposure.meteringMode == nil && !exposure.isFlashOff)
    exposure.note(.iris, 280)
    exposure.note(.exposureMetering, 9)
    exposure.note(.flashMode, 2)
    #expect(exposure.fNumber == Rational(14, over: 5))
    #expect(exposure.meteringMode == nil && !exposure.isFlashOff)
    exposure.note(.exposureMetering, 3)
    exposure.note(.automaticISO, 1)
    exposure.note(.isoSensitivity, 100_000)
    #expect(exposure.meteringMode == .matrix && exposure.iso == nil)
  }

  @Test func `Exif of a camera without controls has only size and time`() async throws {
    let sample = try await SampleBuffer.first(of: "synthetic:128x96@240")
    #expect(
      sample.exif.keys.sorted() == [
        "DateTimeOriginal", "OffsetTimeOriginal", "PixelXDimension", "PixelYDimension",
        "SubSecTimeOriginal",
      ])
    #expect(sample.exif["PixelXDimension"] == "128" && sample.exif["PixelYDimension"] == "96")
    #expect(sample.attachments.isExposureCustom == nil && sample.attachments.gain == nil)
  }

  @Test(
    arguments: [
      (0, "1970:01:01 00:00:00", "000000"),
      (1_709_210_096_000_789, "2024:02:29 12:34:56", "000789"),
      (-1, "1969:12:31 23:59:59", "999999"),
    ] as [(Int64, String, String)])
  func `Capture times are written in the format of Exif`(
    microseconds: Int64, date: String, fraction: String
  ) {
    let keys = SampleBuffer.exifDate(microseconds: microseconds)
    #expect(keys["DateTimeOriginal"] == date && keys["SubSecTimeOriginal"] == fraction)
  }

  @Test(
    arguments: [
      // The first five are control values: mode, time, automatic gain, gain, sensor gain. The last
      // three are the results.
      (nil, nil, nil, nil, nil, nil, nil, nil),
      (1, 40, nil, 7, nil, true, 4_000, 7), (2, 40, nil, 7, nil, true, 4_000, 7),
      (0, 40, nil, 7, nil, false, nil, nil), (3, 40, 0, 7, nil, false, nil, nil),
      (1, 40, 1, 7, nil, true, 4_000, nil), (1, 40, 0, nil, 9, true, 4_000, 9),
      (nil, 40, nil, 3, 9, true, 4_000, 3), (1, nil, nil, nil, nil, true, nil, nil),
    ] as [(Int64?, Int64?, Int64?, Int64?, Int64?, Bool?, Int64?, Int64?)])
  func `Only a manual exposure or gain is attached to frames`(
    mode: Int64?, time: Int64?, automaticGain: Int64?, gain: Int64?, sensor: Int64?,
    isByHand: Bool?, microseconds: Int64?, reportedGain: Int64?
  ) {
    var exposure = ExposureInForce()
    for (control, value) in zip(
      ExposureInForce.controls, [mode, time, automaticGain, gain, sensor])
    { exposure.note(control, value) }
    #expect(exposure.isByHand == isByHand)
    #expect(exposure.duration == microseconds.map(MediaTime.init(microseconds:)))
    #expect(exposure.gainValue == reportedGain)
  }
}
