// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Triggers by motion, in images that the test paints.
struct MotionTriggerTests {
  /// A gray image with noise and the brightness `level`, and optionally a square.
  private func image(
    level: Int = 100, square: Int? = nil, _ random: inout SeededGenerator
  ) -> PixelBuffer {
    let (width, height) = (160, 120)
    var bytes = (0..<width * height).map { _ in
      UInt8(clamping: level + Int.random(in: -6...6, using: &random))
    }
    if let square {
      for row in 40..<70 {
        for column in square..<square + 30 { bytes[row * width + column] = 220 }
      }
    }
    return PixelBuffer(grayWidth: width, height: height, bytes: bytes)
  }

  @Test func `A moving scene triggers once until it is still again`() throws {
    var random = SeededGenerator(seed: 4)
    var detector = MotionTrigger.Detector(
      MotionTrigger(share: 0.02, quietPeriod: MediaTime(microseconds: 500_000)))
    var triggers: [Int] = []
    for number in 0..<120 {
      // The scene is still, then has a flickering light and a moving square. After that, the square
      // moves again soon and once more later.
      let level = number >= 10 && number % 7 == 0 ? 130 : 100
      let isMoving =
        (30..<40).contains(number) || (46..<50).contains(number)
        || (90..<95).contains(number)
      let seen = image(level: level, square: isMoving ? number : nil, &random)
      if detector.see(seen, at: Int64(number) * 33_000) { triggers.append(number) }
    }
    #expect(triggers == [30, 90])
  }

  @Test func `Ignores motion in less than the chosen share of the image`() {
    var random = SeededGenerator(seed: 5)
    for (share, isSeen) in [(0.04, true), (0.2, false)] {
      var detector = MotionTrigger.Detector(MotionTrigger(share: share))
      let still = image(&random)
      let first = detector.see(still, at: 0)
      let second = detector.see(image(square: 60, &random), at: 33_000)
      #expect(!first && second == isSeen)
      let tiny = PixelBuffer(grayWidth: 4, height: 2, bytes: [0, 9, 0, 9, 0, 9, 0, 9])
      let empty = PixelBuffer(grayWidth: 4, height: 4, bytes: [])
      for image in [tiny, empty, still] {
        let isMotion = detector.see(image, at: 66_000)
        #expect(!isMotion)
      }
    }
  }

  @Test(arguments: ["mjpeg", "h264"])
  func `Motion in the camera image triggers a clip`(codec: String) throws {
    let scratch = try Scratch()
    let source = scratch.file("camera.mov")
    if codec == "h264" {
      try MovieRecipe.constant(120, count: 600).h264(gop: 30, reordered: false).write(to: source)
    }
    let camera = try CaptureDevice.named(
      codec == "h264" ? "file:\(source)?pace=max" : "synthetic:160x120@120?pace=max")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat())
    var settings = RecordingSettings(path: scratch.file("clip.mov"))
    settings.limit = CaptureLimit(duration: MediaTime(seconds: 20))
    let output = try MovieFileOutput(session: session, settings: settings)
    var triggers = TriggerSettings(
      preDuration: MediaTime(microseconds: 100_000), postDuration: MediaTime(microseconds: 200_000))
    // The camera paints a number in each frame, which counts as motion.
    triggers.motion = MotionTrigger(share: 0.001)
    let report = try output.record(on: triggers)
    let clip = try #require(report.clips.first)
    #expect(clip.trigger?.source == .motion && clip.isPlayable)
    #expect(clip.ledger.stored > 24 && clip.ledger.isBalanced && clip.ledger.dropped == 0)
    #expect(report.ledger.lostQueue == 0 && report.ledger.lostKernel == 0)
    #expect(session.outputs.isEmpty)
  }
}

extension PixelBuffer {
  fileprivate init(grayWidth width: Int, height: Int, bytes: [UInt8]) {
    self.init(format: .gray)
    resize(
      width: width, height: height,
      planes: [Plane(offset: 0, bytesPerRow: width, rowCount: height)], byteCount: bytes.count)
    withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
  }
}
