// SPDX-License-Identifier: Apache-2.0

/// A range of frames to decode in one pass.
struct DecodeJob: Sendable {
  /// The purpose of a decoder.
  enum Purpose: Hashable, Sendable {
    /// Decoding many frames in order, with several threads.
    case playing
    /// Decoding a single frame, with one thread: this has the least delay.
    case scrubbing
  }

  let purpose: Purpose
  let asset: Int
  /// The indices of the wanted frames of the asset, in ascending order; not empty.
  let frames: [Int]
  /// The number of frames before the first wanted frame that may be kept, if decoding passes them
  /// anyway.
  ///
  /// In reverse playback all of these frames are kept, otherwise at most
  /// a dozen.
  let neighborCount: Int
  /// The generation of the ``DecodeSchedule`` when the job was made.
  let generation: Int

  var range: ClosedRange<Int> { (frames.first ?? 0)...(frames.last ?? 0) }
  var keys: [FrameKey] { frames.map { FrameKey(asset: asset, frame: $0) } }
}
