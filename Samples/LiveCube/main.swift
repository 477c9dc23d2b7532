// SPDX-License-Identifier: Apache-2.0

// A rotating cube with the live video of a camera on its sides, drawn without a screen. Writes four
// images of it: cube_1.png to cube_4.png.
//
//   LiveCube [DEVICE]
import Glibc
import Overcrank
import OvercrankTextures

/// A matrix of 4 by 4 numbers, stored by columns as in OpenGL.
struct Matrix {
  var numbers: [Float]

  /// A rotation by an angle in the plane of two axes: 0 is x, 1 is y, 2 is z.
  init(rotating angle: Float, from first: Int, to second: Int) {
    numbers = TextureRenderer.identity
    (numbers[first * 5], numbers[second * 5]) = (cos(angle), cos(angle))
    (numbers[first * 4 + second], numbers[second * 4 + first]) = (sin(angle), -sin(angle))
  }

  /// The view from a camera that is four units in front of the center.
  init(perspectiveFor aspect: Float) {
    let (near, far, focus): (Float, Float, Float) = (1, 10, 2.2)
    let depth = (far + near) / (near - far)
    numbers = [
      focus / aspect, 0, 0, 0, 0, focus, 0, 0, 0, 0, depth, -1, 0, 0,
      depth * -4 + 2 * far * near / (near - far), 4,
    ]
  }

  static func * (left: Matrix, right: Matrix) -> Matrix {
    var product = left
    for column in 0..<4 {
      for row in 0..<4 {
        product.numbers[column * 4 + row] = (0..<4).reduce(Float(0)) { sum, index in
          sum + left.numbers[index * 4 + row] * right.numbers[column * 4 + index]
        }
      }
    }
    return product
  }
}

/// The six sides of a cube from -1 to 1.
///
/// Each side shows the whole frame.
func cube() -> TextureMesh {
  // The right and the up direction of each side. The sides face away from the center.
  let sides: [(right: [Float], up: [Float])] = [
    ([1, 0, 0], [0, 1, 0]), ([-1, 0, 0], [0, 1, 0]), ([0, 0, -1], [0, 1, 0]),
    ([0, 0, 1], [0, 1, 0]), ([1, 0, 0], [0, 0, -1]), ([1, 0, 0], [0, 0, 1]),
  ]
  var vertices: [Float] = []
  for (right, up) in sides {
    let outward = [
      right[1] * up[2] - right[2] * up[1], right[2] * up[0] - right[0] * up[2],
      right[0] * up[1] - right[1] * up[0],
    ]
    for (u, v) in [(0, 0), (0, 1), (1, 1), (0, 0), (1, 1), (1, 0)] as [(Float, Float)] {
      vertices += (0..<3).map { outward[$0] + right[$0] * (2 * u - 1) + up[$0] * (1 - 2 * v) }
      vertices += [u, v]
    }
  }
  return TextureMesh(vertices)
}

let name = CommandLine.arguments.dropFirst().first ?? "synthetic:640x480@60"
let session = try CaptureSession(CaptureDevice.named(name))
let video = VideoDataOutput()
try session.addOutput(video)
let context = try OffscreenContext(width: 640, height: 480)
let cache = try TextureCache()
let renderer = try TextureRenderer()
renderer.testsDepth = true
let view = Matrix(perspectiveFor: 640.0 / 480)
try session.startRunning()
// An OpenGL context belongs to a thread, so frames are taken on this thread, without tasks.
for number in 0..<48 {
  guard
    let texture = try video.withNextFrame({ frame in try cache.texture(for: frame) })
  else { break }
  let angle = Float(number) / 24 * .pi
  let rotation = Matrix(rotating: 0.5, from: 1, to: 2) * Matrix(rotating: angle, from: 2, to: 0)
  context.clear()
  renderer.draw(texture, on: cube(), transform: (view * rotation).numbers)
  if number % 12 == 3 {
    let path = "cube_\(number / 12 + 1).png"
    guard let file = fopen(path, "wb") else { break }
    let data = try context.pngData()
    fwrite(data, 1, data.count, file)
    fclose(file)
    print(path)
  }
}
session.stopRunning()
print("\(cache.textureCount) textures for 48 frames, \(context.rendererName)")
