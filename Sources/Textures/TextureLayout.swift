// SPDX-License-Identifier: Apache-2.0

import CGLES
import OvercrankLibAV

/// The textures that a frame's planes become, and the way in which a shader reads colors from them.
struct TextureLayout: Hashable, Sendable {
  /// One texture with one plane of the frame.
  struct Plane: Hashable, Sendable {
    /// The index of the plane in the frame.
    let source: Int
    let width: Int
    let height: Int
    /// The number of channels of the texture, from 1 to 4, each of one byte.
    let channels: Int
  }

  let colorModel: FrameTexture.ColorModel
  let planes: [Plane]
  /// The channel of red, green and blue, or of Y, U and V, in the texture that contains it.
  let order: [Int32]
  /// Whether YUV is converted by BT.709; if not, by BT.601.
  let isBT709: Bool
  let isFullRange: Bool

  /// Makes the layout of a frame; nil if the shader cannot read the pixel format.
  init?(_ frame: MediaFrame) {
    let format = frame.pixelFormat.name
    let (width, height) = (frame.width, frame.height)
    if let (channels, order) = Self.rgb[format] {
      self.init(
        .rgb, [Plane(source: 0, width: width, height: height, channels: channels)], order, frame)
      return
    }
    guard frame.matrix != .other else { return nil }
    let shift = frame.pixelFormat.chromaShift
    let (chromaWidth, chromaHeight) = (
      (width + (1 << shift.x) - 1) >> shift.x, (height + (1 << shift.y) - 1) >> shift.y
    )
    let luma = Plane(source: 0, width: width, height: height, channels: 1)
    func chroma(_ source: Int, _ channels: Int) -> Plane {
      Plane(source: source, width: chromaWidth, height: chromaHeight, channels: channels)
    }
    switch format {
    case "gray": self.init(.gray, [luma], [0, 0, 0], frame)
    case _ where Self.planar.contains(format):
      self.init(.planarYUV, [luma, chroma(1, 1), chroma(2, 1)], [0, 0, 0], frame)
    case "nv12", "nv16", "nv24": self.init(.joinedYUV, [luma, chroma(1, 2)], [0, 0, 1], frame)
    case "nv21", "nv42": self.init(.joinedYUV, [luma, chroma(1, 2)], [0, 1, 0], frame)
    default:
      guard let order = Self.packed[format] else { return nil }
      // Uploads the bytes of a packed 4:2:2 frame twice: as pairs of luma and chroma, and as groups
      // of four bytes.
      self.init(
        .joinedYUV,
        [Plane(source: 0, width: width, height: height, channels: 2), chroma(0, 4)], order, frame)
    }
  }

  private init(
    _ colorModel: FrameTexture.ColorModel, _ planes: [Plane], _ order: [Int32], _ frame: MediaFrame
  ) {
    (self.colorModel, self.planes, self.order) = (colorModel, planes, order)
    (isBT709, isFullRange) = (frame.matrix == .bt709, frame.isFullRange)
  }

  private static let rgb: [String: (channels: Int, order: [Int32])] = [
    "rgb24": (3, [0, 1, 2]), "bgr24": (3, [2, 1, 0]), "rgba": (4, [0, 1, 2]),
    "rgb0": (4, [0, 1, 2]), "bgra": (4, [2, 1, 0]), "bgr0": (4, [2, 1, 0]),
    "argb": (4, [1, 2, 3]), "0rgb": (4, [1, 2, 3]), "abgr": (4, [3, 2, 1]), "0bgr": (4, [3, 2, 1]),
  ]
  private static let planar: Set<String> = [
    "yuv410p", "yuv411p", "yuv420p", "yuv422p", "yuv440p", "yuv444p", "yuvj411p", "yuvj420p",
    "yuvj422p", "yuvj440p", "yuvj444p",
  ]
  private static let packed: [String: [Int32]] = [
    "yuyv422": [0, 1, 3], "yvyu422": [0, 3, 1], "uyvy422": [1, 0, 2],
  ]

  /// The offsets to subtract from Y, U and V, and the matrix that then converts them to RGB, column
  /// by column.
  var conversion: (offset: [Float], matrix: [Float]) {
    let (red, blue): (Float, Float) = isBT709 ? (0.2126, 0.0722) : (0.299, 0.114)
    let green = 1 - red - blue
    let luma: Float = isFullRange ? 1 : 255.0 / 219
    let chroma: Float = isFullRange ? 1 : 255.0 / 224
    let offset: [Float] = [isFullRange ? 0 : 16.0 / 255, 128.0 / 255, 128.0 / 255]
    return (
      offset,
      [
        luma, luma, luma,
        0, -2 * blue * (1 - blue) / green * chroma, 2 * (1 - blue) * chroma,
        2 * (1 - red) * chroma, -2 * red * (1 - red) / green * chroma, 0,
      ]
    )
  }
}
