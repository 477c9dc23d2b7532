// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMovieFormat

/// Reordered and droppable samples, from the journals of a recording.
///
/// The index of libavformat lacks this order.
struct SampleOrder {
  /// The entry of a sample in the index of the plain movie.
  struct Entry {
    var presentationOffset: Int64 = 0
    var duration: Int64
    var isDroppable = false
  }

  /// Samples that are reordered or droppable, by their offset in the file.
  private var samples: [Int64: StoredSample] = [:]

  init(_ journal: RecordedFragments) {
    for fragment in journal.fragments {
      for sample in fragment.samples where sample.presentationOffset != 0 || sample.isDroppable {
        samples[sample.position] = sample
      }
    }
  }

  /// The entries of a track's samples.
  ///
  /// Fragmented tracks need not store durations, so they follow from the times. `end` is the end of
  /// the track in its ticks.
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
    // So far every duration is the step to the next decode time. The muxer computes the track's
    // length from the frame that is shown last, so this frame gets its display duration instead.
    if isReordered, latest < entries.count - 1 { entries[latest].duration = end &- latestTicks }
    return entries
  }
}
