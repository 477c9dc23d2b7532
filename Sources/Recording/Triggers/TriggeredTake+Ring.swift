// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore

extension TriggeredTake {
  /// Reports a trigger for which no clip is recorded.
  func refuse(_ trigger: CaptureTrigger, _ reason: String) {
    triggers.clipDidEnd?(
      trigger, .failure(MediaError(.nothingStored, "no clip was recorded: \(reason)")))
  }

  /// The size, in bytes and in frames, of the ring that keeps the latest frames.
  func ringSize() -> (bytes: Int, frames: Int) {
    let rate = input.negotiatedFrameRate.doubleValue
    // The ring holds two seconds of frames more than the triggers need, so that the disk may stall
    // for this time. Some more space is added because the oldest frames are dropped before the ring
    // is completely full. A negative `preDuration` means that clips start after their triggers. It
    // counts as zero here, because only triggers that are reported late need earlier frames then.
    let kept = max(0, triggers.preDuration.doubleValue) + Double(Self.latestNews) / 1_000_000
    let frames = (kept + 2) * rate / FrameQueue.nearlyFull + 16
    let bytes = min(frames * Double(input.maximumByteCount), 1e15)
    let limit = triggers.memoryLimit ?? RecordingMemory.availableBytes() / 2
    let least = 4 * (input.maximumByteCount + 4_096)
    // A camera may exceed its nominal rate, so the ring has records for twice as many frames.
    return (max(least, min(Int(bytes), limit)), Int(min(frames * 2, 1e7)) + 1_024)
  }

  /// Records the outcome of the frames that have arrived since the last call.
  ///
  /// A frame counts as evicted until a clip contains it.
  func noteArrivals(_ queue: FrameQueue, _ state: inout Progress) {
    var number = queue.startNumber + state.outcomes.count
    while let frame = queue[number] {
      let outcome = frame.observation.outcome
      state.outcomes.append(outcome == .taken ? .evicted : outcome)
      if needsKeyFrames { state.keyFrames.append(frame.isKeyFrame) }
      number += 1
    }
  }

  /// Releases the frames that no current or future clip needs.
  func evict(from queue: FrameQueue, newest: Int64, _ state: inout Progress) {
    let limit = min(
      state.clips.map(\.number).min() ?? queue.endNumber,
      queue.startNumber + state.outcomes.count)
    let kept =
      (try? triggers.preDuration.converted(to: 1_000_000, rounding: .towardPositiveInfinity).value)
      ?? .max / 4
    let oldest = newest &- kept &- Self.latestNews
    let first = queue.startNumber
    var number = first
    var keyIndex = number
    while number < limit, let frame = queue[number], frame.observation.microseconds < oldest {
      if needsKeyFrames, state.keyFrames[number - first] { keyIndex = number }
      number += 1
    }
    if needsKeyFrames {
      let isKeyFrame =
        state.keyFrames.indices.contains(number - first)
        && state.keyFrames[number - first]
      number = isKeyFrame ? number : keyIndex
    }
    release(before: number, of: queue, &state)
    // If the ring is nearly full, the oldest frames are dropped, because otherwise the next
    // arriving frames would be lost.
    while number < limit, queue.isNearlyFull, let frame = queue[number] {
      let held = newest &- frame.observation.microseconds
      if held < kept { state.shortened = min(state.shortened ?? .max, held) }
      number += 1
      release(before: number, of: queue, &state)
    }
  }

  func release(before end: Int, of queue: FrameQueue, _ state: inout Progress) {
    let first = queue.startNumber
    noteArrivals(queue, &state)
    guard end > first else { return }
    for number in first..<end {
      guard let frame = queue[number] else { continue }
      var observation = frame.observation
      observation.outcome = state.outcomes[number - first]
      state.account.record(observation)
    }
    state.outcomes.removeFirst(end - first)
    if needsKeyFrames { state.keyFrames.removeFirst(end - first) }
    queue.release(before: end)
  }
}
