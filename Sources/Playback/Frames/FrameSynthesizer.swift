// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming

/// A frame to synthesize between two captured ones.
struct SynthesisJob: Sendable {
  let older: FrameKey
  let newer: FrameKey
  let olderImage: MediaFrame
  let newerImage: MediaFrame
  /// The position between the two frames, from 0 to 1.
  let share: Double
  let isFast: Bool
}

/// A maker of the frames between captured ones for a player.
///
/// Only the synthesizing thread uses it.
final class FrameSynthesizer {
  private var interpolator: FrameInterpolator?
  /// The frames that are loaded; nil for none.
  private var loaded: (older: FrameKey, newer: FrameKey, image: MediaFrame)?
  private var isCut = false
  private var isFast = false

  /// Returns the frame of a job; nil if motion cannot be followed from one frame to the other.
  ///
  /// So it is at a scene cut, in a pixel format other than planar gray and YCbCr, and if memory is
  /// short.
  func image(of job: SynthesisJob) -> MediaFrame? {
    do {
      guard let interpolator = try load(job), !isCut else { return nil }
      return try interpolator.frame(at: Float(job.share))
    } catch { return nil }
  }

  /// Loads the two frames of a job and finds the motion between them.
  private func load(_ job: SynthesisJob) throws(MediaError) -> FrameInterpolator? {
    if let loaded, loaded.older == job.older, loaded.newer == job.newer, isFast == job.isFast {
      return interpolator
    }
    let known = loaded
    loaded = nil
    let isUsable =
      isFast == job.isFast && known.map { Self.isAlike($0.image, job.newerImage) } ?? false
    if !isUsable {
      isFast = job.isFast
      // One processor is left to the screen and the decoder.
      interpolator = FrameInterpolator(
        width: job.newerImage.width, height: job.newerImage.height,
        pixelFormat: job.newerImage.pixelFormat, isFast: isFast,
        threadCount: max(1, Processors.count - 1))
    }
    guard let interpolator else { return nil }
    if !isUsable || known?.newer != job.older {
      interpolator.reset()
      try interpolator.load(job.olderImage)
    }
    try interpolator.load(job.newerImage)
    isCut = interpolator.findMotion().isCut
    loaded = (job.older, job.newer, job.newerImage)
    return interpolator
  }

  private static func isAlike(_ one: MediaFrame, _ other: MediaFrame) -> Bool {
    one.width == other.width && one.height == other.height && one.pixelFormat == other.pixelFormat
  }
}
