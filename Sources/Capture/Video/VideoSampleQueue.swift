// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The frames of one camera that wait in a ring for whoever takes them.
final class VideoSampleQueue: SampleQueue {
  let ring: VideoSampleRing
  private let pool: BufferPool
  private let format: FormatDescription
  /// How long a frame lasts.
  private let duration: MediaTime
  private let options: DataSink.Options
  private let counters: DataOutputCounters
  private let drops: EventHub<DroppedFrame>
  private let converters = FrameConverters()

  init(
    _ ring: VideoSampleRing, from input: DeviceInput, _ options: DataSink.Options,
    _ counters: DataOutputCounters, drops: EventHub<DroppedFrame>
  ) {
    self.ring = ring
    // As they are now: the device may be opened anew in another mode.
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
    if let entry = ring.pop(), case .dropped(let reason) = entry.passage { tell(entry, reason) }
    return true
  }

  /// Gives the oldest frame back where more is kept than may be: others have joined, and are to
  /// get their share.
  func dropSurplus() -> Bool {
    guard ring.count > 0, !ring.beginsWithNote, options.isOverShare, let entry = ring.pop()
    else { return false }
    if case .held(let heldBuffer) = entry.passage { giveBack(heldBuffer) }
    counters.note(.outOfBuffers)
    tell(entry, .outOfBuffers)
    return true
  }

  private func tell(_ entry: VideoSampleRing.Entry, _ reason: FrameDropReason) {
    drops.send(
      DroppedFrame(
        presentationTimeStamp: MediaTime(microseconds: entry.observation.microseconds),
        sequence: entry.observation.stamp.sequence, reason: reason))
  }

  func take() -> SampleBuffer? {
    guard let entry = ring.pop(), case .held(let heldBuffer) = entry.passage else { return nil }
    options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return SampleBuffer(
      entry.observation, entry.exposure, heldBuffer, of: pool, format: format, duration: duration,
      options: options,
      converters: converters)
  }

  func drain() {
    while let entry = ring.pop() {
      if case .held(let heldBuffer) = entry.passage { giveBack(heldBuffer) }
    }
  }

  private func giveBack(_ heldBuffer: BufferPool.HeldBuffer) {
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    options.waiting.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }
}
