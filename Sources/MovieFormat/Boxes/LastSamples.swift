// SPDX-License-Identifier: Apache-2.0

/// Reads the duration of each track's last sample in a MOV or MP4 file, from sample tables and
/// fragments.
///
/// libavformat computes the end of the last sample from the duration of the track. However,
/// programs that write fragmented files state too short a track duration, or an unknown one (all
/// bits set).
package struct LastSamples {
  /// The durations in track ticks, in track order.
  ///
  /// Nil for a track whose boxes state no duration.
  package private(set) var durations: [Int64?] = []
  /// Whether samples of a track have another sample description than its first one, in track order.
  package private(set) var changesDescription: [Bool] = []

  /// Reads the sample tables and fragments of a movie.
  ///
  /// - Returns: Nil if the file cannot be read or its `moov` box is malformed.
  package init?(of path: String) {
    guard let boxes = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    let list = boxes.boxes()
    guard let (contents, bytes) = boxes.movie(in: list) else { return nil }
    let extends = contents.first(BoxType.extends, in: bytes)
    var identifiers: [UInt64] = []
    // The tracks with several descriptions, of which a fragment may name any.
    var several: Set<Int> = []
    for (number, track) in contents.all(BoxType.track, in: bytes).enumerated() {
      identifiers.append(track.trackIdentifier(in: bytes) ?? 0)
      durations.append(track.lastTableDuration(in: bytes))
      let hasSeveral = track.descriptionCount(in: bytes) > 1
      changesDescription.append(hasSeveral && track.changesDescription(in: bytes))
      if hasSeveral { several.insert(number) }
    }
    // The default sample durations and descriptions in `trex`, by track ID.
    var defaults: [UInt64: (duration: Int64, description: UInt64)] = [:]
    for entry in extends?.all(BoxType.trackExtends, in: bytes) ?? [] {
      if let identifier = entry.number(4, in: bytes), let duration = entry.number(12, in: bytes) {
        defaults[identifier] = (Int64(duration), entry.number(8, in: bytes) ?? 1)
      }
    }
    var missing = Set(identifiers)
    for fragment in list.reversed() where fragment.type == BoxType.fragment {
      if missing.isEmpty, several.isEmpty { break }
      guard let bytes = boxes.bytes(of: fragment) else { return nil }
      let contents = Box(
        type: fragment.type, start: 0, byteCount: Int64(bytes.count),
        headBytes: fragment.headBytes)
      for run in contents.all(BoxType.trackFragment, in: bytes).reversed() {
        guard let header = run.first(BoxType.trackFragmentHeader, in: bytes),
          let identifier = header.number(4, in: bytes),
          let track = identifiers.firstIndex(of: identifier)
        else { continue }
        let standard = defaults[identifier]
        if several.contains(track),
          header.descriptionIndex(in: bytes) ?? standard?.description ?? 1 != 1
        {
          changesDescription[track] = true
          several.remove(track)
        }
        guard missing.contains(identifier),
          let duration = run.lastRunDuration(in: bytes, fallback: standard?.duration)
        else { continue }
        durations[track] = duration
        missing.remove(identifier)
      }
    }
  }
}

extension Box {
  /// The number of sample descriptions of a `trak` box.
  fileprivate func descriptionCount(in bytes: [UInt8]) -> UInt64 {
    sampleTable(in: bytes)?.first(BoxType.sampleDescriptions, in: bytes)?.number(4, in: bytes) ?? 0
  }

  /// The number of the sample description in a `tfhd` box; nil if it states none.
  fileprivate func descriptionIndex(in bytes: [UInt8]) -> UInt64? {
    guard let flags = number(0, in: bytes), flags & 0x02 != 0 else { return nil }
    // The base offset may precede it.
    return number(8 + (flags & 0x01 != 0 ? 8 : 0), in: bytes)
  }

  /// Whether the chunks of a `trak` box refer to another sample description than the first (`stsc`).
  fileprivate func changesDescription(in bytes: [UInt8]) -> Bool {
    guard let chunks = sampleTable(in: bytes)?.first(BoxType.sampleToChunk, in: bytes),
      let count = chunks.number(4, in: bytes)
    else { return false }
    for entry in 0..<Int(clamping: count) {
      guard let description = chunks.number(16 + 12 * entry, in: bytes) else { return false }
      if description != 1 { return true }
    }
    return false
  }

  /// The duration of a track's last sample, from the `stts` of its `trak` box.
  ///
  /// Nil if the table has no samples.
  fileprivate func lastTableDuration(in bytes: [UInt8]) -> Int64? {
    guard let table = sampleTable(in: bytes),
      let sizes = table.first(BoxType.sampleSizes, in: bytes)
        ?? table.first(BoxType.compactSampleSizes, in: bytes),
      var rest = sizes.number(8, in: bytes), rest > 0,
      let times = table.first(BoxType.timeToSample, in: bytes),
      let count = times.number(4, in: bytes)
    else { return nil }
    for entry in 0..<Int(clamping: count) {
      guard let samples = times.number(8 + 8 * entry, in: bytes),
        let delta = times.number(12 + 8 * entry, in: bytes)
      else { return nil }
      if samples >= rest { return Int64(Int32(truncatingIfNeeded: delta)) }
      rest -= samples
    }
    return nil
  }

  /// The duration of the last sample in a `traf` box.
  ///
  /// Nil if the box has no samples.
  fileprivate func lastRunDuration(in bytes: [UInt8], fallback: Int64?) -> Int64? {
    guard let header = first(BoxType.trackFragmentHeader, in: bytes),
      let flags = header.number(0, in: bytes),
      let run = all(BoxType.trackRun, in: bytes)
        .last(where: { ($0.number(4, in: bytes) ?? 0) > 0 }),
      let runFlags = run.number(0, in: bytes), let count = run.number(4, in: bytes)
    else { return nil }
    guard runFlags & 0x100 != 0 else {
      guard flags & 0x08 != 0 else { return fallback }
      // In `tfhd`, two optional fields may precede the default duration: an 8-byte base offset and
      // a 4-byte description index.
      return
        header
        .number(8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0), in: bytes)
        .map { Int64($0) }
    }
    let size = 4 * [0x100, 0x200, 0x400, 0x800].count { runFlags & $0 != 0 }
    let first = 8 + (runFlags & 0x01 != 0 ? 4 : 0) + (runFlags & 0x04 != 0 ? 4 : 0)
    return run.number(first + size * (Int(clamping: count) - 1), in: bytes).map { Int64($0) }
  }
}
