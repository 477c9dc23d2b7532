// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// A clip around a trigger, on its way from the ring into its file.
final class Clip {
  let trigger: CaptureTrigger
  let path: String
  /// The times of its frames, in microseconds of the camera's clock.
  let range: Range<Int64>
  /// The frame of the ring that comes next.
  private(set) var number: Int
  /// The first frame after the clip; nil while it has not come.
  private var next: FrameObservation?
  private var take: TakeRecorder?
  /// Whether a frame may build on those before it.
  private let needsKeyFrames: Bool
  private var isBegun = false

  init(
    of trigger: CaptureTrigger, range: Range<Int64>, take: consuming TakeRecorder, path: String,
    from queue: FrameQueue, needsKeyFrames: Bool
  ) {
    self.needsKeyFrames = needsKeyFrames
    self.trigger = trigger
    self.range = range
    self.path = path
    self.take = consume take
    number = queue.startNumber
    while let frame = queue[number], frame.observation.microseconds < range.lowerBound {
      number += 1
    }
  }

  /// Whether no more frames belong to it.
  var isOver: Bool { next != nil || take?.limit != nil || take?.failure != nil }

  /// Why nothing more can be stored on this disk; nil where something can.
  var reasonToEndAll: StopReason? {
    if let failure = take?.failure { return TakeRecorder.reason(to: failure) }
    return take?.limit?.reason == .minFree ? .minFree : nil
  }

  /// Frames in its file so far.
  var storedCount: Int64 { take?.storedCount ?? 0 }

  /// What may be told now.
  func progress(queueFill: Double) -> MovieFileOutput.Progress? {
    take?.progress(queueFill: queueFill)
  }

  /// Stores some of the frames that come before a place of the ring.
  ///
  /// - Returns: The places that were looked at.
  func advance(
    _ queue: FrameQueue, before end: Int, atMost count: Int,
    note: (_ number: Int, FrameOutcome) -> Void
  ) -> Range<Int> {
    let first = number
    while !isOver, number < min(end, first + count), let frame = queue[number] {
      let time = frame.observation.microseconds
      guard time < range.upperBound else {
        next = frame.observation
        break
      }
      if !isBegun, time >= range.lowerBound, frame.observation.outcome == .taken {
        isBegun = true
        let frames = Self.leadIn(to: number, of: queue, needsKeyFrames)
        if !frames.isEmpty { take?.lead(in: frames, to: frame.observation) }
      }
      // A clock that jumped back is no reason to take frames from before the clip.
      if time >= range.lowerBound, let outcome = take?.enter(frame) { note(number, outcome) }
      number += 1
    }
    return first..<number
  }

  /// The frames before one, back to the last key frame; none where it is one itself, or where
  /// the ring has none any more.
  private static func leadIn(
    to number: Int, of queue: FrameQueue, _ needsKeyFrames: Bool
  ) -> [QueuedFrame] {
    guard needsKeyFrames, queue[number]?.isKeyFrame == false else { return [] }
    var frames: [QueuedFrame] = []
    for number in (queue.startNumber..<number).reversed() {
      guard let frame = queue[number], frame.observation.outcome == .taken else { continue }
      frames.insert(frame, at: 0)
      if frame.isKeyFrame { return frames }
    }
    return []
  }

  /// Closes the clip's file and account.
  ///
  /// - Parameters:
  ///   - end: Why the capture ended, where it did before the clip was over.
  ///   - proof: What was measured before the capture.
  /// - Returns: What became of it.
  /// - Throws: `MediaError` when there was nothing to store.
  func finish(_ end: CaptureEnd?, _ proof: FrameRateVerification?) throws(MediaError)
    -> RecordingReport
  {
    var own = end ?? CaptureEnd(stopReason: .duration)
    if let next {
      own = CaptureEnd(stopReason: .duration)
      own.frames.next = next
      own.frames.microseconds = range.upperBound
    }
    guard let take = take.take() else { return try finished() }
    return try take.finish(own, proof)
  }

  private func finished() throws(MediaError) -> RecordingReport {
    throw MediaError(.nothingStored, "\(path) is finished already", recovery: "")
  }
}

extension QueuedFrame {
  /// Whether an H.264 frame can be decoded without others.
  var isKeyFrame: Bool { observation.outcome == .taken && AnnexB.holdsKeyFrame(bytes) }
}
