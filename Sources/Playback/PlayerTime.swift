// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
public import OvercrankMediaCore

/// A position of a player, on three time axes.
public struct PlayerTime: Hashable, Sendable {
  /// A position in a source file.
  public struct Source: Hashable, Sendable {
    /// The path of the file.
    public let path: String
    /// The source time in seconds, exact.
    public let seconds: Rational
    /// The index of the frame on screen, from 0 in presentation order; nil without video.
    public let frameIndex: Int?
    /// The number of frames in the file.
    public let frameCount: Int
  }

  /// The composition time in seconds, exact.
  public let composition: Rational
  /// The position in the source; nil in a gap.
  public let source: Source?
  /// The capture time of the frame on screen.
  ///
  /// If the file stores capture times, this is the time on the driver's clock. Otherwise it is the
  /// time since the first frame, computed from the file's capture rate. Nil if the file has
  /// neither.
  public let capture: MediaTime?
  /// The speed of the segment at this position, in source seconds per composition second.
  ///
  /// Negative in a reversed segment, zero for a frozen frame, nil in a gap.
  public let segmentSpeed: Rational?
}

extension PlaybackTimeline {
  /// Returns a position on all time axes.
  func time(at position: TransportRun.Position) -> PlayerTime {
    let source = source(at: position.time, before: position.isBackward)
    let frame = frame(at: position.time, before: position.isBackward)
    return PlayerTime(
      composition: position.time,
      source: source.map { asset, seconds in
        let video = assets[asset].asset.videoTrack
        return PlayerTime.Source(
          path: assets[asset].asset.path, seconds: seconds, frameIndex: frame?.frame,
          frameCount: video?.frameCount ?? 0)
      },
      capture: frame.flatMap { assets[$0.asset].captureTime(ofFrame: $0.frame) },
      segmentSpeed: speed(at: position.time, before: position.isBackward))
  }
}
