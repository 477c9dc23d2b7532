// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming

/// A request to synthesize a frame between two captured frames.
struct SynthesisJob: Sendable {
  /// A captured frame.
  struct Frame: Sendable {
    let key: FrameKey
    let image: MediaFrame
  }

  /// Up to two consecutive decoded frames before `older`, in presentation order.
  let previous: [Frame]
  let older: Frame
  let newer: Frame
  /// The position of the new frame between `older` and `newer`, from 0 to 1.
  let share: Double
  let isFast: Bool
}

/// The result of synthesizing a frame.
enum SynthesisResult: Sendable {
  case image(MediaFrame)
  /// No motion can be followed from the older frame to the newer one, as at a cut.
  case held
  /// This frame of the job repeats the frame before it, so it takes no part in the motion.
  case repetition(FrameKey)
}

/// Synthesizes frames between captured frames for a player.
///
/// Only the player's synthesis thread uses it.
final class FrameSynthesizer {
  /// The two frames that the interpolator has loaded.
  private struct Loaded {
    let older: FrameKey
    let newer: SynthesisJob.Frame
    /// Whether the newer frame repeats the older one.
    let isRepetition: Bool
  }

  private var interpolator: FrameInterpolator?
  private var loaded: Loaded?
  private var repetitions = RepeatedFrameDetector()
  private var isCut = false
  private var isFast = false

  /// Returns the synthesized frame of a job, or the reason why there is none.
  ///
  /// The reason is `held` at a scene cut, for a pixel format other than planar gray and YCbCr, and
  /// if memory is short.
  func result(of job: SynthesisJob) -> SynthesisResult {
    do {
      if let repetition = try load(job) { return .repetition(repetition) }
      guard let interpolator, !isCut else { return .held }
      return .image(try interpolator.frame(at: Float(job.share)))
    } catch { return .held }
  }

  /// Loads the two frames of a job and finds the motion between them.
  ///
  /// - Returns: The first frame of the job that repeats the frame before it; nil if no frame does.
  private func load(_ job: SynthesisJob) throws(MediaError) -> FrameKey? {
    let known = loaded.flatMap { isUsable($0, for: job) ? $0 : nil }
    var frames = [job.newer]
    var replacesNewer = false
    switch known {
    case let known? where known.older == job.older.key && known.isRepetition:
      replacesNewer = true
    case let known? where known.older == job.older.key && known.newer.key == job.newer.key:
      return nil
    case let known? where known.newer.key == job.older.key && !known.isRepetition: break
    default:
      restart(job, keepsInterpolator: known != nil)
      frames = job.previous + [job.older, job.newer]
    }
    loaded = nil
    guard let interpolator else { return nil }
    for frame in frames {
      let comparison = try interpolator.load(frame.image, replacesNewer: replacesNewer)
      guard let comparison, repetitions.isRepetition(comparison) else { continue }
      if frame.key == job.newer.key {
        loaded = Loaded(older: job.older.key, newer: frame, isRepetition: true)
      }
      return frame.key
    }
    isCut = interpolator.findMotion().isCut
    if isCut { repetitions.forgetDifference() }
    loaded = Loaded(older: job.older.key, newer: job.newer, isRepetition: false)
    return nil
  }

  private func restart(_ job: SynthesisJob, keepsInterpolator: Bool) {
    repetitions = RepeatedFrameDetector()
    if keepsInterpolator {
      interpolator?.reset()
      return
    }
    isFast = job.isFast
    // One processor is left for the display and the decoder.
    interpolator = FrameInterpolator(
      width: job.newer.image.width, height: job.newer.image.height,
      pixelFormat: job.newer.image.pixelFormat, isFast: isFast,
      threadCount: max(1, Processors.count - 1))
  }

  /// Returns true if the interpolator can load the frames of a job after those it has loaded.
  private func isUsable(_ loaded: Loaded, for job: SynthesisJob) -> Bool {
    let (one, other) = (loaded.newer.image, job.newer.image)
    return isFast == job.isFast && one.width == other.width && one.height == other.height
      && one.pixelFormat == other.pixelFormat
  }
}
