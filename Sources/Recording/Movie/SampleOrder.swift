// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMovieFormat

/// The decoding order and the droppable (non-reference) samples of a recording, read from the
/// file's journals.
///
/// libavformat's own index of a fragmented file contains neither.
struct SampleOrder {
  /// The values of one sample in the index of the plain (unfragmented) movie.
  struct Entry {
    var presentationOffset: Int64 = 0
    var duration: Int64
    var isDroppable = false
  }

  /// The samples that are reordered or droppable, by their byte offset in the file.
  private var samples: [Int64: StoredSample] = [:]

  init(_ journal: RecordedFragments) {
    for fragment in journal.fragments {
      for sample in fragment.samples where sample.presentationOffset != 0 || sample.isDroppable {
        samples[sample.position] = sample
      }
    }
  }

  /// The index values of a track's samples.
  ///
  /// The durations follow from the times, because fragmented tracks need not store durations. `end`
  /// is the end of the track in ticks of the track.
  func entries(of locations: [PacketLocation], end: Int64) -> [Entry] {
    var (latest, latestTicks) = (0, Int64.min)
    var entries: [Entry] = []
    entries.reserveCapacity(locations.count)
    let isReordered = !samples.isEmpty && locations.contains { samples[$0.position] != nil }
    // In a reordered track the first decode time is negative. Decoding then ends before the end of
    // the track, by the same amount.
    let decodeEnd = isReordered ? end &+ min(0, locations.first?.ticks ?? 0) : end
    for (index, location) in locations.enumerated() {
      let next = index + 1 < locations.count ? locations[index + 1].ticks : decodeEnd
      var entry = Entry(duration: next &- location.ticks)
      if isReordered, let sample = samples[location.position] {
        entry.presentationOffset = sample.presentationOffset
        entry.isDroppable = sample.isDroppable
      }
      if location.ticks &+ entry.presentationOffset > latestTicks {
        (latest, latestTicks) = (index, location.ticks &+ entry.presentationOffset)
      }
      entries.append(entry)
    }
    // Every duration so far is the time until the next sample is decoded. The muxer computes the
    // track's length from the frame that is shown last, so that frame gets its display duration
    // instead.
    if isReordered, latest < entries.count - 1 { entries[latest].duration = end &- latestTicks }
    return entries
  }
}
