// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// Takes in several files.
///
/// They run one after the other, since unpaced cameras use the whole machine.
@Suite(.serialized) struct SegmentTests {
  /// The number of files of a second each.
  ///
  /// The full acceptance test has 60, of 1280x720.
  private static let fileCount = Int(environment("OVERCRANK_SEGMENTS") ?? "") ?? 4
  private static let size = environment("OVERCRANK_SEGMENT_SIZE") ?? "320x240"

  private static func environment(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name]
  }

  private func session(_ name: String, _ mode: String = "/mjpg") throws -> CaptureSession {
    let camera = try CaptureDevice.named(name)
    return try CaptureSession(
      device: camera, format: camera.format(matching: ModeRequest(parsing: mode)))
  }

  private func segments(_ duration: MediaTime?, in scratch: Scratch) -> SegmentSettings {
    SegmentSettings(duration: duration) { scratch.file("file\($0).mov") }
  }

  @Test func `A take split into one-second files stores each frame once`() async throws {
    let scratch = try Scratch()
    let count = Self.fileCount
    var settings = RecordingSettings(path: scratch.file("unused.mov"))
    settings.audioCodec = .pcm
    settings.limit = CaptureLimit(duration: MediaTime(seconds: Int64(count)))
    let session = try session("synthetic:\(Self.size)@240?pace=max")
    let output = try MovieFileOutput(session: session, settings: settings)
    var finished: [String] = []
    func record() throws -> SegmentedReport {
      try output.record(in: segments(MediaTime(seconds: 1), in: scratch)) { event in
        if case .didFinish(let file) = event { finished.append(file.path) }
      }
    }
    let report = try record()
    let paths = (1...count).map { scratch.file("file\($0).mov") }
    #expect(report.files.map(\.path) == paths && finished == paths)
    #expect(report.files.allSatisfy { $0.isPlayable && $0.ledger.isBalanced })
    #expect(report.files.allSatisfy { $0.ledger.stored == 240 && $0.duration.seconds == 1 })
    #expect(report.take.ledger.stored == Int64(240 * count) && report.take.ledger.isBalanced)
    #expect(report.take.duration.seconds == Rational(Int64(count)))
    #expect(report.take.problem == nil && report.take.stoppedBy == .duration)
    #expect(abs(try #require(report.take.measuredFrameRate).doubleValue - 240) < 0.001)
    #expect(!FileManager.default.fileExists(atPath: scratch.file("unused.mov")))

    let joins = try FileJoins(paths)
    #expect(joins.isWhole && joins.counts == Array(repeating: 240, count: count))
    let expected = SyntheticAudio().samples(from: 0, count: 48_000 * count)
    #expect(joins.audio.count == expected.count)
    #expect(zip(joins.audio, expected).allSatisfy { abs($0 - $1) <= 1.0 / 32_768 })

    // The check detects a file that has one frame less.
    let cut = scratch.file("cut.mov")
    try await FFmpeg.make(
      cut, ["-i", paths[1], "-map", "0", "-c", "copy", "-frames:v", "239"])
    let broken = try FileJoins([paths[0], cut] + paths[2...])
    #expect(!broken.isWhole && broken.missing == [479] && broken.repeated.isEmpty)
    #expect(try FileJoins([paths[0], paths[0]]).repeated == Array(0..<240))
  }

  @Test(arguments: [
    (VideoOutputSettings.codec(.h264), "/yuyv", 8 as Int?), (.codec(.ffv1), "/yuyv", nil),
    (.automatic, "/mjpg", nil),
  ])
  func `A take in any codec can be divided into independent files`(
    codec: VideoOutputSettings, mode: String, interval: Int?
  ) throws {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: "")
    settings.video = codec
    settings.referenceFrameInterval = interval
    settings.limit = CaptureLimit(frameCount: 250)
    let session = try session("synthetic:160x120@240?pace=max", mode)
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    // The duration is 72 frames and two thirds of a microsecond, so a file begins a little after
    // its boundary.
    let duration = MediaTime(exactly: Rational(3_000_007, over: 10_000_000))
    let report = try output.record(in: segments(duration, in: scratch))
    #expect(report.files.map(\.ledger.stored) == [73, 72, 72, 33])
    #expect(report.files.allSatisfy { $0.isPlayable && $0.ledger.isBalanced })
    #expect(report.take.ledger.stored == 250 && report.take.stoppedBy == .frames)
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.isWhole && joins.counts.reduce(0, +) == 250)
    let audio = report.files.compactMap(\.audio)
    #expect(audio.map(\.sampleCount).reduce(0, +) == 50_000 && audio.count == 4)
  }

  @Test func `Frames lost between two files count in the earlier file`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    var steps = try camera.frames(0..<100)
    // Frames 38 to 41 are lost, so the second file begins with frame 42.
    steps.removeSubrange(38..<42)
    let session = try camera.session(ScriptedDriver(steps))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("a.mov")))
    let report = try output.record(in: segments(MediaTime(1, over: 5), in: scratch))
    #expect(report.files.map(\.ledger.stored) == [20, 18, 18, 20, 20])
    #expect(report.files.map(\.ledger.lostDevice) == [0, 4, 0, 0, 0])
    #expect(report.take.ledger.stored == 96 && report.take.ledger.lostDevice == 4)
    #expect(report.take.ledger.isBalanced && report.take.ledger.expected == 100)
    #expect(report.take.gaps.map(\.afterIndex) == [37] && report.take.gaps.map(\.count) == [4])
    #expect(report.files[1].duration == MediaTime(22, over: 100))
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.missing == [38, 39, 40, 41] && joins.repeated.isEmpty)
  }

  @Test func `H.264 from a camera is divided into files at key frames`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let images = try camera.streamFrames(100, in: scratch)
    let keys = images.indices.filter { position in
      images[position].withUnsafeBytes { AnnexB.holdsKeyFrame($0) }
    }
    let steps = try images.enumerated().map { number, image in
      ScriptedDriver.Step.frameWithBytes(try camera.observation(Int64(number)), image)
    }
    let session = try camera.streamSession(ScriptedDriver(steps))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("a.mov")))
    let report = try output.record(in: segments(MediaTime(3, over: 10), in: scratch))
    // The files begin at the first key frame at or after frames 30, 60 and 90.
    let cuts = [30, 60, 90].compactMap { due in keys.first { $0 >= due } }
    let starts = Array(Set([0] + cuts)).sorted()
    #expect(report.files.count == starts.count && report.take.ledger.stored == 100)
    let joins = try FileJoins(report.files.map(\.path))
    #expect(joins.isWhole)
    #expect(joins.counts == zip(starts, starts.dropFirst() + [100]).map { $1 - $0 })
  }

  @Test func `Successive recordings in a running session lose no frame`()
    async throws
  {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: scratch.file("unused.mov"))
    settings.audioCodec = .pcm
    let session = try session("synthetic:160x120@240?pace=max")
    let output = MovieFileOutput(settings: settings)
    try await session.addOutput(output)
    try await session.startRunning()
    let (events, starts, progress) = (output.events, output.events, output.progress)
    for part in 1...2 {
      let paths = (1...5).map { scratch.file("\(part)-\($0).mov") }
      try output.startRecording(to: paths[0])
      var next = 1
      for await step in progress {
        // Each file gets some frames before the next file is requested.
        if step.stored < Int64(next) * 20 { continue }
        if next == 3 {
          // If a file cannot be created, no frame is lost and the previous file continues.
          try output.startRecording(to: scratch.file("no such directory/a.mov"))
        }
        guard next < 5 else { break }
        try output.startRecording(to: paths[next])
        next += 1
      }
      // Waits for the last file to begin, since a file without frames is not created at the end.
      for await event in starts { if case .didStart(paths[4]) = event { break } }
      output.stop()
      var (started, reports, failed): ([String], [RecordingReport], [String]) = ([], [], [])
      for await event in events {
        switch event {
        case .didStart(let path): started.append(path)
        case .didFinish(let report): reports.append(report)
        case .didFail(let path, _): failed.append(path)
        default: break
        }
        if reports.count == 5 { break }
      }
      #expect(started == paths && reports.map(\.path) == paths)
      #expect(failed == [scratch.file("no such directory/a.mov")])
      #expect(reports.allSatisfy { $0.problem == nil && $0.isPlayable && $0.ledger.isBalanced })
      let joins = try FileJoins(paths)
      #expect(joins.isWhole && joins.counts.allSatisfy { $0 > 0 })
      // No audio sample is lost at a file boundary of one take.
      let frames = joins.counts.reduce(0, +)
      #expect(joins.audio.count == frames * 200)
      while output.isRecording { await Task.yield() }
    }
    #expect(session.isRunning)
    await session.stopRunning()
  }

  @Test func `A take continues in the next file when its camera returns`() throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("hfr-usb mjpegbytes=4000 unplug=60 replug=1")
    machine.pace {
      usleep(50)
      return true
    }
    let input = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(
        device: camera,
        format: try camera.format(matching: ModeRequest(parsing: "640x360@240/mjpg")))
    }
    let session = CaptureSession(input, retryMilliseconds: 1)
    var settings = RecordingSettings(path: scratch.file("a.mov"))
    settings.verifiesFrameRate = false
    let output = try MovieFileOutput(session: session, settings: settings)
    var segments = segments(nil, in: scratch)
    segments.reconnectTimeout = MediaTime(seconds: 60)
    var names: [String] = []
    let report = try output.record(in: segments) { event in
      switch event {
      case .didStart: names.append("start")
      case .didFinish(let file): names.append("finish \(file.stoppedBy.rawValue)")
      case .waitingForDevice:
        names.append("waiting")
        machine.advance(nanoseconds: 2_000_000_000)
      case .progress(let state): if state.stored > 0, names.count > 3 { output.stop(.signal) }
      case .didFail: names.append("failed")
      }
    }
    #expect(
      names == ["start", "finish device_lost", "waiting", "start", "finish signal"], "\(names)")
    #expect(report.files.count == 2 && report.files.allSatisfy(\.isPlayable))
    #expect(report.files.allSatisfy(\.ledger.isBalanced) && report.take.ledger.isBalanced)
    #expect(report.take.problem == nil && report.take.stoppedBy == .signal)
    let stored = report.files.map(\.ledger.stored)
    #expect(report.take.ledger.stored == stored[0] + stored[1])
    // The camera was missing for two seconds of its clock, and then restarted.
    let gap = try #require(report.take.gaps.first { $0.cause == .lostDevice && $0.count > 400 })
    #expect(gap.afterIndex == stored[0] - 1 && gap.count < 600)
    #expect(report.files.allSatisfy { $0.ledger.lostDevice == 0 })
    #expect(!session.isRunning && !session.isInterrupted)
  }

  @Test(arguments: [false, true])
  func `A take whose camera is lost ends at a timeout or stop`(
    stops: Bool
  ) throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("hfr-usb mjpegbytes=4000 unplug=60")
    machine.pace {
      usleep(50)
      return true
    }
    let input = try machine.input()
    let session = CaptureSession(input, retryMilliseconds: 1)
    var settings = RecordingSettings(path: scratch.file("a.mov"))
    settings.verifiesFrameRate = false
    let output = try MovieFileOutput(session: session, settings: settings)
    var segments = segments(nil, in: scratch)
    segments.reconnectTimeout = stops ? MediaTime(seconds: 600) : MediaTime(1, over: 100)
    let report = try output.record(in: segments) { event in
      if stops, case .waitingForDevice = event { output.stop(.signal) }
    }
    #expect(report.files.count == 1 && report.take.isPlayable && report.take.ledger.isBalanced)
    #expect(report.take.stoppedBy == (stops ? .signal : .deviceLost))
    #expect((report.take.problem == nil) == stops)
    #expect(!session.isRunning && !session.isInterrupted)
  }

  @Test func `Refuses burst recording with segments or a reconnect timeout`() throws {
    let scratch = try Scratch()
    let session = try session("synthetic:160x120@240?pace=max")
    var settings = RecordingSettings(path: scratch.file("a.mov"))
    settings.isBurst = true
    let output = try MovieFileOutput(session: session, settings: settings)
    var segments = segments(.zero, in: scratch)
    let error = #expect(throws: MediaError.self) { try output.record(in: segments) }
    #expect(error?.code == .badConfiguration)
    segments.duration = nil
    segments.reconnectTimeout = MediaTime(seconds: 1)
    let second = #expect(throws: MediaError.self) { try output.record(in: segments) }
    #expect(second?.code == .badConfiguration)
  }
}
