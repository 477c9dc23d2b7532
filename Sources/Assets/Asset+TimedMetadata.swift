// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankMovieFormat

extension Asset {
  /// The values of the timed metadata tracks (`mebx`), in order of time.
  ///
  /// Each value has the index of the last frame at or before its time. Values that
  /// `MovieFileOutput` stored have the exact time of a frame. Blocks while the samples are read.
  /// The result is empty for a file without such tracks, and for an unfinished file.
  public func timedMetadata() -> [TimedMetadataItem] {
    let entries = videoTrack?.frames.entries ?? []
    let timescale = Int128(videoTrack?.frames.timescale ?? 1)
    var index = 0
    return TimedMetadataReader.read(from: path).compactMap { value in
      let seconds = value.seconds - origin
      guard let time = MediaTime(exactly: seconds) else { return nil }
      // Values and frames are both in order of time, so `index` only increases.
      while index + 1 < entries.count,
        Rational(Int128(entries[index + 1].ticks), over: timescale) <= seconds
      {
        index += 1
      }
      return TimedMetadataItem(
        key: value.key, value: value.value, frameIndex: Int64(index), time: time)
    }
  }
}
