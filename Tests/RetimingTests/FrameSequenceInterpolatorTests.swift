// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Sequences of captured frames with cuts, repetitions and jumps.
struct FrameSequenceInterpolatorTests {
  private static let (width, height) = (96, 64)
  private static let texture = MovingTexture(seed: 9, longest: 40, shortest: 9)

  private typealias Input = FrameSequenceInterpolator.Input
  private typealias Output = FrameSequenceInterpolator.Output

  private func outputs(
    _ inputs: [Input], fallback: LowConfidencePolicy = .flow, threshold: Float = 0.35,
    dropped: Int64 = 0
  ) throws -> [Output] {
    let interpolator = try #require(
      FrameInterpolator(width: Self.width, height: Self.height, pixelFormat: .yuv420p))
    let sequence = FrameSequenceInterpolator(
      interpolator, fallback: fallback, threshold: threshold)
    var result: [Output] = []
    for input in inputs {
      #expect(
        try sequence.add(input) {
          result.append($0)
          return true
        })
    }
    #expect(
      sequence.finish {
        result.append($0)
        return true
      })
    #expect(sequence.droppedCount == dropped)
    let due = inputs.reduce(0) { $0 + $1.instants.count }
    #expect(result.reduce(0) { $0 + $1.count } == Int64(due))
    return result
  }

  /// Frames one second apart, with output frames at four instants after each.
  private func inputs(_ images: [MediaFrame], disconnected: Int? = nil) -> [Input] {
    images.enumerated().map { number, image in
      Input(
        image: image, time: Double(number), isConnected: number > 0 && number != disconnected,
        instants: [0, 0.25, 0.5, 0.75].map { Double(number) + $0 })
    }
  }

  private func frame(_ moved: Double, of texture: MovingTexture = texture) throws -> MediaFrame {
    try texture.frame(Self.width, Self.height, movedBy: moved)
  }

  @Test func `Interpolation at a capture time gives the captured frame`() throws {
    let images = try (0..<3).map { try frame(Double($0) * 6) }
    let made = try outputs(inputs(images))
    #expect(made.map(\.count) == [1, 1, 1, 1, 1, 1, 1, 1, 4])
    #expect(made[0].image === images[0] && made[4].image === images[1])
    #expect(made[8].image === images[2] && made[8].confidence == nil)
    for (number, output) in made.prefix(8).enumerated() {
      let truth = try frame(Double(number) * 1.5)
      #expect(output.image.signalToNoise(truth, border: 12) > 34)
      #expect((output.confidence == nil) == (number % 4 == 0))
    }
  }

  @Test func `A repeated frame is replaced by interpolation at its time`() throws {
    // Frame 3 repeats frame 2 with a little noise, as after encoding.
    var images = try (0..<5).map { try frame(Double($0) * 6) }
    images[3] = try MovingTexture.frame(Self.width, Self.height) { x, y in
      Self.texture.luma(x - 12, y) + (Int(x + 3 * y) % 3 == 0 ? 2 : -1)
    }
    let made = try outputs(inputs(images), dropped: 1)
    // Between frames 2 and 4, motion continues evenly over two seconds.
    for number in 8..<16 {
      let truth = try frame(12 + Double(number - 8) * 1.5)
      #expect(made[number].image.signalToNoise(truth, border: 12) > 32, "output \(number)")
    }
  }

  @Test func `Very slow motion is not taken for repeated frames`() throws {
    // The motion is a tenth of a pixel per frame from the start.
    let images = try (0..<5).map { try frame(Double($0) * 0.1) }
    _ = try outputs(inputs(images))
  }

  @Test func `A long still image is held and not interpolated`() throws {
    let still = try frame(12)
    let images = try [frame(0), frame(6), still, still, still, still, still, still, still]
    // After four repeated frames in a row, further ones count as a still image.
    let made = try outputs(inputs(images), dropped: 5)
    let due = try still.packedBytes()
    for output in made.suffix(12) {
      let bytes = try output.image.packedBytes()
      #expect(bytes == due)
    }
  }

  @Test func `Interpolation holds the last frame before a scene cut`() throws {
    let other = MovingTexture(seed: 31)
    let images = try [
      frame(0), frame(6), frame(0, of: other), frame(6, of: other),
    ]
    let made = try outputs(inputs(images))
    let held = made.filter { $0.image === images[1] }
    #expect(held.reduce(0) { $0 + $1.count } == 4)
    // After the cut, frames are interpolated again.
    let truth = try frame(3, of: other)
    #expect(made.contains { $0.image.signalToNoise(truth, border: 12) > 32 })
  }

  @Test func `Interpolation holds the last frame before a jump in time`() throws {
    let images = try (0..<3).map { try frame(Double($0) * 6) }
    let made = try outputs(inputs(images, disconnected: 1))
    #expect(made[0].image === images[0] && made[0].count == 4)
  }

  @Test func `Interpolation of low confidence falls back to hold or blend`() throws {
    let images = try [frame(0), frame(6)]
    let held = try outputs(inputs(images), fallback: .hold, threshold: 1.1)
    #expect(held[0].image === images[0] && held[0].count == 4)
    let blended = try outputs(inputs(images), fallback: .blend, threshold: 1.1)
    let (first, second) = (images[0].lumaRows, images[1].lumaRows)
    let mixed = blended[2].image.lumaRows
    for y in 0..<Self.height {
      for x in 0..<Self.width {
        #expect(Int(mixed[y][x]) == (Int(first[y][x]) + Int(second[y][x]) + 1) / 2)
      }
    }
  }
}
