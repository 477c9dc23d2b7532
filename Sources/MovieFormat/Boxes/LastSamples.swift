// SPDX-License-Identifier: Apache-2.0

/// The durations of each track's last sample in a MOV or MP4 file, from sample tables and
/// fragments.
///
/// libavformat ends the last sample at the stated track duration. Writers of fragmented files state
/// that duration too early, or leave it unknown (all bits set).
package struct LastSamples {
  /// The durations in track ticks, in track order; nil for a track whose boxes give none.
  package private(set) var durations: [Int64?] = []

  /// Reads the sample tables and fragments of a movie.
  ///
  /// - Returns: Nil where the file cannot be read or its `moov` box is malformed.
  package init?(of path: String) {
    guard let boxes = try? MovieBoxes(opening: path, forWriting: false) else { return nil }
    let list = boxes.boxes()
    guard let movie = list.first(where: { $0.type == BoxType.movie }),
      let bytes = boxes.bytes(of: movie)
    else { return nil }
    let contents = BoxContents(bytes, Int(movie.headBytes)..<bytes.count)
    var identifiers: [UInt64] = []
    for track in contents.all(BoxType.track) {
      identifiers.append(track.trackIdentifier ?? 0)
      durations.append(track.lastTableDuration)
    }
    // Default sample durations from `trex`, by track ID.
    var defaults: [UInt64: Int64] = [:]
    for entry in contents.first(BoxType.extends)?.all(BoxType.trackExtends) ?? [] {
      if let identifier = entry.number(4), let duration = entry.number(12) {
        defaults[identifier] = Int64(duration)
      }
    }
    var missing = Set(identifiers)
    for fragment in list.reversed() where fragment.type == BoxType.fragment {
      if missing.isEmpty { break }
      guard let bytes = boxes.bytes(of: fragment) else { return nil }
      let contents = BoxContents(bytes, Int(fragment.headBytes)..<bytes.count)
      for run in contents.all(BoxType.trackFragment).reversed() {
        guard let identifier = run.first(BoxType.trackFragmentHeader)?.number(4),
          let track = identifiers.firstIndex(of: identifier), missing.contains(identifier),
          let duration = run.lastRunDuration(fallback: defaults[identifier])
        else { continue }
        durations[track] = duration
        missing.remove(identifier)
      }
    }
  }
}

/// The contents of a box in memory.
private struct BoxContents {
  let bytes: [UInt8]
  let range: Range<Int>

  init(_ bytes: [UInt8], _ range: Range<Int>) {
    self.bytes = bytes
    self.range = range
  }

  /// The child boxes of a type.
  func all(_ type: UInt32) -> [BoxContents] {
    Box.list(in: bytes, from: range.lowerBound, to: range.upperBound).compactMap { box in
      let start = Int(box.start + box.headBytes)
      guard box.type == type, start <= Int(box.end) else { return nil }
      return BoxContents(bytes, start..<Int(box.end))
    }
  }

  func first(_ type: UInt32) -> BoxContents? { all(type).first }

  /// The 32-bit number at an offset; nil beyond the end.
  func number(_ offset: Int) -> UInt64? {
    let start = range.lowerBound + offset
    guard offset >= 0, start + 4 <= range.upperBound else { return nil }
    return Box.number(bytes[start..<start + 4])
  }

  /// The track ID in the `tkhd` of a `trak` box.
  var trackIdentifier: UInt64? {
    guard let header = first(BoxType.trackHeader), let version = header.number(0) else {
      return nil
    }
    return header.number(version >> 24 == 1 ? 20 : 12)
  }

  /// The duration of a `trak` box's last sample, from `stts`; nil without samples.
  var lastTableDuration: Int64? {
    guard
      let table = first(BoxType.trackMedia)?.first(BoxType.mediaInformation)?
        .first(BoxType.sampleTable),
      let sizes = table.first(BoxType.sampleSizes) ?? table.first(BoxType.compactSampleSizes),
      var rest = sizes.number(8), rest > 0,
      let times = table.first(BoxType.timeToSample), let count = times.number(4)
    else { return nil }
    for entry in 0..<Int(clamping: count) {
      guard let samples = times.number(8 + 8 * entry), let delta = times.number(12 + 8 * entry)
      else { return nil }
      if samples >= rest { return Int64(Int32(truncatingIfNeeded: delta)) }
      rest -= samples
    }
    return nil
  }

  /// The duration of a `traf` box's last sample; nil without samples.
  func lastRunDuration(fallback: Int64?) -> Int64? {
    guard let header = first(BoxType.trackFragmentHeader), let flags = header.number(0),
      let run = all(BoxType.trackRun).last(where: { ($0.number(4) ?? 0) > 0 }),
      let runFlags = run.number(0), let count = run.number(4)
    else { return nil }
    guard runFlags & 0x100 != 0 else {
      guard flags & 0x08 != 0 else { return fallback }
      // In `tfhd`, an optional 8-byte base offset and 4-byte description index follow the track ID.
      return header.number(8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0))
        .map { Int64($0) }
    }
    let size = 4 * [0x100, 0x200, 0x400, 0x800].count { runFlags & $0 != 0 }
    let first = 8 + (runFlags & 0x01 != 0 ? 4 : 0) + (runFlags & 0x04 != 0 ? 4 : 0)
    return run.number(first + size * (Int(clamping: count) - 1)).map { Int64($0) }
  }
}
