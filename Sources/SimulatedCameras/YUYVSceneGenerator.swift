// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// Generates the ball scene in packed 4:2:2 (`YUYV`).
struct YUYVSceneGenerator: TestPatternGenerator {
  private var scene: BallScene
  /// The packed pixels of the most recent frame.
  private var canvas: [UInt8]

  init(scene: BallScene) {
    self.scene = scene
    canvas = Array(repeating: 0, count: scene.image.width * scene.image.height * 2)
    convert(PixelRect(x: 0, y: 0, width: scene.image.width, height: scene.image.height))
  }

  var maximumByteCount: Int { canvas.count }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    scene.draw(number: number, isFlash: isFlash)
    for rect in scene.changed {
      convert(rect.clamped(width: scene.image.width, height: scene.image.height).even)
    }
    canvas.withUnsafeBytes { buffer.copyMemory(from: $0) }
    return canvas.count
  }

  /// Converts a rectangle of the scene, with even coordinates, from planes to packed pixels.
  private mutating func convert(_ rect: PixelRect) {
    let image = scene.image
    canvas.withUnsafeMutableBytes { canvas in
      image.withPlanes { luma, cb, cr in
        for y in rect.rows {
          let (source, color) = (y * image.stride, y / 2 * (image.stride / 2))
          var x = rect.x
          // Converts sixteen pixels at a time, then the remaining ones two at a time.
          while x + 16 <= rect.right {
            var colors = SIMD16<UInt8>()
            colors.evenHalf = Self.load(cb, color + x / 2)
            colors.oddHalf = Self.load(cr, color + x / 2)
            var packed = SIMD32<UInt8>()
            packed.evenHalf = Self.load(luma, source + x)
            packed.oddHalf = colors
            canvas.storeBytes(
              of: packed, toByteOffset: (y * image.width + x) * 2, as: SIMD32<UInt8>.self)
            x += 16
          }
          while x < rect.right {
            let target = (y * image.width + x) * 2
            canvas[target] = luma[source + x]
            canvas[target + 1] = cb[color + x / 2]
            canvas[target + 2] = luma[source + x + 1]
            canvas[target + 3] = cr[color + x / 2]
            x += 2
          }
        }
      }
    }
  }

  private static func load<Vector: SIMD>(_ plane: UnsafeBufferPointer<UInt8>, _ index: Int)
    -> Vector where Vector.Scalar == UInt8
  {
    UnsafeRawBufferPointer(plane).loadUnaligned(fromByteOffset: index, as: Vector.self)
  }
}

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
