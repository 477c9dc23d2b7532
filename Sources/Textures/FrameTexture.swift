// SPDX-License-Identifier: Apache-2.0

import CGLES
import OvercrankCapture
import OvercrankLibAV
import Synchronization

/// A frame in textures, which a ``TextureRenderer`` converts to RGB and draws.
///
/// After its release, the cache reuses the textures as soon as the renderer has finished with them.
/// A frame texture retains its cache. It may be released on any thread. However, textures are only
/// deleted if the last reference to the cache is released on the thread of the OpenGL context.
public final class FrameTexture {
  /// The width of the frame in pixels.
  public let width: Int
  /// The height of the frame in pixels.
  public let height: Int

  let layout: TextureLayout
  /// The OpenGL names of the textures, in the order of the layout's planes.
  let names: [UInt32]
  /// The sample whose memory the renderer may still read.
  private let sample: SampleBuffer?
  /// Whether the textures use the camera's own buffer, imported instead of uploaded.
  public let isImported: Bool
  private let cache: TextureCache

  init(
    _ layout: TextureLayout, _ names: [UInt32], of frame: MediaFrame, _ sample: SampleBuffer?,
    isImported: Bool, in cache: TextureCache
  ) {
    (self.layout, self.names, width, height) = (layout, names, frame.width, frame.height)
    (self.sample, self.isImported, self.cache) = (sample, isImported, cache)
  }

  /// A plane of a frame in a texture of its own.
  public struct Plane: Hashable, Sendable {
    /// The target to bind the texture to, always `GL_TEXTURE_2D`.
    public let target: UInt32
    /// The OpenGL name of the texture.
    public let name: UInt32
    /// The width of the plane in texels.
    public let width: Int
    /// The height of the plane in texels.
    public let height: Int
    /// The number of channels of a texel, from 1 to 4, each of 8 bits.
    public let channels: Int
  }

  /// How the texels of the planes form a color.
  ///
  /// The raw value is the number by which the shader of ``TextureRenderer`` knows it.
  public enum ColorModel: Int32, Hashable, Sendable {
    /// Red, green and blue are channels of one plane.
    case rgb
    /// One plane has luma only.
    case gray
    /// Y, U and V are in three planes.
    case planarYUV
    /// Y is in the first plane, and U and V are in the second one.
    case joinedYUV
  }

  /// How the texels of the planes form a color.
  public var colorModel: ColorModel { layout.colorModel }

  /// The channel, from 0, of red, green and blue, or of Y, U and V, in the plane that has it.
  ///
  /// Gray repeats the channel of luma.
  public var channelOrder: [Int] { layout.order.map { Int($0) } }

  /// Calls a closure with the planes, so that a shader of the program can read them.
  ///
  /// The names are valid in the context of the cache, until the closure returns and the commands that
  /// it issued are finished. The closure must not change or delete the textures. The packed 4:2:2
  /// formats have their bytes twice: as pairs of luma and chroma, and as groups of four.
  ///
  /// - Returns: The result of the closure.
  /// - Throws: The error of the closure.
  public func withPlanes<Result, Failure: Error>(
    _ body: ([Plane]) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(
      zip(layout.planes, names).map { plane, name in
        Plane(
          target: UInt32(GL_TEXTURE_2D), name: name, width: plane.width, height: plane.height,
          channels: plane.channels)
      })
  }

  deinit {
    cache.released.add(
      ReleasedTextures.Entry(
        planes: layout.planes, names: isImported ? [] : names, sample: sample))
  }
}

/// Textures that the program has released but the renderer may still use.
final class ReleasedTextures: Sendable {
  struct Entry: Sendable {
    let planes: [TextureLayout.Plane]
    /// The names of the textures to reuse; empty if the textures belong to a camera buffer.
    let names: [UInt32]
    let sample: SampleBuffer?
  }

  private let entries = Mutex<[Entry]>([])

  func add(_ entry: Entry) { entries.withLock { $0.append(entry) } }

  /// Removes and returns all released textures.
  func takeAll() -> [Entry] {
    entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
  }
}
