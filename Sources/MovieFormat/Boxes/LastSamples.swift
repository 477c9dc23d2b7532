// SPDX-License-Identifier: Apache-2.0

/// How long the last sample of each track of a MOV or MP4 file lasts, by its sample tables and
/// fragments.
///
/// libavformat takes the length that a track states for the end of its last sample. Writers of
/// fragments state it before they know it, or not at all (all bits set).
package struct LastSamples {
  /// The durations in ticks, in the order of the tracks in the file; nil where no box tells.
  package private(set) var durations: [Int64?] = []

  /// Reads the boxes of a movie.
  ///
  /// - Returns: Nil where the file cannot be read or has no index that is understood.
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
    // What fragments leave out, by track.
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

  /// The boxes of a type inside.
  func all(_ type: UInt32) -> [BoxContents] {
    Box.list(in: bytes, from: range.lowerBound, to: range.upperBound).compactMap { box in
      let start = Int(box.start + box.headBytes)
      guard box.type == type, start <= Int(box.end) else { return nil }
      return BoxContents(bytes, start..<Int(box.end))
    }
  }

  func first(_ type: UInt32) -> BoxContents? { all(type).first }

  /// A number of four bytes at an offset; nil behind the end.
  func number(_ offset: Int) -> UInt64? {
    let start = range.lowerBound + offset
    guard offset >= 0, start + 4 <= range.upperBound else { return nil }
    return Box.number(bytes[start..<start + 4])
  }

  /// Of a `trak`: the number by which fragments name it.
  var trackIdentifier: UInt64? {
    guard let header = first(BoxType.trackHeader), let version = header.number(0) else {
      return nil
    }
    return header.number(version >> 24 == 1 ? 20 : 12)
  }

  /// Of a `trak`: the duration of its last sample by its tables; nil where they hold none.
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

  /// Of a `traf`: the duration of its last sample; nil where it holds none.
  func lastRunDuration(fallback: Int64?) -> Int64? {
    guard let header = first(BoxType.trackFragmentHeader), let flags = header.number(0),
      let run = all(BoxType.trackRun).last(where: { ($0.number(4) ?? 0) > 0 }),
      let runFlags = run.number(0), let count = run.number(4)
    else { return nil }
    guard runFlags & 0x100 != 0 else {
      guard flags & 0x08 != 0 else { return fallback }
      // Behind the track's number may stand an offset of eight bytes and an index of four.
      return header.number(8 + (flags & 0x01 != 0 ? 8 : 0) + (flags & 0x02 != 0 ? 4 : 0))
        .map { Int64($0) }
    }
    let size = 4 * [0x100, 0x200, 0x400, 0x800].count { runFlags & $0 != 0 }
    let first = 8 + (runFlags & 0x01 != 0 ? 4 : 0) + (runFlags & 0x04 != 0 ? 4 : 0)
    return run.number(first + size * (Int(clamping: count) - 1)).map { Int64($0) }
  }
}
