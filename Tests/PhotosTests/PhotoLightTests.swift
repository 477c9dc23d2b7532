// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture
@testable import OvercrankPhotos

/// Photos with exposure brackets or flash.
struct PhotoLightTests {
  private let machine: FakeVideoSystemCalls
  private let output = PhotoOutput()
  private let session: CaptureSession
  private let controls: CameraControls

  init() throws {
    let machine = try FakeVideoSystemCalls("sensor-module")
    machine.pace()
    self.machine = machine
    let (session, controls) = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let input = try DeviceInput(device: camera, format: try camera.fastestFormat())
      return (CaptureSession(input), try CameraControls(device: camera))
    }
    (self.session, self.controls) = (session, controls)
    try session.addOutput(output)
  }

  private func photos(_ settings: PhotoSettings) async throws -> [Photo] {
    try await DeviceSystem.$calls.withValue(machine) { try await output.photos(with: settings) }
  }

  private func value(_ id: ControlID) -> Int64 { machine.controlValue(id.rawValue) }

  @Test func `An exposure bracket restores the exposure set before it`() async throws {
    try controls.setExposureModeCustom(
      duration: MediaTime(3, over: 1_000), gain: nil, rounding: .halfAwayFromZero)
    try await session.startRunning()
    var settings = PhotoSettings()
    settings.bracket = [
      .automatic(bias: -500), .automatic(bias: 0), .automatic(bias: 500),
      .manual(duration: MediaTime(1, over: 100), gain: nil),
    ]
    let photos = try await photos(settings)
    #expect(photos.map(\.index) == [0, 1, 2, 3])
    #expect(
      photos.prefix(3).map { $0.exif["ExposureBiasValue"] } == ["-1/2", "0/1", "1/2"])
    #expect(photos.map { $0.exif["ExposureMode"] } == ["0", "0", "0", "1"])
    #expect(photos.last?.exif["ExposureTime"] == "1/100")
    // A photo capture ends only after the exposure is restored.
    #expect(value(.exposureBias) == 1)
    #expect(try controls.exposureMode == .custom)
    #expect(try controls.exposureDuration == MediaTime(3, over: 1_000))
    await session.stopRunning()
  }

  @Test func `The flash is on only while photos are taken`() async throws {
    try await session.startRunning()
    for (mode, brightness, lit, flash) in [
      (FlashMode.off, 10, 0, "16"), (.on, 200, 2, "9"), (.auto, 200, 0, "24"), (.auto, 10, 2, "25"),
    ] {
      let control = try controls.camera.find(.brightness)
      _ = try controls.camera.set(try #require(control), Int64(brightness))
      // The driver may have filled all of its buffers before the brightness changed, so the frames
      // in these buffers are skipped.
      let count = machine.callCount(CVideo4Linux_VIDIOC_DQBUF)
      while machine.callCount(CVideo4Linux_VIDIOC_DQBUF) < count + 32 { usleep(500) }
      let seen = Mutex<[Int64]>([])
      let scratch = try Scratch()
      var settings = PhotoSettings()
      settings.photoCount = 3
      settings.flashMode = mode
      // This closure is called when a photo is stored, while the capture continues.
      settings.destination = .files { [machine] photo in
        let led = machine.controlValue(ControlID.flashMode.rawValue)
        seen.withLock { $0.append(led) }
        return scratch.file("\(photo.index).jpg")
      }
      let photos = try await photos(settings)
      #expect(photos.count == 3)
      #expect(seen.withLock { $0 }.allSatisfy { $0 == lit }, "\(mode) at \(brightness)")
      // Without a flash request, the Exif value is 0: the camera has a flash that did not fire.
      #expect(photos.allSatisfy { $0.exif["Flash"] == (mode == .off ? "0" : flash) })
      #expect(value(.flashMode) == 0)
    }
    await session.stopRunning()
    let modes = DeviceSystem.$calls.withValue(machine) { output.supportedFlashModes }
    #expect(modes == [.off, .on, .auto])
  }

  @Test func `A torch that was on stays on after a photo with flash`() async throws {
    try await session.startRunning()
    try controls.setTorchModeOn(level: 1)
    var bracket = PhotoSettings()
    bracket.bracket = [.automatic(bias: 500)]
    _ = try await photos(bracket)
    #expect(value(.flashMode) == 2)
    var flash = PhotoSettings()
    flash.flashMode = .on
    _ = try await photos(flash)
    #expect(value(.flashMode) == 2)
    await session.stopRunning()
  }

  @Test func `An exposure bracket that is stopped restores the exposure`() async throws {
    try await session.startRunning()
    var settings = PhotoSettings()
    settings.bracket = Array(repeating: .automatic(bias: 500), count: 1_000)
    // The next exposure of the bracket is set only after the previous photo is stored. So a stop
    // while the second photo is stored prevents the third.
    let scratch = try Scratch()
    settings.destination = .files { [output] photo in
      if photo.index == 1 { output.stopAll() }
      return scratch.file("\(photo.index).jpg")
    }
    let capture = try DeviceSystem.$calls.withValue(machine) {
      try output.capturePhoto(with: settings)
    }
    var count = 0
    var last: PhotoEvent?
    for await event in capture.events {
      if case .didFinishProcessingPhoto = event { count += 1 }
      last = event
    }
    guard case .didFinishCapture(_, let error) = last else {
      Issue.record("the capture did not finish")
      return
    }
    #expect(error == nil && count == 2)
    #expect(value(.exposureBias) == 1)
    await session.stopRunning()
  }

  @Test func `Refuses a bracket and a flash on a camera without controls`() async throws {
    let requests = Requests()
    var (bracket, flash, automatic) = (PhotoSettings(), PhotoSettings(), PhotoSettings())
    bracket.bracket = [.automatic(bias: 0)]
    flash.flashMode = .on
    automatic.flashMode = .auto
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<2)
        + [requests.step(bracket), requests.step(flash), requests.step(automatic)]
        + PhotoCamera.frames(2..<5))
    requests.join(camera.output)
    try await camera.playToEnd()
    #expect(requests.errors.map(\.code) == [.controlNotSupported, .controlNotSupported])
    #expect(await story(of: try #require(requests.captures.first)).last == "did finish")
    #expect(camera.output.supportedFlashModes == [.off])
  }
}
