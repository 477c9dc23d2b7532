// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Writes the frames around one trigger from the ring to a file.
final class Clip {
  let trigger: CaptureTrigger
  let path: String
  /// The time range of the clip's frames, in microseconds of the camera's clock.
  let range: Range<Int64>
  /// The number of the next frame to process in the ring.
  ///
  /// The ring numbers its frames in order of arrival.
  private(set) var number: Int
  /// The first frame after the clip.
  ///
  /// Nil until it has arrived.
  private var next: FrameObservation?
  private var writer: TakeFileWriter?
  /// Whether frames may depend on previous frames for decoding.
  private let needsKeyFrames: Bool
  private var isBegun = false

  init(
    of trigger: CaptureTrigger, range: Range<Int64>, writer: consuming TakeFileWriter, path: String,
    from queue: FrameQueue, needsKeyFrames: Bool
  ) {
    self.needsKeyFrames = needsKeyFrames
    self.trigger = trigger
    self.range = range
    self.path = path
    self.writer = consume writer
    number = queue.startNumber
    while let frame = queue[number], frame.observation.microseconds < range.lowerBound {
      number += 1
    }
  }

  /// Whether the clip needs no more frames: it has all of them, reached a limit, or failed.
  var isOver: Bool { next != nil || writer?.isOver ?? true }

  /// The reason to end the whole capture if the disk cannot store more of this clip, otherwise nil.
  var reasonToEndAll: StopReason? { writer?.reasonToEndAll }

  /// The number of frames in the clip's file so far.
  var storedCount: Int64 { writer?.storedCount ?? 0 }

  /// Marks a trigger in the file if the clip contains its instant.
  func mark(_ trigger: CaptureTrigger) {
    if range.contains(trigger.microseconds) { writer?.mark(trigger) }
  }

  /// The current progress of the clip's recording.
  func progress(queueFill: Double) -> MovieFileOutput.Progress? {
    writer?.progress(queueFill: queueFill)
  }

  /// Stores up to `count` frames whose number in the ring is below `end`.
  ///
  /// - Returns: The ring numbers of the processed frames.
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
        if !frames.isEmpty { writer?.lead(in: frames, to: frame.observation) }
      }
      // The clock may have jumped backward, so each frame is checked against the start of the clip.
      if time >= range.lowerBound, let outcome = writer?.store(frame) { note(number, outcome) }
      number += 1
    }
    return first..<number
  }

  /// The lead-in of a clip: the frames from the last key frame up to, but not including, the clip's
  /// first frame.
  ///
  /// Empty if the first frame itself is a key frame, or if the ring no longer contains an earlier
  /// key frame.
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

  /// Closes the file and the frame account of the clip.
  ///
  /// - Parameters:
  ///   - end: The end of the capture, if it ended before the clip was complete.
  ///   - verification: The rate verification before the capture.
  /// - Returns: The report of the clip.
  /// - Throws: `MediaError` if no frame was stored.
  func finish(_ end: CaptureEnd?, _ verification: FrameRateVerification?) throws(MediaError)
    -> RecordingReport
  {
    var own = end ?? CaptureEnd(stopReason: .duration)
    if let next {
      own = CaptureEnd(stopReason: .duration)
      own.frames.next = next
      own.frames.microseconds = range.upperBound
    }
    guard var writer = writer.take() else { return try finished() }
    writer.close(own)
    return try writer.finish(verification)
  }

  private func finished() throws(MediaError) -> RecordingReport {
    throw MediaError(.nothingStored, "\(path) is finished already", recovery: "")
  }
}

extension QueuedFrame {
  /// Whether the frame is an H.264 key frame.
  var isKeyFrame: Bool { observation.outcome == .taken && AnnexB.holdsKeyFrame(bytes) }
}
