// SPDX-License-Identifier: Apache-2.0

/// Generates the ball scene in packed 4:2:2 (`YUYV`).
struct YUYVSceneGenerator: TestPatternGenerator {
  private var scene: BallScene
  /// The most recent frame.
  private var canvas: [UInt8]

  init(scene: BallScene) {
    self.scene = scene
    canvas = Array(repeating: 0, count: scene.image.width * scene.image.height * 2)
    convert(visible)
  }

  private var visible: PixelRect {
    PixelRect(x: 0..<scene.image.width, y: 0..<scene.image.height)
  }

  var maximumByteCount: Int { canvas.count }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    scene.draw(number: number, isFlash: isFlash)
    for rect in scene.changed { convert(rect.clamped(to: visible).even) }
    canvas.withUnsafeBytes { buffer.copyMemory(from: $0) }
    return canvas.count
  }

  private mutating func convert(_ rect: PixelRect) {
    let image = scene.image
    canvas.withUnsafeMutableBufferPointer { canvas in
      image.withPlanes { luma, cb, cr in
        for y in rect.y {
          var target = (y * image.width + rect.x.lowerBound) * 2
          let (source, color) = (y * image.stride, y / 2 * (image.stride / 2))
          for x in rect.x.lowerBound / 2..<rect.x.upperBound / 2 {
            canvas[target] = luma[source + 2 * x]
            canvas[target + 1] = cb[color + x]
            canvas[target + 2] = luma[source + 2 * x + 1]
            canvas[target + 3] = cr[color + x]
            target += 4
          }
        }
      }
    }
  }
}
