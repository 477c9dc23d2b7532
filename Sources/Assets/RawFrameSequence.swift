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
/// Otherwise libavcodec uses several threads, if the codec allows it.
public struct RawFrameSequence: ~Copyable {
  /// A frame as raw bytes, row by row without padding.
  public struct Element: Sendable {
    /// The index of the frame, from 0.
    public let index: Int
    /// Whether the frame cannot be decoded.
    ///
    /// With the policy `hold`, it has the bytes of another one.
    public let isUndecodable: Bool
    /// The bytes; nil for a frame that cannot be decoded, if the policy is `skip`.
    public let bytes: [UInt8]?
    /// The width in pixels, after rotation.
    public let width: Int
    /// The height in pixels, after rotation.
    public let height: Int
  }

  /// The most frames that each thread decodes at a time.
  private static let blockLength = 4
  /// The bytes that each thread decodes at a time, unless one frame is larger.
  private static let blockBytes = 16 << 20

  private let indices: [Int]
  private let workers: [FrameWorker]
  private var next = 0
  /// The size of the last frame in bytes, or 1 before the first.
  private var frameBytes = 1
  private var decoded: ArraySlice<Result<Element, MediaError>> = []

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
    self.indices = indices
    let isParallel =
      asset.videoTrack?.format.parameters.isIntraOnly == true && indices.count > Self.blockLength
    let count = isParallel ? min(8, Processors.count) : 1
    var workers: [FrameWorker] = []
    for _ in 0..<count {
      workers.append(
        try FrameWorker(
          asset, format, appliesRotation, undecodable, threadCount: isParallel ? 1 : 0))
    }
    self.workers = workers
  }

  /// Decodes the next frame of the list.
  ///
  /// Blocks.
  ///
  /// - Returns: The frame, or nil after the last one.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded.
  public mutating func nextFrame() throws(MediaError) -> Element? {
    if decoded.isEmpty { decodeBlocks() }
    let frame = try decoded.popFirst()?.get()
    if let count = frame?.bytes?.count, count > 0 { frameBytes = count }
    return frame
  }

  private mutating func decodeBlocks() {
    // Frees the storage of the last block before the next one is decoded.
    decoded = []
    let rest = indices[next...]
    guard workers.count > 1 else {
      guard let index = rest.first else { return }
      next += 1
      decoded = [workers[0].frame(index)]
      return
    }
    let length = max(1, min(Self.blockLength, Self.blockBytes / frameBytes))
    let blocks = rest.prefix(workers.count * length).chunks(ofCount: length).map(Array.init)
    next += blocks.reduce(0) { $0 + $1.count }
    let results = Mutex([[Result<Element, MediaError>]](repeating: [], count: blocks.count))
    let workers = workers
    DispatchQueue.concurrentPerform(iterations: blocks.count) { number in
      let frames = blocks[number].map { workers[number].frame($0) }
      results.withLock { $0[number] = frames }
    }
    decoded = results.withLock { ArraySlice($0.joined()) }
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
        let bytes = try state.writer.data(of: index, from: &state.reader)
        return .success(
          RawFrameSequence.Element(
            index: index, isUndecodable: state.reader.undecodableFrames.contains(index),
            bytes: bytes, width: state.writer.frameWidth,
            height: state.writer.frameHeight))
      } catch {
        guard skips, state.reader.undecodableFrames.contains(index) else { return .failure(error) }
        return .success(
          RawFrameSequence.Element(
            index: index, isUndecodable: true, bytes: nil, width: 0, height: 0))
      }
    }
  }
}
