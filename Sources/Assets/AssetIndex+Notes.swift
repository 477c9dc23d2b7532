// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

extension AssetIndex {
  /// Returns descriptions of faults in the file that do not prevent reading.
  func notes(video: VideoTrack?, audio: AudioTrack?) -> [String] {
    var notes: [String] = []
    let origin = video?.origin ?? .zero
    if !restartTimes.isEmpty {
      let times = restartTimes.prefix(10).map { ($0 - origin).displayText }
        .joined(separator: ", ")
      let more = restartTimes.count > 10 ? " and later" : ""
      notes.append(
        "the clock restarts at \(times) s\(more), where recordings were joined; they play one after "
          + "the other")
    }
    let damaged = [video?.format.index, audio?.format.index].compactMap { $0 }
      .reduce(0) { $0 + damagedCounts[$1, default: 0] }
    if damaged > 0 {
      notes.append(
        "bytes are missing in or before \(damaged) packets; their frames or samples may be damaged or "
          + "missing")
    }
    if changedFieldCount > 0 {
      notes.append(
        "codec parameters change between the two fields of \(changedFieldCount) frames; some players "
          + "show the second field of such a frame slightly wrong in a copy")
    }
    return notes
  }
}
