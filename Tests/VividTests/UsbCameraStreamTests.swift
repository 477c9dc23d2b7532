// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRecognition
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

extension VividTests {
  /// Formats, speeds and refusals of the emulated USB camera, and the PS3 Eye.
  @Suite(.enabled(if: UsbCamera.isPresent, UsbCamera.whyNot))
  struct UsbStreams {
    private func file(_ name: String) -> String { "\(Vivid.directory)/usb-\(name).mov" }

    private func expectComplete(_ take: UsbCamera.Take) throws {
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      #expect(take.overruns.isEmpty)
      #expect(ledger["stored"] == ledger["expected"], "\(ledger)")
      #expect((ledger["stored"] ?? 0) > 0)
    }

    /// The longer lists of arguments of a full run.
    private static let both = RunSize.isFull ? [false, true] : [false]

    @Test(arguments: both)
    func `A super speed camera loses no frame`(isBulk: Bool) async throws {
      var camera = UsbCamera(isBulk: isBulk, rate: 240, bytes: 100_000)
      camera.options = ["--super-speed"]
      try expectComplete(try await camera.record(seconds: 1, file: file("super")))
    }

    @Test(arguments: both)
    func `Losses of uncompressed frames equal the log of the camera`(
      deliversDamaged: Bool
    ) async throws {
      // By default, the driver drops a frame that is too short.
      let short = deliversDamaged ? "corrupt" : "lost_device"
      let faults = [
        (80, "skip", "lost_device"), (110, "silent:3", short), (140, "truncate", short),
        (170, "stuck", "lost_device"),
      ]
      var camera = UsbCamera(rate: 60)
      camera.deliversDamaged = deliversDamaged
      (camera.size, camera.format) = ("320x240", "yuyv")
      for (place, fault, _) in faults { camera.faults[place] = fault }
      let take = try await camera.record(
        seconds: 3.3, file: file("yuyv"), more: ["--codec", "raw"])
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      for (place, fault, cause) in faults {
        let found = try take.missing(after: place, within: 20, rate: 60)
        #expect(found == [cause: 1], "\(fault)")
      }
      #expect((ledger["expected"] ?? 0) - (ledger["stored"] ?? 0) == 4, "\(ledger)")
    }

    // MARK: H.264

    /// The packets of the stream that the camera sends, or of a movie as a raw stream.
    private func packets(_ path: String) throws -> [[UInt8]] {
      var demuxer = try Demuxer(opening: path)
      let track = try #require(demuxer.tracks.first { $0.kind == .video })
      var filter =
        path.hasSuffix(".mov")
        ? try BitstreamFilter(named: "h264_mp4toannexb", parameters: track.parameters) : nil
      var packets: [[UInt8]] = []
      while let packet = try demuxer.nextPacket() {
        guard packet.trackIndex == track.index else { continue }
        let raw = try filter?.filter(packet) ?? packet
        packets.append(raw.withBytes { [UInt8]($0) })
      }
      return packets
    }

    /// Takes a copy of the camera's H.264 stream with outputs beside it, and checks that the copy has the
    /// bytes that the camera sent.
    private func copyStream(
      frames count: Int, to path: String, beside outputs: [any CaptureOutput]
    ) async throws {
      // The emulated processor cannot even decode all frames of this rate.
      var camera = UsbCamera(rate: 30)
      camera.format = "h264"
      let report = try await camera.whilePlugged(log: "\(path).log") { node in
        let device = try CaptureDevice.named(node)
        let format = try device.format(matching: ModeRequest(parsing: "640x480@30/h264"))
        let input = try await DeviceInput(device: device, format: format)
        try await input.setActiveFormat(format, frameRate: FrameRate(30))
        let session = CaptureSession(input)
        for output in outputs { try await session.addOutput(output) }
        var settings = RecordingSettings(path: path)
        settings.video = .passthrough
        settings.overwrites = true
        settings.recordsAudio = false
        settings.verifiesFrameRate = false
        settings.limit.frameCount = Int64(count)
        let movie = MovieFileOutput(settings: settings)
        try await session.addOutput(movie)
        let report = try await movie.record()
        // A handler gets all frames that wait before its output is removed.
        for output in outputs { session.removeOutput(output) }
        return report
      }
      let ledger = report.ledger
      print("usb: \(ledger)")
      #expect(ledger.stored == count && ledger.dropped == 0 && ledger.corrupt == 0)
      // The camera sends the stream from its first frame on, and the take begins with it.
      let sent = try packets(UsbCamera.h264)
      let taken = try packets(path)
      #expect(taken.count == count && taken == Array(sent.prefix(count)))
    }

    @Test func `A data output beside a copied H264 take costs no frame`() async throws {
      let count = 90
      let images = VideoDataOutput()
      try images.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
      let decoded = Mutex<[Int]>([])
      images.setSampleBufferHandler { sample in
        decoded.withLock { $0.append(Int(sample.attachments.sequence)) }
      }
      try await copyStream(frames: count, to: file("h264"), beside: [images])
      let numbers = decoded.withLock { $0 }
      print("usb: \(images.ledger), \(numbers.count) images up to \(numbers.last ?? -1)")
      #expect(images.ledger.isBalanced && numbers.count > count / 10, "\(images.ledger)")
      #expect(numbers == numbers.sorted() && numbers.last ?? 0 >= count - 1)
    }

    @Test func `A preview and a scan beside a copied take cost no frame`() async throws {
      let images = VideoDataOutput()
      try images.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
      images.setSampleBufferHandler { _ in }
      let codes = MetadataOutput()
      do {
        try codes.setMetadataObjectTypes([.qr])
      } catch { print("usb: without a scan for codes: \(error)") }
      let preview = VideoPreview()
      let shown = Mutex<[UInt32]>([])
      let isOver = Atomic<Bool>(false)
      let viewer = try BlockingThread.started {
        while !isOver.load(ordering: .relaxed) {
          guard preview.waitForNextFrame(milliseconds: 100),
            let frame = try? preview.nextFrame(as: .gray)
          else {
            // At the end of the stream, the wait returns at once.
            MonotonicClock.pause()
            continue
          }
          shown.withLock { $0.append(frame.sequence) }
        }
      }
      defer { isOver.store(true, ordering: .relaxed) }
      try await copyStream(frames: 45, to: file("h264-seen"), beside: [images, preview, codes])
      isOver.store(true, ordering: .relaxed)
      viewer.join()
      let views = shown.withLock { $0 }
      print("usb: preview \(preview.ledger), \(views.count) shown; scan \(codes.ledger)")
      #expect(!views.isEmpty && views == views.sorted())
      #expect(images.ledger.isBalanced && images.ledger.offered > 0, "\(images.ledger)")
      #expect(preview.ledger.isBalanced && codes.ledger.isBalanced && codes.ledger.offered > 0)
    }

    // MARK: Negotiation

    /// The camera or its bus refuses the mode when the stream starts.
    @Test(arguments: [
      (["--error", "commit:32"], "Input/output error"),
      (["--bandwidth", "512"], "bandwidth"),
    ])
    func `A refused stream says why`(options: [String], reason: String) async throws {
      var camera = UsbCamera()
      camera.options = options
      let path = file("refused")
      let finished = try await UsbCamera.withPlugged(
        [camera], logs: ["\(path).log"],
        script: """
          "$1" record "${nodes[0]}" -o "$2" -y --json --progress none --audio none \
            --mode 640x480@240/mjpg -t 1
          """, arguments: [slowmoPath, path])
      print("usb: \(options): \(finished.output)")
      #expect(finished.status == 69)
      #expect(finished.output.contains(reason), "\(finished.output)")
    }

    @Test(arguments: ["probe:32", "probe:110"])
    func `A camera that refuses to negotiate can still be listed`(error: String) async throws {
      var camera = UsbCamera()
      camera.options = ["--error", error]
      let finished = try await UsbCamera.withPlugged(
        [camera], logs: ["/tmp/usb-probe.log"], script: "\"$1\" modes \"${nodes[0]}\" --json",
        arguments: [slowmoPath])
      #expect(finished.status == 0, "\(finished.errors)")
      let modes = try #require(try finished.document()["modes"] as? [[String: Any]])
      #expect(modes.contains { $0["fourcc"] as? String == "MJPG" })
    }

    @Test func `A camera that ignores the rate is reported`() async throws {
      var camera = UsbCamera(rate: 240)
      camera.options = ["--rate", "100"]
      let take = try await camera.record(seconds: 1, file: file("ignored"))
      let measured = try #require(take.document["measured_fps_value"] as? Double)
      let warnings = try #require(take.document["warnings"] as? [String])
      print("usb: measured \(measured), \(warnings)")
      // The step of the timestamps is 4 ms.
      #expect(abs(measured - 100) < 0.4)
      #expect(!warnings.isEmpty)
    }

    @Test func `A camera that comes back is recorded into a second file`() async throws {
      var camera = UsbCamera(rate: 120)
      camera.faults[240] = "replug:500"
      let path = "\(Vivid.directory)/usb-replug-{n}.mov"
      let take = try await camera.record(
        seconds: 4.5, file: path, more: ["--reconnect", "10s", "-y"])
      let ledger = try Vivid.ledger(take.document)
      Vivid.expectSum(ledger)
      let files = try #require(take.document["files"] as? [[String: Any]])
      print("usb: replugged: \(ledger), \(files.count) files")
      #expect(files.count == 2 && files.allSatisfy { $0["playable"] as? Bool == true })
      #expect((ledger["lost_device"] ?? 0) + (ledger["unknown"] ?? 0) > 60)
    }

    // MARK: PS3 Eye

    @Test func `A PS3 Eye is recorded at 187 fps`() async throws {
      var camera = UsbCamera(rate: 187)
      (camera.size, camera.format) = ("320x240", "yuyv")
      camera.options = ["--ps3-eye"]
      camera.faults[200] = "skip"
      camera.faults[240] = "truncate"
      let take = try await camera.record(seconds: 1.4, file: file("eye"), more: ["--codec", "raw"])
      let ledger = try Vivid.ledger(take.document)
      print("usb: PS3 Eye: \(take.document["measured_fps"] ?? ""), \(ledger)")
      Vivid.expectSum(ledger)
      #expect(take.overruns.isEmpty)
      // The driver numbers no frame that the bus lost.
      #expect(ledger["lost_device"] == 2 && ledger["corrupt"] == 0)
      #expect((ledger["expected"] ?? 0) - (ledger["stored"] ?? 0) == 2, "\(ledger)")
    }
  }
}
