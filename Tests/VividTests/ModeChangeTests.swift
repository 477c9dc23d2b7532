// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import OvercrankV4L2
import TestSupport
import Testing

extension VividTests {
  /// Other modes of a real driver while its frames are recorded.
  @Suite struct ModeChanges {
    @Test func `Mode changes of vivid during a take keep all frames`() async throws {
      let refused = try CaptureDevice.named("synthetic:128x96@240").formats()[0]
      try await change(
        Vivid.node ?? "", to: ["320x180/yuyv", "320x180/grey", "640x360/grey"], refused: refused)
    }

    @Test(.enabled(if: UsbCamera.isPresent, UsbCamera.whyNot))
    func `Mode changes of a USB camera during a take keep all frames`() async throws {
      var camera = UsbCamera()
      // At 480 fps, the frames need more of the bus.
      camera.options = ["--bandwidth", "1024"]
      try await camera.whilePlugged(log: "/tmp/usb-modes.log") { node in
        let fast = try CaptureDevice.named(node).format(
          matching: ModeRequest(parsing: "640x480@480/mjpg"))
        try await change(
          node, to: ["640x480@120/mjpg", "320x240@240/mjpg", "320x240@30/yuyv", "640x480@60/mjpg"],
          refused: fast)
      }
    }

    /// Sets one mode after another while a movie is recorded.
    private func change(
      _ node: String, to modes: [String], refused: CaptureFormat
    ) async throws {
      var random = SeededGenerator(seed: 64)
      let device = try CaptureDevice.named(node)
      let requests = try modes.map { try ModeRequest(parsing: $0) }
      let formats = try requests.map { try device.format(matching: $0) }
      let input = try await DeviceInput(device: device, format: formats[0])
      let session = CaptureSession(input)
      try await session.startRunning()
      var (ends, frames): ([StopReason: Int], Int64) = ([:], 0)
      for number in 0..<RunSize.cases(20, full: 200) {
        let movie = MovieFileOutput(settings: settings(number))
        try await session.addOutput(movie)
        async let recording = movie.record()
        _ = await movie.progress.first { $0.stored >= 3 }
        let before = input.format
        if Int.random(in: 0..<4, using: &random) == 0 {
          await #expect(throws: MediaError.self) { try await input.setActiveFormat(refused) }
          #expect(input.format.id == before.id)
        } else {
          let next = Int.random(in: formats.indices, using: &random)
          try await input.setActiveFormat(formats[next], frameRate: requests[next].rate)
          #expect(input.format.id == formats[next].id)
        }
        #expect(session.isRunning)
        movie.stop()
        let report = try await recording
        session.removeOutput(movie)
        ends[report.stoppedBy, default: 0] += 1
        frames += report.ledger.stored
        try expectWhole(report, before)
      }
      await session.stopRunning()
      print("modes: \(ends) of \(node), \(frames) frames")
      #expect((ends[.reconfigured] ?? 0) > 3)
    }

    private func settings(_ number: Int) -> RecordingSettings {
      var settings = RecordingSettings(path: "\(Vivid.directory)/modes-\(number % 2).mov")
      settings.overwrites = true
      settings.recordsAudio = false
      settings.verifiesFrameRate = false
      return settings
    }

    /// Checks that each frame of a movie is stored, and the file has all of them.
    private func expectWhole(_ report: RecordingReport, _ format: CaptureFormat) throws {
      let ledger = report.ledger
      #expect(report.problem == nil && report.isPlayable, "\(report)")
      // At another rate, the file continues after the camera's pause, which is lost_device.
      #expect(ledger.isBalanced && ledger.corrupt == 0, "\(ledger)")
      #expect(ledger.lostKernel + ledger.lostQueue + ledger.lostWriter == 0, "\(ledger)")
      let track = try #require(try Asset(path: report.path).videoTrack)
      #expect(Int64(track.frameCount) == ledger.stored && track.width == format.width)
    }
  }
}
