// SPDX-License-Identifier: Apache-2.0

/// Generates the bytes of the synthetic camera's frames in one pixel format or codec.
protocol TestPatternGenerator {
  /// The maximum size of a frame, in bytes.
  var maximumByteCount: Int { get }

  /// Writes a frame to a buffer and returns its size in bytes.
  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int
}

/// Generates frames of 8-bit gray (`GREY`).
struct GrayTestPatternGenerator: TestPatternGenerator {
  private let pattern: TestPattern
  private let canvas: [UInt8]

  init(pattern: TestPattern) {
    self.pattern = pattern
    canvas = patternCanvas(pattern, bytesPerPixel: 1) { value, _ in (value, 0) }
  }

  var maximumByteCount: Int { pattern.width * pattern.height }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    copyPattern(canvas, pattern, bytesPerPixel: 1, number: number, into: buffer)
    guard let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
    for y in 0..<min(pattern.numberHeight, pattern.height) {
      pattern.drawNumberRow(
        y: y, number: number, isFlash: isFlash, into: start + y * pattern.width)
    }
    return maximumByteCount
  }
}

/// Generates frames of packed 4:2:2 (`YUYV`).
struct YUYVTestPatternGenerator: TestPatternGenerator {
  private let pattern: TestPattern
  private let canvas: [UInt8]
  private var row: [UInt8]

  init(pattern: TestPattern) {
    self.pattern = pattern
    row = Array(repeating: 0, count: pattern.width)
    canvas = patternCanvas(pattern, bytesPerPixel: 2) { value, x in
      (value, x % 2 == 0 ? 112 : 144)
    }
  }

  var maximumByteCount: Int { pattern.width * pattern.height * 2 }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    copyPattern(canvas, pattern, bytesPerPixel: 2, number: number, into: buffer)
    guard let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
    for y in 0..<min(pattern.numberHeight, pattern.height) {
      row.withUnsafeMutableBufferPointer { row in
        guard let line = row.baseAddress else { return }
        pattern.drawNumberRow(y: y, number: number, isFlash: isFlash, into: line)
        let target = start + y * pattern.width * 2
        for x in 0..<pattern.width {
          target[2 * x] = line[x]
          target[2 * x + 1] = 128
        }
      }
    }
    return maximumByteCount
  }
}

/// Draws the moving pattern once, higher than the image by one period of the pattern, so that a
/// frame can be copied from any vertical offset.
private func patternCanvas(
  _ pattern: TestPattern, bytesPerPixel: Int, _ pixel: (UInt8, Int) -> (UInt8, UInt8)
) -> [UInt8] {
  var canvas = [UInt8]()
  canvas.reserveCapacity((pattern.height + TestPattern.period) * pattern.width * bytesPerPixel)
  for y in 0..<(pattern.height + TestPattern.period) {
    for x in 0..<pattern.width {
      let (first, second) = pixel(TestPattern.pattern(x: x, y: y), x)
      canvas.append(first)
      if bytesPerPixel == 2 { canvas.append(second) }
    }
  }
  return canvas
}

private func copyPattern(
  _ canvas: [UInt8], _ pattern: TestPattern, bytesPerPixel: Int, number: Int,
  into buffer: UnsafeMutableRawBufferPointer
) {
  let rowBytes = pattern.width * bytesPerPixel
  let first = TestPattern.offset(number: number) * rowBytes
  canvas.withUnsafeBytes { source in
    buffer.copyMemory(
      from: UnsafeRawBufferPointer(rebasing: source[first..<(first + pattern.height * rowBytes)]))
  }
}
