// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Takes of cameras that deliver damaged frames, wrong times or too few frames.
struct FaultyCameraTests {
  @Test(arguments: [VideoOutputSettings.codec(.h264), .ffv1])
  func `A damaged JPEG frame is left out and the take continues`(
    codec: VideoOutputSettings
  ) throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    var steps = try camera.frames(0..<60)
    steps[20] = .frameWithBytes(try camera.observation(20), [UInt8](repeating: 0x12, count: 500))
    steps[21] = .frameWithBytes(try camera.observation(21), [0xFF, 0xD8, 0xFF])
    let (report, _) = try camera.take(steps, codec: codec, to: scratch.file("take.mov"))
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 58)
    #expect(report.ledger.corrupt == 2)
    #expect(report.gaps.map(\.afterIndex) == [19])
    #expect(report.gaps.map(\.count) == [2])
    #expect(report.gaps.map(\.time.wholeNanoseconds) == [200_000_000])
    #expect(report.problem == nil)
    #expect(report.stoppedBy == .duration)
    let painted = try paintedNumbers(Asset(path: scratch.file("take.mov")))
    #expect(painted == (0..<20).map { $0 } + (22..<60).map { $0 })
  }

  @Test func `Damaged frames at the start of a take are skipped`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    var steps = try camera.frames(0..<30)
    steps[0] = .frameWithBytes(try camera.observation(0), [1, 2, 3])
    let (report, _) = try camera.take(steps, codec: .h264, to: scratch.file("take.mov"))
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 29 && report.ledger.corrupt == 1)
    #expect(report.gaps.map(\.afterIndex) == [-1])
    let lines = try Asset(path: scratch.file("take.mov")).frameTimingRows()
    #expect(lines.first?.sequence == 1)
    #expect(lines.first?.captureTime?.wholeNanoseconds == 5_010_000_000)
  }

  @Test(arguments: [VideoOutputSettings.codec(.h264), .ffv1])
  func `A frame of an unexpected size counts as corrupt`(codec: VideoOutputSettings) throws {
    let scratch = try Scratch()
    var camera = try ScriptedCamera(100)
    (camera.width, camera.height) = (320, 240)
    var steps = try camera.frames(0..<20)
    for (position, size) in [(5, (128, 96)), (10, (640, 480))] {
      var other = camera
      (other.width, other.height) = size
      steps[position] = .frameWithBytes(
        try camera.observation(Int64(position)), try other.images([position])[0])
    }
    let (report, _) = try camera.take(steps, codec: codec, to: scratch.file("take.mov"))
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 18 && report.ledger.corrupt == 2)
    let painted = try paintedNumbers(Asset(path: scratch.file("take.mov")))
    #expect(painted == (0..<20).filter { $0 != 5 && $0 != 10 })
  }

  @Test(arguments: [AudioCodec.pcm, .aac])
  func `Recorded audio continues across a long gap in the video`(codec: AudioCodec) throws {
    let scratch = try Scratch()
    var camera = try ScriptedCamera(100)
    camera.hasAudio = true
    let path = scratch.file("take.mov")
    let (report, _) = try camera.take(
      try camera.frames(0..<30) + camera.frames(90..<120), to: path
    ) { $0.audioCodec = codec }
    #expect(report.problem == nil)
    #expect(report.ledger.stored == 60 && report.ledger.lostDevice == 60)
    let asset = try Asset(path: path)
    #expect(try asset.duration.nanoseconds(.halfAwayFromZero) == 1_200_000_000)
    #expect(asset.audioTrack?.sampleCount == 57_600)
  }

  @Test func `A camera clock that jumps by an hour causes no gap`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    var steps = try camera.frames(0..<101)
    steps[100] = .frameWithBytes(
      FrameObservation(sequence: 100, microseconds: camera.base + 3_600_000_000),
      try camera.images([100])[0])
    let path = scratch.file("take.mov")
    let (report, _) = try camera.take(steps, to: path)
    #expect(report.problem == nil)
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 101 && report.ledger.dropped == 0)
    #expect(report.isPlayable && report.warnings == [])
    #expect(report.duration.wholeNanoseconds < 421_000_000)
    #expect(report.intervals?.max == .microseconds(4_167))
  }

  @Test func `Frame times increase even if the camera clock runs backward`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    var steps = try camera.frames(0..<30)
    let images = try camera.images(0..<30)
    for (position, time) in [(10, 5_000_000), (11, 5_000_000), (12, -4)] as [(Int, Int64)] {
      steps[position] = .frameWithBytes(
        FrameObservation(sequence: UInt32(position), microseconds: time), images[position])
    }
    let (report, _) = try camera.take(steps, to: scratch.file("take.mov"))
    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == 30)
    #expect(report.intervals.map { $0.max <= .milliseconds(40) } == true)
    let times = try Asset(path: scratch.file("take.mov")).frameTimingRows().map(
      \.time.wholeNanoseconds)
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(times[13] == 130_000_000)
  }

  @Test func `A movie stores the measured frame rate of a long take`() throws {
    let scratch = try Scratch()
    var camera = try ScriptedCamera(240)
    let image = try camera.images([0])[0]
    // The driver negotiates 240 fps and delivers a little over 120 fps.
    let steps = (0..<3_001).map {
      ScriptedDriver.Step.frameWithBytes(
        FrameObservation(sequence: UInt32($0), microseconds: Int64($0) * 8_331), image)
    }
    camera.base = 0
    let (report, _) = try camera.take(steps, to: scratch.file("take.mov"))
    #expect(report.measuredFrameRate == (Rational(1_000_000, over: 8_331)))
    let asset = try Asset(path: scratch.file("take.mov"))
    let tagged = try #require(asset.captureFrameRate?.rate.doubleValue)
    #expect(abs(tagged - 1_000_000 / 8_331) < 1e-3)
    // The same test with a frame rate that is not a short fraction.
    let uneven = (0..<3_000).map {
      ScriptedDriver.Step.frameWithBytes(
        FrameObservation(sequence: UInt32($0), microseconds: Int64($0) * 8_331 + ($0 == 0 ? 0 : 8)),
        image)
    }
    let path = scratch.file("uneven.mov")
    let (second, _) = try camera.take(uneven, to: path)
    let measured = try #require(second.measuredFrameRate?.doubleValue)
    let rate = try #require(try Asset(path: path).captureFrameRate?.rate.doubleValue)
    #expect(abs(rate - measured) < 1e-6)
  }

  @Test func `With a backward camera clock no frame rate is measured`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let images = try camera.images(0..<20)
    let steps = images.enumerated().map {
      ScriptedDriver.Step.frameWithBytes(
        FrameObservation(sequence: UInt32($0.offset), microseconds: 9_000_000 - Int64($0.offset)),
        $0.element)
    }
    let (report, _) = try camera.take(steps, to: scratch.file("take.mov"))
    #expect(report.measuredFrameRate == nil)
    #expect(report.ledger.stored == 20 && report.ledger.isBalanced)
  }

  @Test func `A take whose device is lost is playable and reports the loss`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    let gone = MediaError(.deviceLost, "gone", recovery: "plug it in")
    let steps = try camera.frames(0..<70) + [.failure(gone)]
    let (report, driver) = try camera.take(steps, to: scratch.file("take.mov"))
    #expect(report.stoppedBy == .deviceLost)
    #expect(report.problem?.recoverySuggestion == "plug it in")
    #expect(report.isPlayable && report.ledger.isBalanced && report.ledger.stored == 70)
    #expect(try !holdsBox("moof", scratch.file("take.mov")))
    #expect(driver.stopCount == 1)
  }
}
