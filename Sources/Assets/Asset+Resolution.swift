// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Asset {
  /// Resolves a time expression in this asset, such as `1.25`, `120f`, `@hit` or `end`.
  ///
  /// A time after the end is returned unchanged.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start, or for a frame or
  ///   mark that does not exist; with `.overflow` for a time without an exact representation.
  public func resolve(_ time: TimeExpression) throws(MediaError) -> MediaTime {
    let frames = videoTrack?.frames
    return try time.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero },
      markTime: { (name) throws(MediaError) in try markTime(name) })
  }

  /// Resolves a range expression in this asset, such as `1.2..1.5` or `0f..240f`.
  ///
  /// - Throws: `MediaError` as for a time, and `.emptyRange` for a range that ends before it
  ///   starts.
  public func resolve(_ range: TimeRangeExpression) throws(MediaError) -> TimeRange {
    let frames = videoTrack?.frames
    return try range.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero },
      markTime: { (name) throws(MediaError) in try markTime(name) })
  }
}
