// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankRetiming
import TestSupport
import Testing

/// Exports that synthesize frames between captured frames.
struct SynthesizedFrameTests {
  private static let (width, height) = (128, 80)
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A frame with a wave pattern that was moved to the right by some pixels.
  private static func frame(movedBy moved: Double, scene: Double = 0) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: .yuv420p)
    for plane in 0..<3 {
      let shift = plane == 0 ? 0 : 1
      guard let data = frame.planeData(plane) else { continue }
      for y in 0..<height >> shift {
        for x in 0..<width >> shift {
          let (px, py) = (Double(x << shift) - moved, Double(y << shift))
          var value = 128.0
          for (number, length) in [11, 17, 23, 37].enumerated() {
            let angle = Double(number) * 1.3 + scene
            let wave = (cos(angle) * px + sin(angle) * py) * 2 * .pi / Double(length)
            value += 20 * sin(wave + scene * 7)
          }
          data[y * frame.bytesPerRow(plane) + x] = UInt8(min(max(value.rounded(), 16), 235))
        }
      }
    }
    return frame
  }

  /// A lossless movie at 30 fps.
  private func movie(_ frames: [MediaFrame], name: String = "source.mov") throws -> Asset {
    try .lossless(frames, rate: 30, at: directory.file(name))
  }

  private func settings(
    _ name: String = "out.mov", _ sampling: FrameSampling = .flow
  ) throws -> ExportSettings {
    var settings = ExportSettings(path: directory.file(name), mode: .constant(FrameRate(30)))
    settings.render { ($0.encoding, $0.sampling) = (.ffv1, sampling) }
    settings.overwrites = true
    return settings
  }

  private func frames(of asset: Asset) throws -> [MediaFrame] {
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map { try reader.mediaFrame(at: $0) }
  }

  private func signalToNoise(_ one: MediaFrame, _ other: MediaFrame) -> Double {
    guard let a = one.planeData(0), let b = other.planeData(0) else { return 0 }
    var (sum, count) = (0.0, 0.0)
    for y in 10..<Self.height - 10 {
      for x in 16..<Self.width - 16 {
        let left = Double(a[y * one.bytesPerRow(0) + x])
        let right = Double(b[y * other.bytesPerRow(0) + x])
        sum += (left - right) * (left - right)
        count += 1
      }
    }
    return 10 * log10(255 * 255 * count / max(sum, 1e-9))
  }

  @Test(arguments: [FrameSampling.flow, .flowFast])
  func `A synthesized frame shows the motion at its exact time`(sampling: FrameSampling) throws {
    let source = try (0..<5).map { try Self.frame(movedBy: Double($0) * 4) }
    let asset = try movie(source)
    let slow = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 3))])
    let session = ExportSession(slow, of: asset)
    let settings = try settings("\(sampling).mov", sampling)
    let plan = try session.plan(settings)
    let report = try session.export(settings)
    // The last captured frame is held to the end.
    #expect(plan.framesSynthesized == 8 && report.framesSynthesized == 8)
    #expect(report.framesEncoded == 15 && report.framesDuplicated == 2)
    let confidence = try #require(report.synthesizedConfidence)
    #expect(confidence.lowest > 0.5 && confidence.mean <= 1 && confidence.mean >= confidence.lowest)
    let result = try Asset(path: report.path)
    let made = try frames(of: result)
    let known = try #require(result.synthesizedFrames)
    #expect(known.count == 8 && known.text.utf8.count == 15)
    for (number, frame) in made.enumerated() {
      let isCaptured = number % 3 == 0 || number > 12
      #expect((known.confidenceTenths(ofFrame: number) == nil) == isCaptured)
      let truth = try Self.frame(movedBy: min(Double(number) / 3, 4) * 4)
      if isCaptured {
        #expect(try frame.packedBytes() == truth.packedBytes())
      } else {
        #expect(signalToNoise(frame, truth) > 32, "frame \(number)")
      }
    }
    #expect(asset.synthesizedFrames == nil)
  }

  @Test func `Synthesized frames of ramps and reversal have exact times`() throws {
    let asset = try movie(try (0..<9).map { try Self.frame(movedBy: Double($0) * 4) })
    let source = try asset.mediaSource()
    let ramped = try Composition.ramped(
      source, points: [.init(.zero, speed(1, 1)), .init(asset.duration, speed(1, 6))],
      easing: .linear)
    let report = try ExportSession(ramped, of: asset).export(settings())
    let made = try frames(of: Asset(path: report.path))
    let track = try #require(ramped.track(.video))
    let mapping = try #require(track.segments.first?.mapping)
    for (number, frame) in made.enumerated() {
      let time = try mapping.sourceSeconds(of: Rational(Int128(number), over: 30)).doubleValue
      let truth = try Self.frame(movedBy: min(time * 30, 8) * 4)
      #expect(signalToNoise(frame, truth) > 32, "frame \(number) at \(time) s")
    }
    let forward = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 2))])
    var backward = forward
    try backward.reverse(TimeRange(duration: forward.duration))
    let reversed = try ExportSession(backward, of: asset).export(settings("reversed.mov"))
    for (number, frame) in try frames(of: Asset(path: reversed.path)).enumerated() {
      // Played backward, the last captured frame is held first, and then the motion begins.
      let position = min(9 - Double(number) / 2, 8)
      #expect(signalToNoise(frame, try Self.frame(movedBy: position * 4)) > 32, "back \(number)")
    }
  }

  @Test func `Flow sampling holds the last frame before a scene cut`() throws {
    var source = try (0..<4).map { try Self.frame(movedBy: Double($0) * 4) }
    source.append(source[3])
    source += try (5..<7).map { try Self.frame(movedBy: Double($0) * 4) }
    source += try (0..<2).map { try Self.frame(movedBy: Double($0) * 4, scene: 0.9) }
    let asset = try movie(source)
    let slow = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 2))])
    let report = try ExportSession(slow, of: asset).export(settings())
    let made = try frames(of: Asset(path: report.path))
    #expect(made.count == 18)
    for number in 0..<13 {
      let truth = try Self.frame(movedBy: Double(number) * 2)
      #expect(signalToNoise(made[number], truth) > 30, "frame \(number)")
    }
    #expect(try made[13].packedBytes() == source[6].packedBytes())
    #expect(try made[14].packedBytes() == source[7].packedBytes())
  }

  @Test func `Synthesized frames do not depend on the processor count`() throws {
    let asset = try movie(try (0..<4).map { try Self.frame(movedBy: Double($0) * 5) })
    let slow = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 4))])
    let session = ExportSession(slow, of: asset)
    var known: [[UInt8]]?
    for count in [1, 3, 8] {
      var settings = try settings("\(count).mov")
      settings.processorCount = count
      let made = try frames(of: Asset(path: session.export(settings).path))
        .map { try $0.packedBytes() }
      #expect(known == nil || known == made)
      known = made
    }
    var shard = try settings()
    shard.part = .shard(try #require(ExportShard(exactly: 1, of: 2)))
    let error = #expect(throws: MediaError.self) { try session.export(shard) }
    #expect(error?.code == .shardRefused)
  }
}
