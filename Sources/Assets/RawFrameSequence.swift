// SPDX-License-Identifier: Apache-2.0

import Algorithms
import Dispatch
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

/// Decodes frames of an asset to raw bytes, in the order of a list.
///
/// Where each frame is coded by itself, as in Motion JPEG, several threads decode different frames.
/// Otherwise libavcodec uses several threads, if the codec allows it. A few frames are decoded ahead,
/// while the caller uses the ones before.
public struct RawFrameSequence: ~Copyable {
  /// A frame as raw bytes, row by row without padding.
  public struct Element: Sendable {
    /// The index of the frame, from 0.
    public let index: Int
    /// Whether the frame cannot be decoded.
    ///
    /// With the policy `hold`, it has the pixels of another one.
    public let isUndecodable: Bool
    /// The width in pixels, after rotation.
    public let width: Int
    /// The height in pixels, after rotation.
    public let height: Int
    /// The number of bytes; 0 for a frame that cannot be decoded, if the policy is `skip`.
    public let byteCount: Int
    private let image: MediaFrame?

    init(_ index: Int, _ image: MediaFrame?, isUndecodable: Bool) throws(LibAVError) {
      (self.index, self.image, self.isUndecodable) = (index, image, isUndecodable)
      (width, height) = (image?.width ?? 0, image?.height ?? 0)
      byteCount = try image?.packedByteCount() ?? 0
    }

    /// The bytes; nil for a frame that cannot be decoded, if the policy is `skip`.
    ///
    /// Each access copies them.
    public var bytes: [UInt8]? { image.flatMap { try? $0.packedBytes() } }

    /// Calls a function with consecutive parts of the bytes, without a copy where rows have no
    /// padding.
    ///
    /// - Throws: The error of the function, or `MediaError` without memory.
    package func withParts(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
      do { try image?.withPackedParts(body) } catch let error as LibAVError {
        throw MediaError(reading: error)
      }
    }
  }

  /// The most frames that each thread decodes at a time.
  private static let blockLength = 4
  /// The bytes that each thread decodes at a time, unless one frame is larger.
  private static let blockBytes = 16 << 20

  private let decoded: BoundedBlockingQueue<Result<Element, MediaError>>

  /// Opens an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - indices: The indices of the frames from 0, in any order.
  ///   - format: The pixel format, as of ``RawFrameWriter``.
  ///   - appliesRotation: Whether the track's rotation is applied.
  ///   - undecodable: The policy for frames that cannot be decoded.
  /// - Throws: `MediaError` as ``FrameReader`` and ``RawFrameWriter`` do.
  public init(
    _ asset: Asset, frames indices: [Int], as format: PixelFormat, appliesRotation: Bool = true,
    undecodable: UndecodableFramePolicy = .stop
  ) throws(MediaError) {
    let isParallel =
      asset.videoTrack?.format.parameters.isIntraOnly == true && indices.count > Self.blockLength
    let count = isParallel ? min(8, Processors.count) : 1
    var workers: [FrameWorker] = []
    for _ in 0..<count {
      workers.append(
        try FrameWorker(
          asset, format, appliesRotation, undecodable, threadCount: isParallel ? 1 : 0))
    }
    // At most 6 bytes per pixel, as for 16 bits of red, green and blue.
    let frameBytes = max(1, 6 * (asset.videoTrack?.width ?? 1) * (asset.videoTrack?.height ?? 1))
    let length = max(1, min(Self.blockLength, Self.blockBytes / frameBytes))
    decoded = BoundedBlockingQueue(capacity: isParallel ? count * length : min(3, length))
    let ahead = FramesAhead(indices, workers, blockLength: isParallel ? length : 1)
    DispatchQueue(label: "frames.decode").async { [decoded] in ahead.decode(to: decoded) }
  }

  deinit { decoded.stop() }

  /// Returns the next frame of the list.
  ///
  /// Blocks until it is decoded.
  ///
  /// - Returns: The frame, or nil after the last one.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded.
  public mutating func nextFrame() throws(MediaError) -> Element? {
    // The queue ends without an error.
    guard case .element(let frame)? = try? decoded.take() else { return nil }
    return try frame.get()
  }
}

/// The decoding of a list of frames, on a thread of its own.
private struct FramesAhead: Sendable {
  private let indices: [Int]
  private let workers: [FrameWorker]
  private let blockLength: Int

  init(_ indices: [Int], _ workers: [FrameWorker], blockLength: Int) {
    (self.indices, self.workers, self.blockLength) = (indices, workers, blockLength)
  }

  /// Decodes all frames, or until the queue is stopped.
  func decode(to queue: BoundedBlockingQueue<Result<RawFrameSequence.Element, MediaError>>) {
    defer { queue.end() }
    guard workers.count > 1 else {
      for index in indices { guard queue.put(workers[0].frame(index)) else { return } }
      return
    }
    for batch in indices.chunks(ofCount: workers.count * blockLength) {
      let blocks = batch.chunks(ofCount: blockLength).map(Array.init)
      let results = Mutex(
        [[Result<RawFrameSequence.Element, MediaError>]](repeating: [], count: blocks.count))
      DispatchQueue.concurrentPerform(iterations: blocks.count) { number in
        let frames = blocks[number].map { workers[number].frame($0) }
        results.withLock { $0[number] = frames }
      }
      for frame in results.withLock({ $0.joined().map(\.self) }) {
        guard queue.put(frame) else { return }
      }
    }
  }
}

/// The reader and the converter of one thread.
private final class FrameWorker: Sendable {
  private struct State: ~Copyable {
    var reader: FrameReader
    var writer: RawFrameWriter
  }

  private let state: Mutex<State>
  private let skips: Bool

  init(
    _ asset: Asset, _ format: PixelFormat, _ appliesRotation: Bool,
    _ undecodable: UndecodableFramePolicy, threadCount: Int
  ) throws(MediaError) {
    skips = undecodable == .skip
    state = Mutex(
      State(
        reader: try FrameReader(
          asset, wanted: nil, threadCount: threadCount, undecodable: undecodable),
        writer: try RawFrameWriter(format, appliesRotation: appliesRotation)))
  }

  /// Decodes a frame.
  ///
  /// A block is decoded by one thread, and each thread has its own worker.
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
        do throws(LibAVError) {
          return .success(
            try RawFrameSequence.Element(index, image, isUndecodable: isUndecodable))
        } catch { throw MediaError(reading: error) }
      } catch { return .failure(error) }
    }
  }
}
