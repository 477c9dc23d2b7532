// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

/// Decodes frames of an asset to raw bytes, in the order of a list of their indices.
///
/// For intra-only codecs such as Motion JPEG, several threads decode different frames. For other
/// codecs, libavcodec uses several threads if possible. While the caller uses a frame, the next few
/// frames are already decoded.
public struct RawFrameSequence: ~Copyable {
  /// A frame as raw bytes, row by row without padding.
  public struct Element: Sendable {
    /// The index of the frame in the asset, from 0.
    public let index: Int
    /// Whether the frame cannot be decoded.
    ///
    /// With the policy `hold`, the element then contains the pixels of another frame.
    public let isUndecodable: Bool
    /// The width of the frame in pixels, after rotation.
    public let width: Int
    /// The height of the frame in pixels, after rotation.
    public let height: Int
    /// The number of bytes of the frame.
    ///
    /// With the policy `skip`, 0 for a frame that cannot be decoded.
    public let byteCount: Int
    private let image: MediaFrame?

    init(_ index: Int, _ image: MediaFrame?, isUndecodable: Bool) throws(CallFailure) {
      (self.index, self.image, self.isUndecodable) = (index, image, isUndecodable)
      (width, height) = (image?.width ?? 0, image?.height ?? 0)
      byteCount = try image?.packedByteCount() ?? 0
    }

    /// The bytes of the frame.
    ///
    /// With the policy `skip`, nil for a frame that cannot be decoded.
    ///
    /// Each access copies the bytes.
    public var bytes: [UInt8]? { image.flatMap { try? $0.packedBytes() } }

    /// Whether ``withParts(_:)`` passes the element's own memory instead of a copy.
    package var keepsParts: Bool { image?.isPacked ?? true }

    /// Calls a function with consecutive parts of the bytes.
    ///
    /// Nothing is copied if the rows have no padding.
    ///
    /// - Throws: The error of the function, or `MediaError` if memory is exhausted.
    package func withParts(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
      do { try image?.withPackedParts(body) } catch let error as CallFailure {
        throw MediaError(reading: error)
      }
    }
  }

  /// The greatest number of frames in the block that one thread decodes at a time.
  private static let blockLength = 4
  /// The greatest number of bytes in the block that one thread decodes at a time, unless a single
  /// frame is larger.
  private static let blockBytes = 16 << 20

  /// The queues of decoded frames, one for each worker, each in the order of the requested indices.
  private let decoded: [BoundedBlockingQueue<Result<Element, MediaError>>]
  /// The number of consecutive frames in the list of requested indices that one worker decodes at a
  /// time.
  private let blockLength: Int
  private var position = 0

  /// Opens an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - indices: The indices of the frames from 0, in any order.
  ///   - format: The pixel format, as in ``RawFrameWriter``.
  ///   - isFullRange: Whether YUV formats have full range, as in ``RawFrameWriter``.
  ///   - appliesRotation: Whether the track's rotation is applied.
  ///   - undecodable: The policy for frames that cannot be decoded.
  /// - Throws: `MediaError` as ``FrameReader`` and ``RawFrameWriter`` do, or `.outOfMemory` if the
  ///   system cannot create a thread.
  public init(
    _ asset: Asset, frames indices: [Int], as format: PixelFormat, isFullRange: Bool = false,
    appliesRotation: Bool = true, undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    let isParallel =
      asset.videoTrack?.format.parameters.isIntraOnly == true && indices.count > Self.blockLength
    let count = isParallel ? min(8, Processors.count) : 1
    // A frame has at most 6 bytes per pixel, as in RGB with 16 bits per component.
    let frameBytes = max(1, 6 * (asset.videoTrack?.width ?? 1) * (asset.videoTrack?.height ?? 1))
    let length = max(1, min(Self.blockLength, Self.blockBytes / frameBytes))
    var workers: [FrameWorker] = []
    for first in 0..<count {
      let blocks = stride(from: first * length, to: indices.count, by: count * length)
      workers.append(
        FrameWorker(
          indices: blocks.flatMap { indices[$0..<min($0 + length, indices.count)] },
          // The queue has space for a whole block, which is decoded while the caller takes frames
          // from the other workers.
          decoded: BoundedBlockingQueue(capacity: length),
          decoder: try FrameDecoder(
            asset, format, isFullRange: isFullRange, appliesRotation, undecodable,
            threadCount: isParallel ? 1 : 0)))
    }
    do throws(MediaError) {
      for worker in workers { try worker.start() }
    } catch {
      for worker in workers { worker.decoded.stop() }
      throw error
    }
    blockLength = length
    decoded = workers.map(\.decoded)
  }

  deinit { for queue in decoded { queue.stop() } }

  /// Returns the next requested frame.
  ///
  /// Blocks until the frame is decoded.
  ///
  /// - Returns: The frame, or nil after the last one.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded.
  public mutating func nextFrame() throws(MediaError) -> Element? {
    let worker = decoded[position / blockLength % decoded.count]
    // The queue ends without an error, so this cannot throw.
    guard case .element(let frame)? = try? worker.take() else { return nil }
    position += 1
    return try frame.get()
  }
}

/// Decodes some of the frames on a separate thread.
private struct FrameWorker: Sendable {
  let indices: [Int]
  let decoded: BoundedBlockingQueue<Result<RawFrameSequence.Element, MediaError>>
  let decoder: FrameDecoder

  /// Starts the thread, which decodes all frames of this worker unless the queue is stopped.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot create a thread.
  func start() throws(MediaError) {
    try CallStage.resources.converting { () throws(CallFailure) in
      try BlockingThread {
        defer { decoded.end() }
        for index in indices {
          guard decoded.put(decoder.frame(index)) else { return }
        }
      }.detach()
    }
  }
}

/// The frame reader and the converter of one thread.
private final class FrameDecoder: Sendable {
  private struct State: ~Copyable {
    var reader: FrameReader
    var writer: RawFrameWriter
  }

  private let state: Mutex<State>
  private let skips: Bool

  init(
    _ asset: Asset, _ format: PixelFormat, isFullRange: Bool, _ appliesRotation: Bool,
    _ undecodable: UndecodableFramePolicy, threadCount: Int
  ) throws(MediaError) {
    skips = undecodable == .skip
    state = Mutex(
      State(
        reader: try FrameReader(
          asset, wanted: nil, threadCount: threadCount, undecodable: undecodable),
        writer: try RawFrameWriter(
          format, isFullRange: isFullRange, appliesRotation: appliesRotation)))
  }

  /// Decodes a frame.
  ///
  /// Used by one thread only.
  func frame(_ index: Int) -> Result<RawFrameSequence.Element, MediaError> {
    state.withLock { state in
      do throws(MediaError) {
        var image: MediaFrame?
        do throws(MediaError) {
          image = try state.writer.image(of: index, from: &state.reader)
        } catch {
          guard skips, state.reader.undecodableFrames.contains(index) else { throw error }
        }
        let isUndecodable = state.reader.undecodableFrames.contains(index)
        do throws(CallFailure) {
          return .success(
            try RawFrameSequence.Element(index, image, isUndecodable: isUndecodable))
        } catch { throw MediaError(reading: error) }
      } catch { return .failure(error) }
    }
  }
}
