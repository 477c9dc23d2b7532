// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Exports with motion blur.
///
/// A bright bar moves to the right in front of a dark wall.
struct ShutterExportTests {
  private static let (width, height) = (160, 48)
  private static let (dark, bright) = (40.0, 200.0)
  private static let (start, thickness) = (24.0, 24.0)
  private static let transfer = TransferFunction(curve: .bt709, red: 0.299, blue: 0.114)
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private static func light(_ code: Double) -> Double { transfer.linearize((code - 16) / 219) }

  /// The share of a pixel that the bar covers.
  private static func cover(_ x: Int, movedBy moved: Double) -> Double {
    let left = start + moved
    return max(0, min(Double(x) + 1, left + thickness) - max(Double(x), left))
  }

  private static func frame(movedBy moved: Double) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: .yuv420p)
    for plane in 0..<3 {
      guard let data = frame.planeData(plane) else { continue }
      for y in 0..<(plane == 0 ? height : height / 2) {
        for x in 0..<(plane == 0 ? width : width / 2) {
          // The wall has a pattern at rest, so that only the bar seems to move.
          let wall = dark + 8 * sin(Double(x) / 3) * cos(Double(y) / 4)
          let code = wall + cover(x, movedBy: moved) * (bright - wall)
          data[y * frame.bytesPerRow(plane) + x] = plane == 0 ? UInt8(code.rounded()) : 128
        }
      }
    }
    return frame
  }

  /// A lossless movie whose bar moves by `step` pixels per frame.
  private func movie(_ rate: Int32, step: Double, count: Int) throws -> Asset {
    try .lossless(
      (0..<count).map { try Self.frame(movedBy: Double($0) * step) }, rate: rate,
      at: directory.file("\(rate)-\(step).mov"))
  }

  private func export(
    _ asset: Asset, _ sampling: FrameSampling, degrees: Int64?,
    playing composition: Composition? = nil, processorCount: Int? = nil
  ) throws -> (report: ExportReport, frames: [MediaFrame]) {
    var settings = ExportSettings(path: directory.file("out.mov"), mode: .constant(FrameRate(30)))
    settings.render {
      ($0.encoding, $0.sampling) = (.ffv1, sampling)
      $0.shutterAngle = degrees.flatMap { ShutterAngle(exactly: Rational($0)) }
    }
    settings.overwrites = true
    settings.processorCount = processorCount
    let session = ExportSession(try composition ?? Composition(asset), of: asset)
    let plan = try session.plan(settings)
    let report = try session.export(settings)
    #expect(plan.framesSynthesized == report.framesSynthesized)
    #expect(report.shutterDegrees == degrees.map(Double.init))
    let made = try Asset(path: report.path)
    var reader = try FrameReader(made)
    let count = made.videoTrack?.frameCount ?? 0
    return (report, try (0..<count).map { try reader.mediaFrame(at: $0) })
  }

  /// The share of the bar in each column in linear light, from 0 to 1, averaged over all rows.
  private static func profile(_ frame: MediaFrame) -> [Double] {
    (0..<width).map { x in
      let codes = (0..<height).map { y in
        frame.planeData(0).map { Double($0[y * frame.bytesPerRow(0) + x]) } ?? 0
      }
      let mean = codes.reduce(0) { $0 + light($1) } / Double(height)
      return (mean - light(dark)) / (light(bright) - light(dark))
    }
  }

  /// The blur width of the bar's edges, which is how far the bar moved while the shutter was open.
  ///
  /// An edge that moves evenly over L pixels is a slope of L pixels. The area of the slope above
  /// one half, and the area missing below, are each L/8.
  private static func blurWidth(_ frame: MediaFrame) -> Double {
    let values = profile(frame).map { min(max($0, 0), 1) }
    let mixed = values.reduce(0) { $0 + min($1, 1 - $1) }
    // The sum has four areas of L/8: two at each of the two edges.
    return mixed * 2
  }

  @Test(arguments: [90, 180, 360] as [Int64])
  func `A blend averages frames captured while the shutter is open`(
    degrees: Int64
  ) throws {
    // An output frame period has 16 frames, in which the bar moves 1 pixel each.
    let asset = try movie(480, step: 1, count: 64)
    let (report, frames) = try export(asset, .blend, degrees: degrees)
    #expect(frames.count == 4 && report.framesSynthesized == 0)
    let count = Int(16 * degrees / 360)
    #expect(report.framesSkipped == Int64(64 - 4 * count))
    for (slot, frame) in frames.enumerated() {
      // The simple method: the mean light of the frames whose times are in the open shutter.
      let inside = slot * 16..<slot * 16 + count
      for x in 0..<Self.width {
        let data = try #require(frame.planeData(0))
        let code = Double(data[24 * frame.bytesPerRow(0) + x])
        let wall = Self.dark + 8 * sin(Double(x) / 3) * cos(6)
        let light = inside.reduce(0.0) { sum, number in
          let share = Self.cover(x, movedBy: Double(number))
          return sum + Self.light((wall + share * (Self.bright - wall)).rounded())
        }
        let due = 16 + 219 * Self.transfer.encode(light / Double(count))
        #expect(abs(code - due) <= 1, "slot \(slot), column \(x)")
      }
      // The bar moves one pixel per frame, for as many frames as the shutter is open.
      let width = Self.blurWidth(frame)
      #expect(abs(width - Double(count)) < 1, "slot \(slot): \(width) pixels")
    }
  }

  @Test(arguments: [FrameSampling.flow, .flowFast], [90, 180, 360] as [Int64])
  func `Motion blur of a slow capture uses synthesized frames`(
    sampling: FrameSampling, degrees: Int64
  ) throws {
    let asset = try movie(30, step: 12, count: 5)
    let (report, frames) = try export(asset, sampling, degrees: degrees)
    // The bar does not move after the last captured frame.
    #expect(frames.count == 5 && report.framesSynthesized == 4)
    let blur = 12 * Double(degrees) / 360
    for frame in frames.dropFirst().dropLast() {
      let width = Self.blurWidth(frame)
      #expect(abs(width - blur) < 1.5, "\(width) pixels, and \(blur) are due")
    }
    let first = try export(asset, sampling, degrees: nil)
    #expect(first.report.framesSynthesized == 0)
    #expect(Self.blurWidth(first.frames[1]) < 1.5)
    let known = try frames.map { try $0.packedBytes() }
    for count in [1, 3] {
      let again = try export(asset, sampling, degrees: degrees, processorCount: count).frames
      #expect(try again.map { try $0.packedBytes() } == known)
    }
  }

  /// On an eased ramp, the instants of a shutter have fractions too large to be exact.
  @Test(arguments: [false, true]) func `Motion blur on a speed ramp scales with the shutter angle`(
    isReversed: Bool
  ) throws {
    let asset = try movie(30, step: 4, count: 31)
    var composition = Composition(try asset.mediaSource())
    let ramp = SpeedRamp(from: .normal, to: try speed(1, 8), easing: .easeInOut)
    try composition.setSpeedRamp(ramp, in: TimeRange(duration: MediaTime(seconds: 1)))
    if isReversed { try composition.reverse(TimeRange(duration: composition.duration)) }
    let (report, frames) = try export(asset, .flowFast, degrees: 180, playing: composition)
    #expect(frames.count > 50 && report.framesSynthesized > 40)
    // With the shutter open for half of the frame, the bar moves 2 pixels at full speed, and an
    // eighth of that in slow motion.
    let (fast, slow) = isReversed ? (frames[frames.count - 3], frames[2]) : (frames[1], frames[48])
    let widths = (Self.blurWidth(fast), Self.blurWidth(slow))
    #expect(abs(widths.0 - 2) < 0.5 && widths.1 < 1.5, "\(widths)")
  }

  @Test func `Flow sampling synthesizes no frame if enough were captured`() throws {
    let asset = try movie(480, step: 1, count: 32)
    let (report, frames) = try export(asset, .flow, degrees: 180)
    let (_, blended) = try export(asset, .blend, degrees: 180)
    #expect(report.framesSynthesized == 0 && frames.count == 2)
    for (frame, other) in zip(frames, blended) {
      let same = try frame.packedBytes() == other.packedBytes()
      #expect(same)
    }
    // At 1/4 speed, 4 captured frames start in an output frame period and 2 in the open shutter.
    let slow = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 4))])
    let (slowReport, slowFrames) = try export(asset, .flow, degrees: 180, playing: slow)
    #expect(slowReport.framesSynthesized == 8 && slowFrames.count == 8)
    for frame in slowFrames.dropLast() {
      #expect(abs(Self.blurWidth(frame) - 2) < 1.2)
    }
  }

  /// The shutter opens in the middle of a captured frame.
  @Test(arguments: [false, true], [FrameSampling.flow, .flowFast])
  func `Flow and blend sampling give equal frames at 480 fps`(
    isReversed: Bool, sampling: FrameSampling
  ) throws {
    let asset = try movie(480, step: 1, count: 64)
    // The range has 48 frames. Its first and last frames are cut at a third.
    let (start, end) = (MediaTime(22, over: 1440), MediaTime(165, over: 1440))
    let source = try asset.mediaSource()
    var trimmed = try Composition(source).trimmed(
      to: [TimeRange(start: start, end: end)], of: source)
    if isReversed { try trimmed.reverse(TimeRange(duration: trimmed.duration)) }
    let (report, frames) = try export(asset, sampling, degrees: 180, playing: trimmed)
    let (blendReport, blended) = try export(asset, .blend, degrees: 180, playing: trimmed)
    #expect(report.framesSynthesized == 0)
    #expect(report.framesSkipped == blendReport.framesSkipped && report.framesSkipped > 15)
    #expect(try frames.map { try $0.packedBytes() } == blended.map { try $0.packedBytes() })
  }
}
