// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecognition

/// Codes in the frames of sessions and movies.
struct MetadataOutputTests {
  private func session(_ path: String) throws -> CaptureSession {
    let camera = try CaptureDevice.named("file:\(path)?pace=max")
    return try CaptureSession(device: camera, format: camera.fastestFormat { _ in true })
  }

  @Test(arguments: [false, true])
  func `Codes have the time of the frame in which they were read`(isH264: Bool) async throws {
    let scratch = try Scratch()
    let set = try await CodeFrames("--only", "qr", "lap 5")
    try await set.writeMovie(scratch.file("moving.mov"), count: 48)
    if isH264 {
      try await FFmpeg.make(
        scratch.file("h264.mov"),
        ["-i", scratch.file("moving.mov"), "-c:v", "libx264", "-bf", "0", "-g", "12", "-crf", "10"]
          + ["-pix_fmt", "yuv420p", "-fps_mode", "passthrough"])
    }
    let session = try session(scratch.file(isH264 ? "h264.mov" : "moving.mov"))
    let output = try MetadataOutput(session: session, types: [.qr, .ean13])
    #expect(output.metadataObjectTypes == [.qr, .ean13] && output.session === session)
    let frames = Mutex<[MetadataObjectFrame]>([])
    let movie = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("take.mov")))
    output.setMetadataObjectsHandler { frame in
      frames.withLock { $0.append(frame) }
      for object in frame.objects {
        _ = try? movie.append(
          .text(object.stringValue ?? ""), forKey: "com.example.code", atCaptureTime: object.time)
      }
    }
    let report = try await movie.record()
    while output.isBusy { await Task.yield() }
    #expect(report.problem == nil && report.ledger.stored == 48 && report.ledger.dropped == 0)
    let ledger = output.ledger
    // A file camera waits for the reader, so each frame is examined. The take ends with the file, when
    // a few packets of H.264 still wait for the decoder. The reader may skip these.
    #expect(ledger.isBalanced && ledger.offered <= 48, "\(ledger)")
    #expect(isH264 ? ledger.examined >= 42 : ledger.examined == 48, "\(ledger)")
    let seen = frames.withLock { $0 }
    let indices = seen.map { Int($0.frameIndex) }
    #expect(indices.count == Int(ledger.examined) - 1, "\(indices)")
    #expect(indices.starts(with: 1..<(isH264 ? 42 : 48)), "\(indices)")
    #expect(zip(indices, indices.dropFirst()).allSatisfy(<), "\(indices)")
    for frame in seen {
      let object = try #require(frame.objects.first)
      #expect(frame.objects.count == 1 && object.stringValue == "lap 5" && object.type == .qr)
      #expect(object.time == frame.presentationTimeStamp)
      #expect(object.duration == MediaTime(1, over: 240))
      // The code moves by 2 of 640 pixels per frame.
      let center = object.bounds.x + object.bounds.width / 2
      #expect(abs(center - (320 - 2 * Double(frame.frameIndex)) / 640) < 0.01)
    }
    // Each value is at the frame that showed the code. The last value may come after the end of the
    // take.
    let stored = try Asset(path: scratch.file("take.mov")).timedMetadata()
    #expect(stored.count >= (isH264 ? 36 : 44) && stored.allSatisfy { $0.value == "lap 5" })
    #expect(stored.map(\.frameIndex) == Array(1...Int64(stored.count)))
  }

  @Test func `Codes read from a movie have the times of their frames`() async throws {
    let scratch = try Scratch()
    let set = try await CodeFrames("--only", "code128", "BIB-9")
    try await set.writeMovie(scratch.file("bars.mov"), count: 12)
    var reader = try MetadataObjectReader(
      Asset(path: scratch.file("bars.mov")), types: [.code128])
    #expect(reader.frameCount == 12)
    for index in 0..<12 {
      let objects = try reader.objects(ofFrame: index)
      #expect(objects.map(\.stringValue) == ["BIB-9"])
      #expect(objects.allSatisfy { $0.time == MediaTime(Int64(index), over: 240) })
      #expect(objects.allSatisfy { $0.duration == MediaTime(1, over: 240) })
    }
    // A movie of one frame has no second frame to confirm a code.
    try await set.writeMovie(scratch.file("one.mov"), count: 1)
    var one = try MetadataObjectReader(Asset(path: scratch.file("one.mov")))
    #expect(try one.objects(ofFrame: 0).map(\.stringValue) == ["BIB-9"])
    do throws(MediaError) {
      _ = try one.objects(ofFrame: 1)
      Issue.record("a frame after the last was read")
    } catch { #expect(error.code == .outsideSource) }
  }

  @Test func `A slow code reader gets the newest frame and skips others`() throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let format = try camera.format(matching: ModeRequest(parsing: "/grey"))
    let gray = [UInt8](repeating: 128, count: 64 * 48)
    let observations = (0..<6).map {
      FrameObservation(sequence: UInt32($0 < 4 ? $0 : $0 + 10), microseconds: Int64($0) * 4_167)
    }
    let input = DeviceInput(
      device: camera, format: format,
      driver: ScriptedDriver(observations.map { .frameWithBytes($0, gray) }, bufferCount: 8),
      delivery: try FrameDelivery(
        layout: .raw(.gray8, bytesPerRow: 0), width: 64, height: 48),
      negotiatedFrameRate: FrameRate(240), maximumByteCount: 64 * 48)
    let session = CaptureSession(input)
    let output = MetadataOutput()
    try session.addOutput(output)
    let connection = try #require(session.connections.first)
    let counters = DataOutputCounters()
    // No thread takes frames from this sink yet.
    let sink = MetadataSink(input, connection, counters, wake: .init(value: 0))
    sink.allow(keeping: 2)
    for (index, observation) in observations.enumerated() {
      var frame = DequeuedBuffer(
        observation, bytes: lasting(gray), index: index, driver: sink.pool.driver)
      frame.isWhole = index != 2
      #expect(sink.take(&frame) == nil)
      try frame.finish(in: sink.pool)
    }
    #expect(sink.isBusy && !sink.hasSpace(for: 1))
    #expect(
      MetadataLedger(counters.ledger)
        == MetadataLedger(
          offered: 6, examined: 0, skipped: 4, corrupt: 1, waiting: 1))
    #expect(MetadataLedger(counters.ledger).isBalanced)
    var indices: [Int64] = []
    while sink.withNext({ waiting, _ in indices.append(waiting.note.index) }) {}
    // The driver's sequence number skipped 10 frames.
    #expect(indices == [15] && !sink.isBusy && sink.hasSpace(for: 1))
    // The session may still offer frames after the output was removed.
    sink.retire()
    var removed = DequeuedBuffer(
      observations[5], bytes: lasting(gray), index: 5, driver: sink.pool.driver)
    #expect(sink.take(&removed) == nil && !sink.isBusy && sink.hasSpace(for: 1))
    #expect(MetadataLedger(counters.ledger).skipped == 5 && input.pool.heldCount == 0)
    connection.isEnabled = false
    var last = DequeuedBuffer(
      observations[5], bytes: lasting(gray), index: 5, driver: sink.pool.driver)
    #expect(sink.take(&last) == nil && counters.ledger.offered == 7)
  }

  @Test func `Converts coordinates of codes and faces to a view or pixels`() throws {
    let object = MetadataObject(
      type: .qr, time: .zero, duration: .zero,
      corners: [(0.25, 0.25), (0.5, 0.25), (0.5, 0.5), (0.25, 0.5)].map {
        Point(x: $0.0, y: $0.1)
      }, stringValue: "a", rawBytes: [0x61])
    #expect(object.bounds == Rect(x: 0.25, y: 0.25, width: 0.25, height: 0.25))
    let view = PreviewGeometry(
      imageWidth: 400, imageHeight: 200, viewWidth: 200, viewHeight: 400, rotationAngle: 90)
    let shown = object.transformed(by: view)
    #expect(shown.bounds == Rect(x: 100, y: 100, width: 50, height: 100))
    #expect(shown.corners.first == Point(x: 150, y: 100) && shown.stringValue == "a")
    // A roll angle rotates with the view, and is negated in a mirrored view.
    let face = MetadataObject(
      type: .face, time: .zero, duration: .zero, corners: object.corners, stringValue: nil,
      rawBytes: [], faceID: 1, rollAngle: 20)
    #expect(abs((face.transformed(by: view).rollAngle ?? 0) - 110) < 0.01)
    var mirror = PreviewGeometry(
      imageWidth: 400, imageHeight: 200, viewWidth: 400, viewHeight: 200, isMirrored: true)
    #expect(abs((face.transformed(by: mirror).rollAngle ?? 0) + 20) < 0.01)
    mirror.isMirrored = false
    #expect(abs((face.transformed(by: mirror).rollAngle ?? 0) - 20) < 0.01)
    #expect(!object.transformed(by: view).hasRollAngle)
    #expect(Rect(x: 0, y: 0, width: 1, height: 1).pixels(width: 64, height: 48) == nil)
    #expect(
      Rect(x: 0.5, y: -1, width: 3, height: 1.5).pixels(width: 64, height: 48)
        == PixelRect(x: 32, y: 0, width: 32, height: 24))
  }

  @Test func `Metadata output settings are clamped to their limits`() {
    let output = MetadataOutput()
    output.requiredAgreement = 0
    output.maximumProcessorShare = 7
    #expect(output.requiredAgreement == 1 && output.maximumProcessorShare == 1)
    #expect(output.metadataObjectTypes.isEmpty && output.ledger.isBalanced)
    do throws(MediaError) {
      _ = try MetadataOutput(session: CaptureSession())
      Issue.record("a session without a camera was accepted")
    } catch { #expect(error.code == .notConnected) }
  }
}
