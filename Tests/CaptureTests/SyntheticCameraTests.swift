// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// The luma of a generated image.
private func luma(
  _ layout: SyntheticDriver.Settings.Layout, _ bytes: UnsafeRawBufferPointer, _ width: Int,
  _ height: Int
) throws -> [UInt8] {
  switch layout {
  case .gray: return [UInt8](bytes)
  case .yuyv: return stride(from: 0, to: bytes.count, by: 2).map { bytes[$0] }
  case .mjpeg:
    return try DecodedImage(decoding: bytes, codec: "mjpeg", width: width, height: height).bytes
  }
}

private func generator(
  _ layout: SyntheticDriver.Settings.Layout, _ pattern: TestPattern
) throws -> any TestPatternGenerator {
  switch layout {
  case .gray: GrayTestPatternGenerator(pattern: pattern)
  case .yuyv: YUYVTestPatternGenerator(pattern: pattern)
  case .mjpeg: try JPEGTestPatternGenerator(pattern: pattern)
  }
}

struct SyntheticCameraTests {
  @Test(arguments: [(128, 96), (160, 120), (320, 240), (642, 362), (1280, 720), (1918, 1078)])
  func `The painted frame number is read back in every pixel format`(
    width: Int, height: Int
  ) throws {
    let pattern = TestPattern(width: width, height: height)
    for layout in [SyntheticDriver.Settings.Layout.gray, .yuyv, .mjpeg] {
      var generator = try generator(layout, pattern)
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: generator.maximumByteCount, alignment: 16)
      defer { buffer.deallocate() }
      for number in [0, 1, 239, 65_535, 1_048_577, FrameNumberPattern.limit - 1] {
        let count = try generator.make(number: number, isFlash: number % 2 == 1, into: buffer)
        let pixels = try luma(
          layout, UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), width, height)
        #expect(
          FrameNumberPattern.read(width: width, height: height) { pixels[$1 * width + $0] }
            == number)
        // JPEG may differ by some levels. A pattern at a wrong position differs far more.
        var far = 0
        for y in pattern.numberHeight..<height {
          for x in stride(from: 0, to: width, by: 7) {
            let expected = TestPattern.pattern(x: x, y: y + TestPattern.offset(number: number))
            if abs(Int(pixels[y * width + x]) - Int(expected)) > 40 { far += 1 }
          }
        }
        #expect(far == 0, "\(layout) \(number)")
      }
    }
  }

  @Test func `Reading a painted frame number returns nil if there is none`() {
    var random = SeededGenerator(seed: 7)
    let noise = (0..<(320 * 240)).map { _ in UInt8.random(in: 0...255, using: &random) }
    for pixels in [
      [UInt8](repeating: 0, count: 320 * 240), [UInt8](repeating: 255, count: 320 * 240),
      [UInt8](repeating: 128, count: 320 * 240), noise,
    ] {
      #expect(FrameNumberPattern.read(width: 320, height: 240) { pixels[$1 * 320 + $0] } == nil)
    }
    #expect(FrameNumberPattern.read(width: 320, height: 8) { _, _ in 255 } == nil)
  }

  @Test func `The same seed drops the same synthetic frames`()
    throws
  {
    var settings = SyntheticDriver.Settings(
      width: 320, height: 240, frameRate: FrameRate(240), layout: .gray)
    settings.dropShare = Rational(1, over: 20)
    settings.seed = 7
    let driver = try SyntheticDriver(settings: settings)
    let lost = (0..<Int64(480)).filter(driver.isDropped)
    #expect(
      lost == [
        1, 44, 71, 84, 172, 198, 207, 212, 221, 223, 263, 268, 276, 324, 362, 382, 387, 398, 428,
        432, 434, 443, 453,
      ])
    let share = (0..<Int64(100_000)).count(where: driver.isDropped)
    // 345 is five standard deviations of 100 000 draws with a chance of 1 in 20.
    #expect(abs(share - 5_000) < 345)
    settings.seed = 8
    let other = try SyntheticDriver(settings: settings)
    #expect((0..<Int64(480)).filter(other.isDropped) != lost)
  }

  @Test func `The sequence number counts frames lost for lack of a buffer`() throws {
    let rate = FrameRate(1_000)
    let driver = try SyntheticDriver(
      settings: SyntheticDriver.Settings(width: 128, height: 96, frameRate: rate, layout: .gray),
      bufferCount: 3)
    try driver.start(keeping: [])
    defer { driver.stop() }
    func next() throws -> DequeuedBuffer {
      while true {
        if let buffer = try driver.dequeue(timeoutMilliseconds: 1_000) { return buffer }
        try #require(!driver.hasEnded)
      }
    }
    let first = try next()
    let second = try next()
    #expect(first.observation.sequence == 0)
    var held = try next()
    try first.giveBack()
    var late = try next()
    // All three buffers are held, so only the clock advances until one is returned. If the camera
    // got no processor time meanwhile, it lost no frame, and the step is repeated.
    while late.observation.sequence == held.observation.sequence + 1 {
      MonotonicClock.sleep(untilMicroseconds: late.observation.driverMicroseconds + 20_000)
      try held.giveBack()
      held = late
      late = try next()
    }
    let lost = late.observation.sequence - held.observation.sequence - 1
    #expect(lost > 0 && late.observation.overrunsBefore == lost)
    let apart = late.observation.driverMicroseconds - held.observation.driverMicroseconds
    #expect(apart == Int64(lost + 1) * 1_000)
    try second.giveBack()
    try held.giveBack()
    try late.giveBack()
  }

  @Test(arguments: [Rational(1, over: 3), Rational(7, over: 10), Rational(1001, over: 1000), 60])
  func `Ball audio clicks at the first sample after a contact`(period: Rational) throws {
    let ball = try #require(BouncingBall(height: 1, period: period))
    let audio = SyntheticAudio(of: ball)
    for contact in [0, 1, 2, 3, 1_000, 123_456_789] as [Int64] {
      let exact = ball.time(ofContact: contact) * Rational(Int64(SyntheticAudio.sampleRate))
      let first = Int64(try exact.rounded(.towardPositiveInfinity))
      #expect(abs(audio.sample(first)) > 0.6)
      #expect(abs(audio.sample(first - 1)) < 0.11)
      #expect(abs(audio.sample(first + Int64(SyntheticAudio.clickLength))) < 0.11)
    }
  }

  @Test func `Default synthetic audio clicks only at whole seconds`() {
    let audio = SyntheticAudio()
    let rate = Int64(SyntheticAudio.sampleRate)
    let samples = audio.samples(from: 0, count: 3 * Int(rate))
    let loud = samples.indices.filter { abs(samples[$0]) > 0.5 }
    #expect(Set(loud.map { $0 / Int(rate) }) == [0, 1, 2])
    #expect(loud.allSatisfy { $0 % Int(rate) < SyntheticAudio.clickLength })
    #expect(loud.contains(Int(rate)))
    #expect(audio.samples(from: -5, count: 5) == [0, 0, 0, 0, 0])
    // A range of audio samples has the same values in every request.
    #expect(audio.samples(from: 47_990, count: 100) == Array(samples[47_990..<48_090]))
  }
}
