// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import Synchronization

/// A frame as textures, which a ``TextureRenderer`` draws in its colors.
///
/// When it is released, its cache uses the textures again as soon as the renderer has finished with
/// them. It holds its cache. It may be released on any thread, but its textures are only deleted if the
/// last reference to the cache is released on the thread of the context.
public final class FrameTexture {
  /// The width of the frame in pixels.
  public let width: Int
  /// The height of the frame in pixels.
  public let height: Int

  let layout: TextureLayout
  /// The names of OpenGL, in the order of the layout's planes.
  let names: [UInt32]
  /// The frame whose memory the renderer may still read.
  private let sample: SampleBuffer?
  /// Whether the textures are the camera's own buffer, which was imported instead of uploaded.
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

/// Textures that the program has released, and that the renderer may still use.
final class ReleasedTextures: Sendable {
  struct Entry: Sendable {
    let planes: [TextureLayout.Plane]
    /// The textures to use again; none if they belong to a buffer of the camera.
    let names: [UInt32]
    let sample: SampleBuffer?
  }

  private let entries = Mutex<[Entry]>([])

  func add(_ entry: Entry) { entries.withLock { $0.append(entry) } }

  /// Removes and returns the entries.
  func takeAll() -> [Entry] {
    entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
  }
}
