// SPDX-License-Identifier: Apache-2.0

/// A range of frames to decode in one pass.
struct DecodeJob: Sendable {
  /// A decoder's purpose.
  enum Purpose: Hashable, Sendable {
    /// Many frames in order, with several threads.
    case playing
    /// A single frame, with one thread, which returns it soonest.
    case scrubbing
  }

  let purpose: Purpose
  let asset: Int
  /// The wanted frames of the asset, in ascending order; not empty.
  let frames: [Int]
  /// The number of frames before the first wanted one that may be kept if they are decoded anyway.
  ///
  /// In reverse playback all of them are, and otherwise at most ``PlayerModel/maximumNeighbors``.
  let neighborCount: Int
  /// The number of the position that needs the frames; see ``PlayerCore``.
  let generation: Int

  var range: ClosedRange<Int> { (frames.first ?? 0)...(frames.last ?? 0) }
  var keys: [FrameKey] { frames.map { FrameKey(asset: asset, frame: $0) } }
}
