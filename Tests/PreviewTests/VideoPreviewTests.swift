// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPreview
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// A session whose camera delivers a codec in which frames depend on others.
func codedSession(of codec: VideoCodec) throws -> CaptureSession {
  let device = try CaptureDevice.named("synthetic:128x96@240")
  return CaptureSession(
    DeviceInput(
      device: device, format: try device.fastestFormat(), driver: ScriptedDriver([]),
      delivery: try FrameDelivery(layout: .compressed(codec), width: 128, height: 96),
      negotiatedFrameRate: FrameRate(240), maximumByteCount: 1 << 16))
}

/// Previews of a running camera that also records a movie.
struct VideoPreviewTests {
  private func session(_ name: String, _ mode: String) throws -> CaptureSession {
    let camera = try CaptureDevice.named(name)
    return try CaptureSession(
      device: camera, format: camera.format(matching: ModeRequest(parsing: mode)))
  }

  private func number(in image: PixelBuffer) -> Int? {
    FrameNumberPattern.read(width: image.width, height: image.height) {
      image.bytes[$1 * image.width + $0]
    }
  }

  @Test(arguments: ["/mjpg", "/yuyv", "/grey"])
  func `A slow preview does not cost the movie any frame`(mode: String) throws {
    let scratch = try Scratch()
    let session = try session("synthetic:320x240@240?pace=max", mode)
    let preview = try VideoPreview(session: session)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    if mode != "/mjpg" { settings.video = .codec(.mjpeg) }
    let input = try #require(session.inputs.first as? DeviceInput)
    var numbers: [Int] = []
    var times: [MediaTime] = []
    let output = try MovieFileOutput(session: session, settings: settings)
    let report = try output.record { _ in
      // The camera waits for the movie, so it delivers frames while this thread draws.
      guard let frame = try? preview.nextFrame(as: .gray) else { return }
      #expect(frame.image.width == 320 && frame.image.height == 240)
      if let number = number(in: frame.image) { numbers.append(number) }
      times.append(frame.presentationTimeStamp)
      // The preview holds one waiting frame, and one more may arrive at this moment. The movie
      // holds no buffer, since it copies compressed frames.
      #expect(mode != "/mjpg" || input.pool.heldCount <= 2)
      if numbers.count >= 20 { output.stop() }
    }
    #expect(report.problem == nil && report.ledger.isBalanced && report.ledger.dropped == 0)
    #expect(numbers.count == times.count && numbers.count >= 20)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }, "\(numbers)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    // At the end of the stream, the last frame is released and all buffers are returned.
    let ledger = preview.ledger
    #expect(ledger.isBalanced && ledger.waiting == 0 && ledger.delivered == Int64(numbers.count))
    #expect(try input.pool.heldCount == 0 && preview.nextFrame(as: .gray) == nil)
  }

  @Test func `A tapped preview point is mapped to a pixel of the frame`() throws {
    for row in CornerImage.table {
      let gray = CornerImage.gray(width: 64, height: 48)
      let camera = try CaptureDevice.named("synthetic:128x96@240")
      let layout = FrameDelivery.Layout.raw(.gray8, bytesPerRow: 0)
      let observation = FrameObservation(sequence: 0, microseconds: 5_000_000)
      let session = CaptureSession(
        DeviceInput(
          device: camera, format: try camera.format(matching: ModeRequest(parsing: "/grey")),
          driver: ScriptedDriver([.frameWithBytes(observation, gray)], bufferCount: 8),
          delivery: try FrameDelivery(layout: layout, width: 64, height: 48),
          negotiatedFrameRate: FrameRate(240), maximumByteCount: 64 * 48))
      let preview = try VideoPreview(session: session)
      let connection = try #require(preview.connection)
      connection.automaticallyAdjustsVideoMirroring = false
      try connection.setVideoRotationAngle(row.angle)
      try connection.setVideoMirrored(row.isMirrored)
      let input = try #require(connection.camera)
      let sink = try #require(try preview.sink(for: connection, from: input) as? PreviewSink)
      sink.allow(keeping: 2)
      var frame = DequeuedBuffer(
        observation, bytes: lasting(gray), index: 0, driver: sink.stream.pool.driver)
      #expect(!preview.waitForNextFrame(milliseconds: 0))
      let isWoken = Mutex(false)
      let view = try BlockingThread {
        let found = preview.waitForNextFrame(milliseconds: .max)
        isWoken.withLock { $0 = found }
      }
      #expect(sink.take(&frame) == nil && preview.hasNextFrame)
      view.join()
      #expect(isWoken.withLock { $0 } && preview.waitForNextFrame(milliseconds: 0))
      defer {
        // No frame comes after the end of the stream, so the wait for a frame ends.
        sink.end(CaptureEnd())
        #expect(!preview.waitForNextFrame(milliseconds: .max))
      }
      let image = try #require(try preview.nextFrame(as: .gray, maximumWidth: 32)?.image)
      let isUpright = row.angle % 180 == 0
      #expect(image.width == 32 && image.height == (isUpright ? 24 : 43))
      let geometry = try #require(
        preview.geometry(viewWidth: Double(image.width), viewHeight: Double(image.height)))
      for (x, y, corner) in [(0.25, 0.25, "A"), (0.75, 0.25, "B"), (0.25, 0.75, "C")] {
        let point = geometry.viewPoint(fromDevicePoint: Point(x: x, y: y))
        let shown = image.bytes[Int(point.y) * image.width + Int(point.x)]
        #expect(abs(Int(shown) - Int(CornerImage.gray(of: Character(corner)))) < 3, "\(row) \(x)")
      }
    }
  }

  @Test func `Only the preview of a front camera is mirrored`() throws {
    for (name, isFront) in [("stepwise-sensor", true), ("sensor-module", false)] {
      let session = CaptureSession(try FakeVideoSystemCalls(name).input())
      let preview = VideoPreview()
      let others: [any CaptureOutput] = [
        VideoDataOutput(), MovieFileOutput(settings: RecordingSettings(path: "unused.mov")),
      ]
      for output in [preview] + others { try session.addOutput(output) }
      for connection in session.connections {
        #expect(connection.automaticallyAdjustsVideoMirroring)
        #expect(connection.isVideoMirrored == (isFront && connection.output === preview))
      }
      let connection = try #require(preview.connection)
      connection.automaticallyAdjustsVideoMirroring = false
      try connection.setVideoMirrored(!isFront)
      #expect(connection.isVideoMirrored == !isFront)
      connection.automaticallyAdjustsVideoMirroring = true
      #expect(connection.isVideoMirrored == isFront)
    }
  }

  @Test func `Refuses a preview of HEVC or of an empty session`() throws {
    let session = try codedSession(of: .hevc)
    let error = #expect(throws: MediaError.self) { try VideoPreview(session: session) }
    #expect(error?.code == .notConvertible && session.outputs.isEmpty)
    let empty = CaptureSession()
    let second = #expect(throws: MediaError.self) { try VideoPreview(session: empty) }
    #expect(second?.code == .notConnected && empty.outputs.isEmpty)
    let alone = VideoPreview()
    #expect(
      try alone.nextFrame(as: .bgra) == nil && alone.geometry(viewWidth: 1, viewHeight: 1) == nil)
  }
}
