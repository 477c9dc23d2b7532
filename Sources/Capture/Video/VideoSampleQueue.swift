// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The frames of one camera that wait in a ring for a consumer.
final class VideoSampleQueue: SampleQueue {
  let ring: VideoSampleRing
  private let pool: BufferPool
  private let format: FormatDescription
  /// The frame duration.
  private let duration: MediaTime
  private let options: DataSink.Options
  private let counters: DataOutputCounters
  private let drops: EventHub<DroppedFrame>
  private let converters = ConverterPool()

  init(
    _ ring: VideoSampleRing, from input: DeviceInput, _ options: DataSink.Options,
    _ counters: DataOutputCounters, drops: EventHub<DroppedFrame>
  ) {
    self.ring = ring
    // The pool, the format and the duration are stored now, because the input may later reopen the
    // device in another mode.
    pool = input.pool
    format = FormatDescription(input.delivery)
    duration = input.negotiatedFrameRate.frameDuration
    self.options = options
    self.counters = counters
    self.drops = drops
  }

  var count: Int { ring.count }

  func passNoteOn() -> Bool {
    guard ring.beginsWithNote else { return false }
    if case .dropped(let reason, let observation)? = ring.pop() { report(observation, reason) }
    return true
  }

  /// Drops the oldest frame if the output holds more than its share of the buffers.
  ///
  /// That happens when another output joins, because the share then becomes smaller.
  func dropSurplus() -> Bool {
    guard ring.count > 0, !ring.beginsWithNote, options.isOverShare,
      case .held(let heldBuffer, let observation, _)? = ring.pop()
    else { return false }
    giveBack(heldBuffer)
    counters.note(.outOfBuffers)
    report(observation, .outOfBuffers)
    return true
  }

  private func report(_ frame: FrameObservation, _ reason: FrameDropReason) {
    drops.send(
      DroppedFrame(
        presentationTimeStamp: MediaTime(microseconds: frame.microseconds),
        sequence: frame.sequence, reason: reason))
  }

  func take() -> SampleBuffer? {
    guard case .held(let heldBuffer, let observation, let exposure)? = ring.pop() else {
      return nil
    }
    options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return SampleBuffer(
      observation, exposure, heldBuffer, of: pool, format: format, duration: duration,
      options: options, converters: converters)
  }

  /// Removes and returns the oldest frame, in a form that needs no allocation.
  ///
  /// Returns nil if the oldest entry is a note of a dropped frame or the queue is empty.
  func takeFrame() -> CapturedFrame? {
    guard case .held(let heldBuffer, let observation, let exposure)? = ring.pop() else {
      return nil
    }
    options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return CapturedFrame(
      observation, exposure, heldBuffer, of: pool, format: format, duration: duration,
      options: options)
  }

  func drain() {
    while let entry = ring.pop() {
      if case .held(let heldBuffer, _, _) = entry { giveBack(heldBuffer) }
    }
  }

  private func giveBack(_ heldBuffer: BufferPool.HeldBuffer) {
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    options.waiting.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }
}
