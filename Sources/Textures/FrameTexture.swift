// SPDX-License-Identifier: Apache-2.0

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
