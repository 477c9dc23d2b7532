// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
import OvercrankMediaCore

/// Makes the output frames of an export at exact times, with synthesized frames between captured
/// frames where possible.
///
/// The frame before a scene cut is held, and not morphed into the next scene. Repeated frames are
/// dropped, and the time until the next frame that is not repeated is interpolated. If two frames
/// are not connected, such as next to a frozen frame, the earlier frame is held.
package final class FrameSequenceInterpolator {
  /// One or more consecutive output frames with the same image.
  package struct Output {
    package let image: MediaFrame
    /// The number of consecutive output frames with this image.
    package let count: Int64
    /// The confidence of a synthesized frame, from 0 to 1; nil for a captured frame.
    package let confidence: Float?
    /// The position of the image among the captured frames.
    package let position: Position
    /// Whether the image is the mean of several.
    package var isMixed = false

    package init(image: MediaFrame, count: Int64, confidence: Float?, position: Position) {
      (self.image, self.count, self.confidence) = (image, count, confidence)
      self.position = position
    }
  }

  /// The position of an output frame among the captured frames.
  package struct Position {
    /// The numbers of the captured frames before and after the output frame; see ``Input/number``.
    package let older: Int
    package let newer: Int
    /// The position between the two frames, from 0 to 1; nil for a captured frame.
    package let share: Double?

    /// The same position for a synthesized frame: a ``share`` of nil becomes 0.
    package var synthesized: Position { Position(older, newer, share ?? 0) }

    private init(_ older: Int, _ newer: Int, _ share: Double?) {
      (self.older, self.newer, self.share) = (older, newer, share)
    }

    fileprivate init(_ number: Int) { self.init(number, number, nil) }

    fileprivate init(between older: Input, _ newer: Input, at time: Double) {
      self.init(
        older.number, newer.number, (time - older.time) / (newer.time - older.time))
    }
  }

  /// A captured frame.
  ///
  /// Times are in seconds, on any clock that is continuous for all connected frames.
  package struct Input {
    package let image: MediaFrame
    /// The time at which the frame starts, in seconds.
    package let time: Double
    /// True if motion may be followed from the previous frame to this frame, false at jumps.
    package let isConnected: Bool
    /// The times of the output frames from this frame up to the next captured frame, in ascending
    /// order.
    package let instants: [Double]
    /// A number that identifies the frame, chosen by the caller.
    package let number: Int

    package init(
      image: MediaFrame, time: Double, isConnected: Bool, instants: [Double], number: Int = 0
    ) {
      (self.number, self.image, self.time, self.isConnected) = (number, image, time, isConnected)
      self.instants = instants
    }
  }

  /// An output frame shows a captured frame if their times are closer than this fraction of the
  /// time between two captured frames.
  package static let tolerance: Float = 1 / 256

  private let interpolator: FrameInterpolator
  private let fallback: LowConfidencePolicy
  private let threshold: Float
  private var older: Input?
  /// The times of output frames after `older` that cannot be made before the next frame that is not
  /// repeated.
  private var waiting: [Double] = []
  /// True if a repeated frame after ``older`` is loaded; the next frame then replaces the repeated
  /// frame.
  private var hasNewer = false
  private var repetitions = RepeatedFrameDetector()
  /// The number of repeated frames that were dropped.
  package private(set) var droppedCount: Int64 = 0

  /// Creates an empty sequence.
  ///
  /// - Parameters:
  ///   - interpolator: Synthesizes the frames between captured frames.
  ///   - fallback: The policy for frames whose confidence is below the threshold.
  ///   - threshold: The lowest confidence of a synthesized frame, from 0 to 1.
  package init(
    _ interpolator: FrameInterpolator, fallback: LowConfidencePolicy = .flow,
    threshold: Float = 0.35
  ) {
    (self.interpolator, self.fallback, self.threshold) = (interpolator, fallback, threshold)
  }

  /// Adds the next captured frame.
  ///
  /// - Parameters:
  ///   - next: The frame; its time is not before that of the previous frame.
  ///   - emit: Receives the output frames that are known now, in order; returns false to stop.
  /// - Returns: False if `emit` returned false, and true otherwise.
  /// - Throws: `MediaError` for a frame of another size or format, `CallFailure` if memory cannot be
  ///   allocated, and any error of `emit`.
  package func add(_ next: Input, _ emit: (Output) throws -> Bool) throws -> Bool {
    guard let older, next.isConnected, next.time > older.time,
      let comparison = try interpolator.load(next.image, replacesNewer: hasNewer)
    else {
      guard try finish(emit) else { return false }
      interpolator.reset()
      try interpolator.load(next.image)
      (hasNewer, repetitions) = (false, RepeatedFrameDetector())
      start(next)
      return true
    }
    if repetitions.isRepetition(comparison) {
      hasNewer = true
      droppedCount += 1
      waiting += next.instants
      return true
    }
    guard try make(older, next, emit) else { return false }
    hasNewer = false
    start(next)
    return true
  }

  /// Emits the last output frames.
  package func finish(_ emit: (Output) throws -> Bool) rethrows -> Bool {
    guard let older else { return true }
    let rest = waiting
    waiting = []
    return try hold(rest, of: older, emit)
  }

  private func start(_ next: Input) {
    (older, waiting) = (next, next.instants)
  }

  private func make(
    _ older: Input, _ newer: Input, _ emit: (Output) throws -> Bool
  ) throws -> Bool {
    // The motion is computed even if no output frame needs it, because it updates the history of
    // static pixels.
    let comparison = interpolator.findMotion()
    if comparison.isCut { repetitions.forgetDifference() }
    let isLow = comparison.confidence < threshold
    guard !comparison.isCut, !isLow || fallback != .hold else {
      return try hold(waiting, of: older, emit)
    }
    for time in waiting {
      let instant = Float((time - older.time) / (newer.time - older.time))
      // The times of frames are rounded to ticks, so an output frame that is this close to a
      // captured frame shows the captured frame.
      guard instant > Self.tolerance, instant < 1 - Self.tolerance else {
        guard try hold([time], of: instant > 0.5 ? newer : older, emit) else { return false }
        continue
      }
      let image =
        isLow && fallback == .blend
        ? try interpolator.blend(at: instant) : try interpolator.frame(at: instant)
      let output = Output(
        image: image, count: 1, confidence: comparison.confidence,
        position: Position(between: older, newer, at: time))
      guard try emit(output) else { return false }
    }
    return true
  }

  private func hold(
    _ times: [Double], of frame: Input, _ emit: (Output) throws -> Bool
  ) rethrows -> Bool {
    guard !times.isEmpty else { return true }
    return try emit(
      Output(
        image: frame.image, count: Int64(times.count), confidence: nil,
        position: Position(frame.number)))
  }
}
