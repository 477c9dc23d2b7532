// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankPlayback
import Synchronization

/// Decodes the thumbnails of a time line on a background thread.
///
/// All calls may come from any thread.
final class ThumbnailLoader: Sendable {
  /// The file, and the index of a frame in it, that identify a thumbnail.
  struct Key: Hashable, Sendable {
    let path: String
    let index: Int
  }

  private struct State {
    var wanted: [Player.FrameReference] = []
    var decoded: [(key: Key, image: MediaFrame)] = []
    var isClosed = false
  }

  private let height: Int
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)
  private let thread = Mutex<BlockingThread?>(nil)

  /// Starts the thread.
  ///
  /// - Parameter height: The height of thumbnails in pixels.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot create a thread.
  init(height: Int) throws(MediaError) {
    self.height = height
    do throws(CallFailure) {
      let started = try BlockingThread { self.loadUntilClosed() }
      thread.withLock { $0 = started }
    } catch {
      throw MediaError(
        error, at: .resources, message: "the window cannot start a thread: \(error)")
    }
  }

  /// Replaces the list of frames to decode as thumbnails.
  func request(_ frames: [Player.FrameReference]) {
    state.withLock { $0.wanted = frames }
    work.signal()
  }

  /// Takes the thumbnails that were decoded since the last call.
  func takeDecoded() -> [(key: Key, image: MediaFrame)] {
    state.withLock { state in
      defer { state.decoded = [] }
      return state.decoded
    }
  }

  /// Ends the thread, and waits until the frame that is being decoded is complete.
  func close() {
    state.withLock { $0.isClosed = true }
    work.signal()
    thread.withLock { $0.take() }?.join()
  }

  private func loadUntilClosed() {
    let source = Source()
    while !state.withLock({ $0.isClosed }) {
      let next = state.withLock { $0.wanted.isEmpty ? nil : $0.wanted.removeFirst() }
      guard let next else {
        work.wait()
        continue
      }
      // A thumbnail that cannot be decoded stays empty.
      guard let image = try? source.thumbnail(next, height: height) else { continue }
      let key = Key(path: next.asset.path, index: next.index)
      state.withLock { $0.decoded.append((key, image)) }
    }
  }

  /// Decodes frames of several files, and keeps only the file of the last frame open.
  ///
  /// Used only by the loader's thread.
  private final class Source {
    private struct Open: ~Copyable {
      let path: String
      var reader: FrameReader
    }
    private var open: Open?

    func thumbnail(
      _ frame: Player.FrameReference, height: Int
    ) throws -> MediaFrame {
      if open?.path != frame.asset.path {
        open = nil
        let reader = try FrameReader(
          frame.asset, wanted: nil, threadCount: 1, undecodable: .hold)
        open = Open(path: frame.asset.path, reader: reader)
      }
      guard let decoded = try open?.reader.mediaFrame(at: frame.index) else {
        throw MediaError(.invalidData, "\(frame.asset.path) has no frame \(frame.index)")
      }
      let rotation = frame.asset.videoTrack?.frameRotation ?? .none
      let (width, rows) = (decoded.width, decoded.height)
      let scale = Double(height) / Double(max(1, rotation.isTransposed ? width : rows))
      func scaled(_ length: Int) -> Int { max(2, Int((Double(length) * scale).rounded())) }
      var converter = FrameConverter(
        to: .bgra, isFullRange: true, width: scaled(width), height: scaled(rows))
      return try converter.convert(decoded).rotated(by: rotation)
    }
  }
}
