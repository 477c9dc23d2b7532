// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Interpolated frames: their bytes are reproducible and their motion is exact.
struct FrameInterpolatorTests {
  private static let formats = [
    "yuv420p", "yuv422p", "yuv444p", "yuvj420p", "gray", "yuv420p10le", "yuv422p10le",
    "yuv444p12le",
  ]

  /// The bytes of frames that are interpolated at some instants between two frames.
  private func bytes(
    _ frames: [MediaFrame], at instants: [Float] = [0.25, 0.5], isFast: Bool = false,
    threadCount: Int = 1, usesSIMD: Bool = true
  ) throws -> [[UInt8]] {
    let interpolator = try #require(
      FrameInterpolator(
        width: frames[0].width, height: frames[0].height, pixelFormat: frames[0].pixelFormat,
        isFast: isFast, threadCount: threadCount, usesSIMD: usesSIMD))
    var result: [[UInt8]] = []
    for (number, frame) in frames.enumerated() {
      try interpolator.load(frame)
      guard number > 0 else { continue }
      _ = interpolator.findMotion()
      for instant in instants { result.append(try interpolator.frame(at: instant).packedBytes()) }
    }
    return result
  }

  @Test(arguments: formats, [(16, 16), (17, 19), (33, 70)])
  func `Frames interpolated with and without SIMD are equal`(
    name: String, size: (Int, Int)
  ) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let texture = MovingTexture(seed: 3)
    let frames = try (0..<3).map {
      try texture.frame(size.0, size.1, format, movedBy: Double($0) * 3.4, Double($0) * -1.7)
    }
    let plain = try bytes(frames, usesSIMD: false)
    let fast = try bytes(frames)
    #expect(plain == fast)
    #expect(plain.allSatisfy { $0.contains { $0 != plain[0][0] } })
  }

  @Test(arguments: ["yuv420p", "yuv420p10le"], [false, true])
  func `Interpolation of large frames is equal with and without SIMD`(
    name: String, isFast: Bool
  ) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let texture = MovingTexture(seed: 6)
    let frames = try (0..<2).map {
      try texture.frame(322, 171, format, movedBy: Double($0) * 6.3, Double($0) * 2.1)
    }
    let plain = try bytes(frames, at: [0.4], isFast: isFast, usesSIMD: false)
    #expect(try plain == bytes(frames, at: [0.4], isFast: isFast))
  }

  @Test(
    arguments: ["yuv420p", "yuv422p", "yuv420p10le", "gray"], [(33, 35), (64, 47), (131, 96)])
  func `A static background is interpolated equally without SIMD`(
    name: String, size: (Int, Int)
  ) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    // Enough frames follow each other to detect the wall as static.
    let frames = try (0..<6).map { number in
      try FrameSamples.frame(width: size.0, height: size.1, format) { component, x, y in
        let scaleX = component.width < size.0 ? 2 : 1
        let scaleY = component.height < size.1 ? 2 : 1
        let (dx, dy) = (x * scaleX - 8 - 4 * number, y * scaleY - 12 - number)
        let wall = 100 + (x * x + 3 * y) % 23
        return (dx * dx + dy * dy < 40 ? 230 : wall) << (format.depth - 8)
      }
    }
    let plain = try bytes(frames, usesSIMD: false)
    #expect(try bytes(frames) == plain)
    #expect(try bytes(frames, threadCount: 3) == plain)
    // The wall is unchanged in the interpolated frame, and the ball has moved.
    let last = try #require(plain.last)
    let captured = try frames[5].packedBytes()
    #expect(last != captured && zip(last, captured).count { $0 != $1 } < last.count / 3)
  }

  @Test(arguments: [false, true])
  func `Frame interpolation does not depend on the thread count`(isFast: Bool) throws {
    let texture = MovingTexture(seed: 4)
    let frames = try (0..<2).map { try texture.frame(134, 150, movedBy: Double($0) * 5.3, 2) }
    let one = try bytes(frames, at: [0.4], isFast: isFast)
    for count in [2, 3, 8] {
      let several = try bytes(frames, at: [0.4], isFast: isFast, threadCount: count)
      #expect(one == several)
    }
  }

  @Test(arguments: [false, true])
  func `A moving image is interpolated at its exact position`(isFast: Bool) throws {
    let texture = MovingTexture(seed: 5)
    let (width, height) = (160, 96)
    let interpolator = try #require(
      FrameInterpolator(width: width, height: height, pixelFormat: .yuv420p, isFast: isFast))
    let frames = try [0, 7.5].map { try texture.frame(width, height, movedBy: $0, -$0 / 3) }
    for frame in frames { try interpolator.load(frame) }
    let comparison = interpolator.findMotion()
    #expect(!comparison.isCut && comparison.confidence > 0.6)
    let motion = interpolator.motion(x: 80, y: 48)
    #expect(abs(motion.x - 7.5) < 0.25 && abs(motion.y + 2.5) < 0.25)
    for instant in [0.125, 0.5, 0.8] as [Float] {
      let moved = Double(instant) * 7.5
      let truth = try texture.frame(width, height, movedBy: moved, -moved / 3)
      let made = try interpolator.frame(at: instant)
      #expect(made.signalToNoise(truth, border: 10) > (isFast ? 34 : 36))
    }
    // A held frame or a plain blend would differ too much from this frame.
    let truth = try texture.frame(width, height, movedBy: 3.75, -1.25)
    #expect(try interpolator.blend(at: 0.5).signalToNoise(truth, border: 10) < 30)
    #expect(frames[0].signalToNoise(truth, border: 10) < 30)
  }

  @Test(arguments: [6.0, 12, 20])
  func `An interpolated ball is whole and at its exact position`(step: Double) throws {
    let (width, height) = (320, 176)
    let background = MovingTexture(seed: 6, longest: 90, shortest: 30)
    func frame(_ x: Double, _ y: Double) throws -> MediaFrame {
      try MovingTexture.frame(width, height) { px, py in
        let distance = ((px - x) * (px - x) + (py - y) * (py - y)).squareRoot()
        // The edge of the ball is one pixel wide. The wall has a brightness between black and
        // white.
        let share = min(max(12.5 - distance, 0), 1)
        let wall = 110 + (background.luma(px, py) - 125) / 3
        return wall + share * (250 - wall)
      }
    }
    let interpolator = try #require(
      FrameInterpolator(width: width, height: height, pixelFormat: .yuv420p))
    // Earlier frames make the wall count as static, which must not hide the ball.
    for number in -3..<5 {
      try interpolator.load(try frame(60 + Double(number + 3) * step, 80 + Double(number) * 5))
      guard number > -3 else { continue }
      _ = interpolator.findMotion()
      guard number > -1 else { continue }
      for eighth in 1..<8 {
        let part = Double(eighth) / 8
        let due = (x: 60 + (Double(number + 2) + part) * step, y: 75 + (Double(number) + part) * 5)
        try check(interpolator.frame(at: Float(part)).lumaRows, due)
      }
    }
  }

  /// Checks that a ball with a radius of 12 pixels is one area at a position.
  private func check(_ rows: [[UInt8]], _ due: (x: Double, y: Double)) throws {
    var (sumX, sumY, area) = (0.0, 0.0, 0.0)
    for y in rows.indices {
      for x in rows[y].indices where rows[y][x] > 200 {
        sumX += Double(x)
        sumY += Double(y)
        area += 1
      }
    }
    #expect(abs(sumX / area - due.x) < 1 && abs(sumY / area - due.y) < 1, "\(due)")
    let dueArea = Double.pi * 12 * 12
    #expect(area > dueArea * 0.9 && area < dueArea * 1.1, "\(area) pixels, and \(dueArea) are due")
    #expect(blobCount(rows) == 1, "\(due)")
  }

  /// The number of connected areas above a brightness.
  private func blobCount(_ rows: [[UInt8]]) -> Int {
    var isKnown = rows.map { $0.map { $0 <= 200 } }
    var count = 0
    for y in rows.indices {
      for x in rows[y].indices where !isKnown[y][x] {
        count += 1
        var open = [(x, y)]
        while let (x, y) = open.popLast() {
          guard rows.indices.contains(y), rows[y].indices.contains(x), !isKnown[y][x] else {
            continue
          }
          isKnown[y][x] = true
          open += [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
        }
      }
    }
    return count
  }

  @Test func `Frame interpolation keeps a burned-in timer in place`() throws {
    let texture = MovingTexture(seed: 7)
    let (width, height) = (160, 96)
    // Bars in a corner that look like digits.
    func isTimer(_ x: Double, _ y: Double) -> Bool {
      (12..<60).contains(x) && (12..<28).contains(y) && (Int(x) / 4 + Int(y) / 5) % 2 == 0
    }
    func frame(_ moved: Double) throws -> MediaFrame {
      try MovingTexture.frame(width, height) {
        isTimer($0, $1) ? 235 : texture.luma($0 - moved, $1)
      }
    }
    let interpolator = try #require(
      FrameInterpolator(width: width, height: height, pixelFormat: .yuv420p))
    for number in 0..<5 {
      try interpolator.load(try frame(Double(number) * 4))
      if number > 0 { _ = interpolator.findMotion() }
    }
    let made = try interpolator.frame(at: 0.5).lumaRows
    var (sum, count) = (0.0, 0.0)
    for y in 12..<28 {
      for x in 12..<60 where isTimer(Double(x), Double(y)) {
        let difference = Double(made[y][x]) - 235
        sum += difference * difference
        count += 1
      }
    }
    #expect(10 * log10(255 * 255 * count / max(sum, 1e-9)) > 38)
  }

  @Test func `The frame interpolator detects scene cuts`() throws {
    let interpolator = try #require(
      FrameInterpolator(width: 96, height: 64, pixelFormat: .yuv420p))
    let scenes = (0..<6).map { MovingTexture(seed: 20 + $0) }
    try interpolator.load(try scenes[0].frame(96, 64, movedBy: 0))
    for scene in 1..<6 {
      try interpolator.load(try scenes[scene].frame(96, 64, movedBy: 0))
      #expect(interpolator.findMotion().isCut)
      try interpolator.load(try scenes[scene].frame(96, 64, movedBy: 4, 2))
      #expect(!interpolator.findMotion().isCut)
    }
  }

  @Test func `The frame interpolator refuses unsupported formats and sizes`() throws {
    for name in ["rgb24", "gbrp", "yuva420p", "nv12", "pal8"] {
      let format = try #require(LibAVPixelFormat(named: name))
      #expect(FrameInterpolator(width: 64, height: 64, pixelFormat: format) == nil)
    }
    #expect(FrameInterpolator(width: 15, height: 64, pixelFormat: .yuv420p) == nil)
    let interpolator = try #require(
      FrameInterpolator(width: 64, height: 64, pixelFormat: .yuv420p))
    let other = try MediaFrame.video(width: 32, height: 64, pixelFormat: .yuv420p)
    let error = #expect(throws: MediaError.self) { try interpolator.load(other) }
    #expect(error?.code == .unsupportedFormat)
  }
}
