// SPDX-License-Identifier: Apache-2.0

/// Writes the edit list of a track whose first sample in decode order is not the first one shown.
///
/// Streams that are cut from broadcasts or AVCHD start with a key frame, followed by frames that
/// are shown before the key frame. libavformat writes an edit list that starts at the key frame and
/// hides these frames (ISO/IEC 14496-12, 8.6.6).
package enum EditListBox {
  /// Rewrites the edit list so that the track starts with the frame that is shown first.
  ///
  /// The sizes of the boxes do not change.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of a `moov` box.
  ///   - number: The index of the track, counted from 0.
  ///   - delay: The presentation time of the frame that is shown first, in movie ticks, not
  ///     negative.
  ///   - mediaTime: The presentation time of the frame that is shown first, in track ticks, counted
  ///     from the first decode time.
  ///   - duration: The duration of the track, in movie ticks.
  ///   - mediaDuration: The duration of the track, in track ticks.
  /// - Returns: True if the edit list was written, false if the track has no edit list or too small
  ///   a one.
  package static func write(
    into bytes: inout [UInt8], track number: Int, delay: Int64, mediaTime: Int64, duration: Int64,
    mediaDuration: Int64
  ) -> Bool {
    guard let track = Box.track(number, in: bytes),
      let old = track.first(BoxType.edits, in: bytes)?.first(BoxType.editList, in: bytes),
      old.byteCount >= 16,
      let header = track.first(BoxType.trackMedia, in: bytes)?.first(
        BoxType.mediaHeader, in: bytes),
      header.byteCount >= 32
    else { return false }
    // The duration in `mdhd` follows the version, the creation time, the modification time and the
    // timescale.
    let position = Int(header.start) + 8
    if bytes[position] == 1, header.byteCount >= 44 {
      withUnsafeBytes(of: mediaDuration.bigEndian) {
        bytes.replaceSubrange(position + 24..<position + 32, with: $0)
      }
    } else {
      withUnsafeBytes(of: UInt32(truncatingIfNeeded: mediaDuration).bigEndian) {
        bytes.replaceSubrange(position + 16..<position + 20, with: $0)
      }
    }
    let isLong = bytes[Int(old.start) + 8] == 1
    var made = BoxBytes()
    made.fullBox(BoxType.editList, version: isLong ? 1 : 0, flags: 0) { box in
      var entries: [(duration: Int64, mediaTime: Int64)] = [(duration, mediaTime)]
      if delay > 0 { entries.insert((delay, -1), at: 0) }
      box.append(UInt32(entries.count))
      for entry in entries {
        if isLong {
          box.append(entry.duration)
          box.append(entry.mediaTime)
        } else {
          box.append(UInt32(truncatingIfNeeded: entry.duration))
          box.append(Int32(truncatingIfNeeded: entry.mediaTime))
        }
        box.append(UInt32(0x1_0000))
      }
    }
    let rest = Int(old.byteCount) - made.bytes.count
    guard rest == 0 || rest >= 8 else { return false }
    if rest > 0 { made.free(rest) }
    bytes.replaceSubrange(Int(old.start)..<Int(old.end), with: made.bytes)
    return true
  }
  /// The media rates in a track's edit list, as fixed-point numbers with 16 fractional bits.
  ///
  /// Entries without media are left out.
  ///
  /// - Parameters:
  ///   - number: The index of the track, counted from 0.
  ///   - path: The path of the movie file.
  /// - Returns: The rates in order. Nil if the track has no edit list, or if the edit list is
  ///   malformed.
  package static func mediaRates(ofTrack number: Int, in path: String) -> [Int32]? {
    guard let file = try? MovieBoxes(opening: path, forWriting: false),
      let movie = file.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = file.bytes(of: movie), let track = Box.track(number, in: bytes),
      let list = track.first(BoxType.edits, in: bytes)?.first(BoxType.editList, in: bytes),
      let head = list.number(0, in: bytes), let count = list.number(4, in: bytes)
    else { return nil }
    let (entry, media) = head >> 24 == 1 ? (20, 8) : (12, 4)
    guard Int64(count) * Int64(entry) + 8 <= list.byteCount - list.headBytes else { return nil }
    var rates: [Int32] = []
    for index in 0..<Int(count) {
      let offset = 8 + index * entry
      guard let start = list.number(offset + media, in: bytes),
        let rate = list.number(offset + entry - 4, in: bytes)
      else { return nil }
      // A media time of -1 marks an empty edit. The tested bit is set in this value, whether the
      // time has 32 or 64 bits.
      if start & 0x8000_0000 == 0 { rates.append(Int32(truncatingIfNeeded: rate)) }
    }
    return rates
  }
}
