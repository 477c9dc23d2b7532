// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

/// Records the synthetic camera.
///
/// With `pace=max` in `device`, it loses no frame on a busy machine.
private func take(
  _ device: String, mode: String, codec: VideoOutputSettings, seconds: MediaTime, to path: String
) throws -> RecordingReport {
  let camera = try CaptureDevice.named(device)
  let session = try CaptureSession(
    device: camera, format: camera.format(matching: ModeRequest(parsing: mode)))
  var settings = RecordingSettings(path: path)
  settings.video = codec
  settings.limit = CaptureLimit(duration: seconds)
  return try MovieFileOutput(session: session, settings: settings).record()
}

struct TakeTests {
  @Test(arguments: [
    ("mjpg", VideoOutputSettings.automatic, VideoCodec.mjpeg), ("mjpg", .passthrough, .mjpeg),
    ("mjpg", .h264, .h264),
    ("yuyv", .automatic, .mjpeg), ("yuyv", .h264, .h264), ("yuyv", .ffv1, .ffv1),
    ("yuyv", .raw, .rawVideo), ("grey", .automatic, .mjpeg), ("grey", .h264, .h264),
    ("grey", .ffv1, .ffv1), ("grey", .raw, .rawVideo),
  ])
  func `Every codec stores exactly the captured frames`(
    fourcc: String, codec: VideoOutputSettings, stored: VideoCodec
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try take(
      "synthetic:320x240@120?pace=max", mode: "320x240@120/\(fourcc)", codec: codec,
      seconds: MediaTime(1, over: 2), to: path)
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 60 && report.ledger.expected == 60)
    #expect(report.isPlayable)
    #expect(report.codec == stored)
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.codec == stored)
    #expect(asset.videoTrack?.frameCount == Int(report.ledger.stored))
    let painted = try paintedNumbers(asset).map { $0.map(Int64.init) }
    let sequences = asset.frameTimingRows().map(\.sequence)
    #expect(painted == sequences)
    #expect(asset.duration == (MediaTime(1, over: 2)))
    // A take with lossless video has lossless audio, too.
    #expect(
      asset.audioTrack?.codec == (codec == .ffv1 || codec == .raw ? .pcm : .aac))
    #expect(asset.audioTrack?.sampleCount == 24_000)
  }

  @Test func `Recorded H.264 has a key frame every 250 ms and no B-frames`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    _ = try take(
      "synthetic:320x240@90?drop=20%&seed=3&pace=max", mode: "/yuyv", codec: .h264,
      seconds: MediaTime(seconds: 2), to: path)
    var demuxer = try Demuxer(opening: path)
    var lastKey: Int64?
    var longest: Int64 = 0
    while let packet = try demuxer.nextPacket() {
      guard demuxer.tracks[packet.trackIndex].kind == .video else { continue }
      #expect(packet.pts == packet.dts)
      let time = try #require(packet.pts)
      if packet.isKeyFrame {
        longest = max(longest, time - (lastKey ?? 0))
        lastKey = time
      }
    }
    // With a fifth of the frames missing, the duration of a frame can exceed the key frame
    // interval.
    #expect(longest > 0 && longest <= 250_000 + 5 * 11_112)
  }

  @Test(.enabled(if: SmallDisk.canBeMade, "a small disk is mounted, which only root may"))
  func `Frames that a full disk cannot store are counted as lost`() throws {
    let scratch = try Scratch()
    try #require(SmallDisk.mount(at: scratch.path))
    defer { SmallDisk.unmount(scratch.path) }
    let path = scratch.file("take.mov")
    let report = try take(
      "synthetic:320x240@240?pace=max", mode: "/mjpg", codec: .passthrough,
      seconds: MediaTime(seconds: 4),
      to: path)
    #expect(report.stoppedBy == .diskFull)
    #expect(report.problem?.code == .diskFull)
    #expect(report.isPlayable)
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.lostWriter > 0)
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.frameCount == Int(report.ledger.stored))
    #expect(report.ledger.stored >= 120)
    #expect(report.gaps.last?.afterIndex == report.ledger.stored - 1)
  }

  @Test func `A disk that stalls for two seconds causes no lost frame`() throws {
    let scratch = try Scratch()
    var camera = try ScriptedCamera(240)
    (camera.width, camera.height) = (640, 480)
    let (stall, resumption) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    // Two seconds of frames arrive while the writer thread is blocked.
    let images = try camera.images(0..<8)
    let frames = try (0..<720).map {
      ScriptedDriver.Step.frameWithBytes(try camera.observation($0), images[Int($0) % images.count])
    }
    let steps =
      frames[..<180] + [.action { stall.wait() }] + frames[180..<660]
      + [.action { resumption.signal() }] + frames[660...]
    var fullest = 0.0
    var hasStalled = false
    let (report, _) = try camera.take(
      Array(steps), to: scratch.file("take.mov"),
      progress: { progress in
        fullest = max(fullest, progress.queueFill)
        guard progress.stored >= 120, !hasStalled else { return }
        hasStalled = true
        stall.signal()
        resumption.wait()
      })
    #expect(report.ledger.stored == 720 && report.ledger.lostQueue == 0)
    #expect(report.ledger.isBalanced && report.isPlayable)
    // All frames that arrived during the stall waited in the queue, which had enough space.
    #expect(fullest > 0.05 && fullest < 1)
  }

  @Test(arguments: [false, true])
  func `A take with only damaged frames leaves no file`(isStopped: Bool) throws {
    let scratch = try Scratch()
    // Frames arrive, but all of them are damaged.
    let camera = try ScriptedCamera(100)
    let steps = try (0..<20).map {
      ScriptedDriver.Step.frameWithBytes(try camera.observation($0), [1, 2, 3])
    }
    let session = try camera.session(ScriptedDriver(steps))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("take.mov")))
    if isStopped { output.stop() }
    let error = #expect(throws: MediaError.self) { try output.record() }
    // An error after a stop by the user does not suggest to check the camera.
    #expect(error?.code == (isStopped ? .cancelled : .nothingStored))
    #expect(try scratch.names() == [])
  }

  @Test func `Refuses to overwrite an existing file by default`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let seconds = MediaTime(1, over: 4)
    _ = try take(
      "synthetic:128x96@60?pace=max", mode: "/grey", codec: .raw, seconds: seconds, to: path)
    let before = try frameBytes(path)
    let error = #expect(throws: MediaError.self) {
      try take(
        "synthetic:128x96@60?pace=max", mode: "/mjpg", codec: .automatic, seconds: seconds, to: path
      )
    }
    #expect(error?.code == .outputExists)
    #expect(try frameBytes(path) == before)
    #expect(try scratch.names() == ["take.mov"])
  }
}

struct PlanTests {
  @Test func `Refuses codecs that do not support the camera format`() throws {
    func refusal(_ codec: VideoOutputSettings, _ layout: FrameDelivery.Layout) throws -> MediaError?
    {
      let delivery = try FrameDelivery(layout: layout, width: 64, height: 64)
      do throws(MediaError) {
        _ = try VideoPipelinePlan(codec, for: delivery)
        return nil
      } catch { return error }
    }
    let planar = try #require(LibAVPixelFormat(named: "nv12"))
    let deep = try #require(LibAVPixelFormat(named: "gray10le"))
    for format in [planar, deep] {
      let error = try refusal(.raw, .raw(format, bytesPerRow: 0))
      #expect(error?.code == .codecRefused)
      #expect(error?.message.contains(format.name) == true)
      #expect(error?.recoverySuggestion.contains("FFV1") == true)
      #expect(try refusal(.ffv1, .raw(format, bytesPerRow: 0)) == nil)
    }
    #expect(try refusal(.passthrough, .raw(planar, bytesPerRow: 0))?.code == .codecRefused)
    #expect(try refusal(.raw, .compressed(.mjpeg))?.code == .codecRefused)
    for name in ["yuyv422", "uyvy422", "rgb24", "gray"] {
      let format = try #require(LibAVPixelFormat(named: name))
      #expect(try refusal(.raw, .raw(format, bytesPerRow: 0)) == nil)
    }
  }

  @Test func `Frame interval percentiles use the nearest-rank method`() throws {
    #expect(FrameIntervals(microseconds: []) == nil)
    #expect(FrameIntervals(microseconds: [5]) == nil)
    let one = try #require(FrameIntervals(microseconds: [0, 10]))
    #expect([one.p50, one.p95, one.p99, one.max] == Array(repeating: .microseconds(10), count: 4))
    // The times make 100 intervals of 1 to 100 µs.
    let times = (0...100).map { Int64($0 * ($0 + 1) / 2) }
    let many = try #require(FrameIntervals(microseconds: times))
    #expect(
      [many.p50, many.p95, many.p99, many.max] == [50, 95, 99, 100].map { .microseconds($0) })
  }

  @Test func `Frames that a crash discarded are counted as lost`() throws {
    var report = RecordingReport(
      requestedFrameRate: FrameRate(100), negotiatedFrameRate: FrameRate(100))
    report.ledger.stored = 10
    report.ledger.lostDevice = 3
    report.ledger.lostWriter = 2
    report.ledger.expected = 15
    report.gaps = [
      FrameGap(afterIndex: 1, count: 1, time: .zero, cause: .lostDevice),
      FrameGap(afterIndex: 7, count: 2, time: .zero, cause: .lostDevice),
      FrameGap(afterIndex: 9, count: 2, time: .zero, cause: .lostWriter),
    ]
    report.keep(first: 4, of: (0..<10).map { $0 * 10_000 })
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 4 && report.ledger.lostWriter == 8)
    #expect(report.duration.wholeNanoseconds == 40_000_000)
    #expect(report.gaps.map(\.afterIndex) == [1, 3, 3])
    #expect(report.gaps.last?.count == 8)
  }
}
