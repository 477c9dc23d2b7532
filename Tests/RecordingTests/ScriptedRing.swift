// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankFrameAccounting
import Synchronization

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Frames that are pushed into a ring by a thread of their own, a few each time that triggers are
/// asked for; so a trigger is known soon after its instant, and nothing depends on the clock.
final class ScriptedRing: Sendable {
  let queue: FrameQueue
  private let frames: [FrameObservation]
  private let pictures: [[UInt8]]
  private let triggers: [CaptureTrigger]
  private let wanted = DispatchSemaphore(value: 0)
  private let arrived = DispatchSemaphore(value: 0)
  private let state = Mutex((pushed: 0, told: 0))

  init(
    _ queue: FrameQueue, _ frames: [FrameObservation], of pictures: [[UInt8]],
    triggers: [CaptureTrigger]
  ) {
    self.queue = queue
    self.frames = frames
    self.pictures = pictures
    self.triggers = triggers
  }

  /// On a thread of its own: pushes until all frames are there.
  func push() {
    for (number, frame) in frames.enumerated() {
      if number % 8 == 0 { wanted.wait() }
      let image = pictures[Int(frame.sequence) % pictures.count]
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

  /// Frames that the ring had no room for.
  let refusals = Atomic<Int>(0)

  /// The triggers until the newest frame, after which more come.
  func takeTriggers() -> [CaptureTrigger] {
    let pushed = state.withLock { $0.pushed }
    if pushed < frames.count {
      wanted.signal()
      arrived.wait()
    }
    return state.withLock { state in
      let now = state.pushed == frames.count ? .max : frames[state.pushed - 1].microseconds
      let first = state.told
      while state.told < triggers.count, triggers[state.told].microseconds <= now {
        state.told += 1
      }
      return Array(triggers[first..<state.told])
    }
  }
}
