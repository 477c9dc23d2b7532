// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The sink of a metadata output.
///
/// On the capture thread it only keeps the newest frame for the worker that searches.
final class MetadataSink: FrameSink {
  /// The position of a frame in the stream.
  struct Position {
    /// The number of frames since the first frame of the stream, according to the driver's counter.
    let index: Int64
    /// The time of the first frame of the stream, in microseconds.
    let start: Int64
  }

  typealias Waiting = LatestFrameSlot<Position>.Frame

  let pool: BufferPool
  let format: FormatDescription
  let frameDuration: MediaTime
  let gate: ConnectionGate
  /// Whether the source waits until the worker has taken each frame.
  let isWaitedFor: Bool
  private let slot: LatestFrameSlot<Position>
  private let wake: DispatchSemaphore
  // Used only by the capture thread.
  private nonisolated(unsafe) var lastSequence: UInt32?
  private nonisolated(unsafe) var index: Int64 = 0
  private nonisolated(unsafe) var start: Int64?

  init(
    _ camera: DeviceInput, _ connection: CaptureConnection, _ counters: DataOutputCounters,
    wake: DispatchSemaphore
  ) {
    pool = camera.pool
    slot = LatestFrameSlot(of: camera.pool, counters)
    format = FormatDescription(camera.delivery)
    frameDuration = camera.negotiatedFrameRate.frameDuration
    gate = connection.gate
    isWaitedFor = camera.pool.driver.waitsForTakers
    self.wake = wake
  }

  // MARK: - The capture thread

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    if let lastSequence {
      let step = frame.observation.sequence &- lastSequence
      // If the driver's frame counter went backwards, the counter was restarted.
      index += step < 1 << 31 ? Int64(step) : 1
    }
    lastSequence = frame.observation.sequence
    let start = start ?? frame.observation.microseconds
    self.start = start
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    if slot.put(&frame, Position(index: index, start: start)) != .counted { wake.signal() }
    return nil
  }

  /// Whether the sink can take a frame; until it can, a source that waits for its consumers waits
  /// for the worker.
  func hasSpace(for byteCount: Int) -> Bool {
    !gate.isOpen.load(ordering: .relaxed) || slot.isClosed || slot.hasSpace
  }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) { slot.allow(keeping: count) }

  /// Does nothing, because the last frame is still searched after the capture ends.
  func end(_ end: CaptureEnd) {}

  // MARK: - The worker

  /// Releases the waiting frame, and keeps no more frames.
  func retire() { slot.close() }

  /// Whether a frame waits for the search or is being searched.
  var isBusy: Bool { slot.isBusy }

  /// Calls a closure with the waiting frame, and then releases the frame's buffer.
  ///
  /// - Returns: Whether a frame was waiting.
  func withNext(_ body: (Waiting, UnsafeRawBufferPointer) -> Void) -> Bool {
    slot.withNext(body) != nil
  }
}
