// SPDX-License-Identifier: Apache-2.0

/// Generates the ball scene in 8-bit gray (`GREY`).
struct GraySceneGenerator: TestPatternGenerator {
  private var scene: BallScene

  init(scene: BallScene) { self.scene = scene }

  var maximumByteCount: Int { scene.image.width * scene.image.height }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    scene.draw(number: number, isFlash: isFlash)
    let (width, stride) = (scene.image.width, scene.image.stride)
    scene.image.luma.withUnsafeBytes { luma in
      if width == stride {
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: luma[..<maximumByteCount]))
      } else {
        for y in 0..<scene.image.height {
          UnsafeMutableRawBufferPointer(rebasing: buffer[(y * width)...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: luma[y * stride..<y * stride + width]))
        }
      }
    }
    return maximumByteCount
  }
}
