// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankSimulatedCameras
import TestSupport
import Testing

/// Movies of the synthetic camera, whose ball moves and clicks by a formula.
struct SyntheticSceneTests {
  @Test(
    arguments: [
      ("mjpg", "copy", "", 1.226, 1), ("yuyv", "h264", "", 1.226, 1),
      ("grey", "ffv1", "", 1.226, 1), ("mjpg", "copy", "&height=0.4&period=1/3", 0.4, 1 / 3.0),
      ("yuyv", "ffv1", "&period=700ms&height=1.3", 1.3, 0.7),
    ])
  func `A recorded ball is within half a pixel of its computed path`(
    format: String, codec: String, options: String, height: Double, period: Double
  ) async throws {
    let scratch = try Scratch()
    let path = scratch.file("ball.mov")
    let finished = try await slowmo(
      "record", "synthetic:640x480@240?pace=max" + options, "-o", path, "-t", "2.5", "--mode",
      "/" + format, "--codec", codec, "--audio-codec", "pcm", "--progress", "none")
    try #require(finished.status == 0, "\(finished.errors)")
    let asset = try Asset(path: path)
    try expectBall(in: asset, height: height, period: period)
    try expectClicks(in: asset, period: period)
  }

  /// Checks the ball's position.
  ///
  /// The ground is at row 437, 389 rows are 1.5 m, and the ball's radius is 0.1 m.
  private func expectBall(in asset: Asset, height: Double, period: Double) throws {
    var reader = try FrameReader(asset)
    var converter = FrameConverter(to: .gray8, isFullRange: true)
    let count = asset.videoTrack?.frameCount ?? 0
    #expect(count == 600)
    var farthest = 0.0
    for index in 0..<count {
      let frame = try converter.convert(try reader.mediaFrame(at: index))
      let luma = try #require(frame.planeData(0))
      let stride = frame.bytesPerRow(0)
      #expect(FrameNumberPattern.read(width: 640, height: 480) { luma[$1 * stride + $0] } == index)
      let center = try #require(
        BallCenter(width: 640, height: 480) { luma[$1 * stride + $0] })
      let share = (Double(index) / 240).truncatingRemainder(dividingBy: period) / period
      let expected = 437 - (height * 4 * share * (1 - share) + 0.1) * 389 / 1.5
      farthest = max(farthest, abs(center.y - expected), abs(center.x - 384))
    }
    print("ball: at most \(farthest) pixels from the formula in \(count) frames")
    #expect(farthest < 0.5)
  }

  /// Checks that each click starts with the first sample after a contact.
  ///
  /// The tone is subtracted.
  private func expectClicks(in asset: Asset, period: Double) throws {
    var reader = try AudioReader(asset)
    let count = Int(asset.audioTrack?.sampleCount ?? 0)
    #expect(count == 120_000)
    let samples = try reader.samples(from: 0, count: count)[0]
    var clicks: [Int] = []
    for index in samples.indices {
      let tone = 0.1 * sin(2 * Double.pi * 440 * Double(index) / 48_000)
      guard abs(Double(samples[index]) - tone) > 0.3 else { continue }
      if clicks.last.map({ index - $0 > 1_000 }) ?? true { clicks.append(index) }
    }
    let contacts = stride(from: 0, to: 2.5, by: period).map { $0 * 48_000 }
    #expect(clicks.count == contacts.count)
    for (click, contact) in zip(clicks, contacts) {
      #expect(abs(Double(click) - contact) <= 1, "\(clicks)")
    }
  }
}
