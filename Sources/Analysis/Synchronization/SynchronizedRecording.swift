// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankEditing
public import OvercrankMediaCore

/// A recording and its position on the time axis of a reference.
public struct SynchronizedRecording: Sendable {
  /// The recording.
  public let asset: Asset
  /// The time in the reference at which the recording starts.
  public let offset: MediaTime
  /// The times of the capture; nil for those of the movie.
  public let clock: CaptureClock?

  /// Creates a synchronized recording; the reference itself has an offset of zero.
  public init(_ asset: Asset, offset: MediaTime = .zero, clock: CaptureClock? = nil) {
    (self.asset, self.offset, self.clock) = (asset, offset, clock)
  }

  /// Throws if the recording does not play in real time, for its offset is one of real time.
  fileprivate func checkPlaysInRealTime() throws(MediaError) {
    guard asset.videoTrack != nil else { return }
    let clock = if let clock { clock } else { try asset.captureClock() }
    guard clock.timeScale != .one else { return }
    throw MediaError(
      .unknownCaptureTime,
      "\(asset.path) does not play in real time, so that it cannot be aligned with others",
      recovery: "align the recording that it was made from")
  }
}

extension Composition {
  /// Creates a composition of recordings one above the other, aligned in time.
  ///
  /// The composition covers the part that all recordings share. The order of the video tracks is
  /// that of a project: the first recording is the last track, which is on top. The audio tracks
  /// are in the order of the recordings.
  ///
  /// - Throws: `MediaError` with `.nothingInCommon` if no part is shared, `.emptyRange` for a
  ///   recording of zero duration, `.unknownCaptureTime` for a movie that does not play in real time.
  public init(synchronizing recordings: [SynchronizedRecording]) throws(MediaError) {
    self.init()
    var (start, end) = (Rational(Int64.min), Rational(Int64.max))
    for recording in recordings {
      try recording.checkPlaysInRealTime()
      start = max(start, recording.offset.seconds)
      end = min(end, recording.offset + recording.asset.duration)
    }
    // The length is rounded to whole nanoseconds, so that the ranges can be stored exactly.
    let length = (end - start) * Rational(1_000_000_000)
    guard length.isValid, length >= 1, let count = Int64(exactly: try length.rounded(.towardZero))
    else {
      throw MediaError(
        .nothingInCommon, "the recordings share no time",
        recovery: "choose recordings that overlap")
    }
    let target = try TimeRange(duration: MediaTime(nanoseconds: count))
    var audio: [CompositionTrack] = []
    for recording in recordings {
      let source = try recording.asset.mediaSource()
      let first = try MediaTime(start - recording.offset.seconds)
      let mapping = try TimeMapping(
        source: TimeRange(start: first, duration: target.end), target: target)
      for track in source.tracks {
        let aligned = try CompositionTrack(
          track.mediaType, segments: [TrackSegment(of: source, mapping)])
        if track.mediaType == .video {
          tracks.insert(aligned, at: 0)
        } else {
          audio.append(aligned)
        }
      }
    }
    tracks += audio
  }
}
