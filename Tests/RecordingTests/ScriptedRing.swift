// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankFrameAccounting
import Synchronization

@testable import OvercrankCapture
@testable import OvercrankRecording

/// A thread that pushes frames into a ring buffer, a few each time the writer asks for triggers.
///
/// So a trigger is always known soon after its time, and the result does not depend on the clock.
final class ScriptedRing: Sendable {
  let queue: FrameQueue
  private let frames: [FrameObservation]
  private let images: [[UInt8]]
  private let triggers: [CaptureTrigger]
  private let requested = DispatchSemaphore(value: 0)
  private let arrived = DispatchSemaphore(value: 0)
  private let state = Mutex((pushed: 0, reported: 0))

  init(
    _ queue: FrameQueue, _ frames: [FrameObservation], of images: [[UInt8]],
    triggers: [CaptureTrigger]
  ) {
    self.queue = queue
    self.frames = frames
    self.images = images
    self.triggers = triggers
  }

  /// Pushes all frames.
  ///
  /// It is called on a separate thread.
  func push() {
    for (number, frame) in frames.enumerated() {
      if number % 8 == 0 { requested.wait() }
      let image = images[Int(frame.sequence) % images.count]
      let isPushed = image.withUnsafeBytes { bytes in
        queue.push(
          QueuedFrame(
            observation: frame,
            bytes: frame.outcome == .taken ? bytes : UnsafeRawBufferPointer(start: nil, count: 0)))
      }
      if !isPushed { refusals.wrappingAdd(1, ordering: .relaxed) }
      if number % 8 == 7 || number == frames.count - 1 {
        state.withLock { $0.pushed = number + 1 }
        arrived.signal()
      }
    }
    queue.close()
  }

  /// The number of frames that the ring buffer refused because it was full.
  let refusals = Atomic<Int>(0)

  /// Returns the triggers up to the newest frame, and lets more frames follow.
  func takeTriggers() -> [CaptureTrigger] {
    let pushed = state.withLock { $0.pushed }
    if pushed < frames.count {
      requested.signal()
      arrived.wait()
    }
    return state.withLock { state in
      let now = state.pushed == frames.count ? .max : frames[state.pushed - 1].microseconds
      let first = state.reported
      while state.reported < triggers.count, triggers[state.reported].microseconds <= now {
        state.reported += 1
      }
      return Array(triggers[first..<state.reported])
    }
  }
}
