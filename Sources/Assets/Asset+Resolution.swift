// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Asset {
  /// The time that an expression means in this asset: `1.25`, `120f`, `end`.
  ///
  /// A time after the end is given as it is.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start or a frame that is
  ///   not there, `.overflow` when the time cannot be said exactly.
  public func resolve(_ time: TimeExpression) throws(MediaError) -> MediaTime {
    let frames = videoTrack?.frames
    return try time.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero })
  }

  /// The range that an expression means in this asset: `1.2..1.5`, `0f..240f`.
  ///
  /// - Throws: `MediaError` as for a time, and with `.emptyRange` for one that ends before it starts.
  public func resolve(_ range: TimeRangeExpression) throws(MediaError) -> TimeRange {
    let frames = videoTrack?.frames
    return try range.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero })
  }
}
