// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// The text burned into comparisons of clips.
struct ComparisonTextTests {
  private static let (width, height) = (320, 192)

  /// Writes a clip of 40 frames.
  ///
  /// Each frame has one uniform brightness.
  private func clip(_ path: String, rate: Int64, firstLuma: Int) throws -> Asset {
    try PaintedMovie(width: Self.width, height: Self.height, rate: rate, count: 40)
      .write(to: path) { frame, _, _ in UInt8(firstLuma + 4 * frame) }
  }

  /// The number of the frame that has this brightness.
  private func frame(luma: Int, firstLuma: Int) -> Int {
    let full = Double(luma - 16) * 255 / 219
    return Int(((full - Double(firstLuma)) / 4).rounded())
  }

  private func comparison(_ scratch: Scratch, _ layout: ClipComparison.Layout) throws
    -> ClipComparison
  {
    let first = try clip(scratch.file("a.mov"), rate: 240, firstLuma: 40)
    // The clip was captured at 240 fps and plays at 30 fps.
    let second = try clip(scratch.file("b.mov"), rate: 30, firstLuma: 60)
    var comparison = try ClipComparison(
      [
        ClipComparison.Clip(first, origin: MediaTime(20, over: 240)),
        ClipComparison.Clip(
          second, origin: MediaTime(8, over: 30),
          clock: second.captureClock(captureFrameRate: 240)),
      ], frameRate: 30, speed: Speed(1, over: 8), layout: layout)
    comparison.burnIn = BurnIn(items: [.time, .frame, .speed, .mark], font: .dots)
    return comparison
  }

  /// The text lines for a frame of a clip that was captured at 240 fps.
  private func lines(frame: Int, origin: Int) -> [String] {
    func text(_ frames: Int) -> String {
      let microseconds = (frames * 2_000_000 + 240) / 480
      return "0.\(String(1_000_000 + microseconds).dropFirst())"
    }
    let sign = frame < origin ? "-" : "+"
    return [
      "\(text(frame)) s", "frame \(frame)", "speed 1/8",
      "mark \(sign)\(text(abs(frame - origin))) s",
    ]
  }

  private func frames(_ path: String) throws -> [MediaFrame] {
    let asset = try Asset(path: path)
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map { try reader.mediaFrame(at: $0) }
  }

  @Test func `Text on each side-by-side clip gives the shown frame number`() throws {
    let scratch = try Scratch()
    try comparison(scratch, .side).write(to: scratch.file("side.mp4"))
    let frames = try frames(scratch.file("side.mp4"))
    #expect(frames.count == 40 - 20 + 8)
    for (slot, frame) in frames.enumerated() {
      for (part, (firstLuma, origin, offset)) in [(40, 20, 12), (60, 8, 0)].enumerated() {
        let x = part * Self.width
        let painted = self.frame(
          luma: FrameSamples.code(frame, x: x + 300, y: 30), firstLuma: firstLuma)
        #expect(painted == slot + offset)
        // The line with the time since the marked instant covers the lowest 30 rows.
        let text = BurntText.lines(in: frame, lineCount: 4, x: x, bottom: Self.height - 32)
        #expect(text == lines(frame: painted, origin: origin), "slot \(slot), clip \(part)")
      }
    }
  }

  @Test func `The text blocks of two overlaid clips are stacked`() throws {
    let scratch = try Scratch()
    try comparison(scratch, .overlay).write(to: scratch.file("overlay.mp4"))
    let frames = try frames(scratch.file("overlay.mp4"))
    #expect(frames.count == 28)
    for (slot, frame) in frames.enumerated() {
      let bottom = Self.height - 16
      let lower = BurntText.lines(in: frame, lineCount: 4, bottom: bottom)
      #expect(lower == lines(frame: slot, origin: 8), "slot \(slot)")
      let upper = BurntText.lines(
        in: frame, lineCount: 4, bottom: bottom - BurnInDrawing.height(ofLines: 4, inWidth: 320))
      #expect(upper == lines(frame: slot + 12, origin: 20), "slot \(slot)")
    }
  }
}
