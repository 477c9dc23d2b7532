// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

private typealias Settings = SyntheticDriver.Settings

/// Draws the frames of a synthetic camera in any order.
private final class Drawing {
  private var generator: any TestPatternGenerator
  private let settings: Settings
  private let buffer: UnsafeMutableRawBufferPointer

  init(_ settings: Settings) throws {
    self.settings = settings
    generator = try settings.generator()
    buffer = .allocate(byteCount: generator.maximumByteCount, alignment: 16)
  }

  deinit { buffer.deallocate() }

  func bytes(_ number: Int) throws -> [UInt8] {
    let count = try generator.make(
      number: number, isFlash: settings.isFlash(Int64(number)), into: buffer)
    return [UInt8](buffer.prefix(count))
  }
}

struct BallSceneTests {
  private static let sizes = [
    (128, 96), (160, 120), (320, 240), (642, 362), (1280, 720), (128, 1078), (4096, 96),
  ]
  private static let numbers = [0, 1, 9, 10, 99, 100, 99, 239, 240, 241, 65_535, 7, 1_048_577]

  private func settings(
    _ width: Int, _ height: Int, _ layout: Settings.Layout, rate: Int = 240
  ) -> Settings {
    Settings(width: width, height: height, frameRate: FrameRate(rate), layout: layout)
  }

  @Test(arguments: sizes)
  func `The ball scene draws frame numbers like the test pattern`(
    width: Int, height: Int
  ) throws {
    let settings = settings(width, height, .gray)
    let drawing = try Drawing(settings)
    let pattern = TestPattern(width: width, height: height)
    var row = [UInt8](repeating: 0, count: width)
    for number in Self.numbers + [FrameNumberPattern.limit - 1, FrameNumberPattern.limit + 5, 3] {
      let image = try drawing.bytes(number)
      for y in 0..<pattern.numberHeight {
        row.withUnsafeMutableBufferPointer { row in
          guard let row = row.baseAddress else { return }
          pattern.drawNumberRow(
            y: y, number: number, isFlash: settings.isFlash(Int64(number)), into: row)
        }
        #expect(Array(image[y * width..<(y + 1) * width]) == row, "\(number), row \(y)")
      }
    }
  }

  @Test(arguments: [Settings.Layout.gray, .yuyv, .mjpeg])
  fileprivate func `A synthetic frame does not depend on earlier frames`(
    layout: Settings.Layout
  ) throws {
    for (width, height) in [(128, 96), (642, 362)] {
      let settings = settings(width, height, layout)
      let drawing = try Drawing(settings)
      for number in Self.numbers {
        #expect(try drawing.bytes(number) == Drawing(settings).bytes(number), "\(number)")
      }
    }
  }

  @Test(arguments: sizes)
  func `Synthetic frames show the same image in every pixel format`(
    width: Int, height: Int
  ) throws {
    let drawings = try [Settings.Layout.gray, .yuyv, .mjpeg].map {
      try Drawing(settings(width, height, $0))
    }
    for number in [0, 77, 1_048_577] {
      let gray = try drawings[0].bytes(number)
      let yuyv = try drawings[1].bytes(number)
      #expect(stride(from: 0, to: yuyv.count, by: 2).map { yuyv[$0] } == gray)
      let decoded = try drawings[2].bytes(number).withUnsafeBytes {
        try DecodedImage(decoding: $0, codec: "mjpeg", width: width, height: height).bytes
      }
      for image in [gray, decoded] {
        #expect(
          FrameNumberPattern.read(width: width, height: height) { image[$1 * width + $0] }
            == number)
      }
      // JPEG errors are larger at edges than on surfaces. A block at a wrong position differs far
      // more.
      let far = zip(gray, decoded).count { abs(Int($0) - Int($1)) > 40 }
      #expect(far == 0, "\(number)")
    }
  }

  @Test(arguments: sizes)
  func `The ball is drawn within 1/4 pixel of its computed position`(
    width: Int, height: Int
  ) throws {
    for (ball, rate) in [
      (BouncingBall(), 240),
      (BouncingBall(height: Rational(13, over: 10), period: Rational(1, over: 10)), 2_000),
      (BouncingBall(height: Rational(1, over: 100), period: 60), 1),
    ] as [(BouncingBall?, Int)] {
      let ball = try #require(ball)
      var settings = settings(width, height, .gray, rate: rate)
      settings.scene = .ball(ball)
      let drawing = try Drawing(settings)
      let geometry = SceneGeometry(width: width, height: height)
      for number in stride(from: 0, to: 300, by: 31) {
        let image = try drawing.bytes(number)
        let center = try #require(
          BallCenter(width: width, height: height) { image[$1 * width + $0] })
        let expected = geometry.ballY(
          atHeight: ball.height(at: Rational(Int128(number), over: Int128(rate))).doubleValue)
        #expect(abs(center.x - geometry.ballX) < 0.25, "\(number)")
        #expect(abs(center.y - expected) < 0.25, "\(number): \(center.y), not \(expected)")
      }
    }
  }
}
