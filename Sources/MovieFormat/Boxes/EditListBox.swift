// SPDX-License-Identifier: Apache-2.0

/// Reads the edit list of a track.
package enum EditListBox {
  /// An entry, which plays a part of the media, or delays it if the media time is negative.
  struct Entry {
    /// The duration in ticks of the movie.
    let duration: Int64
    /// The start of the part in ticks of the track.
    let mediaTime: Int64
    /// The media rate, as a fixed-point number with 16 fractional bits.
    let rate: Int32
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
      let (_, bytes) = file.movie(in: file.boxes()), let track = Box.track(number, in: bytes),
      let edits = track.edits(in: bytes), edits.isWhole
    else { return nil }
    return edits.entries.filter { $0.mediaTime >= 0 }.map(\.rate)
  }
}

extension Box {
  /// The edit list of a `trak` box up to its first incomplete entry, and whether it is complete.
  ///
  /// Nil if the track has none.
  func edits(in bytes: [UInt8]) -> (entries: [EditListBox.Entry], isWhole: Bool)? {
    guard let list = first(BoxType.edits, in: bytes)?.first(BoxType.editList, in: bytes),
      let head = list.number(0, in: bytes), let count = list.number(4, in: bytes)
    else { return nil }
    let width = head >> 24 == 1 ? 8 : 4
    let first = Int(list.start + list.headBytes) + 8
    let present = min(Int(clamping: count), (Int(list.end) - first) / (2 * width + 4))
    let entries = (0..<present).map { index in
      let start = first + index * (2 * width + 4)
      let length = Box.number(bytes[start..<start + width])
      let media = Box.number(bytes[start + width..<start + 2 * width])
      let rate = Box.number(bytes[start + 2 * width..<start + 2 * width + 4])
      return EditListBox.Entry(
        duration: Int64(clamping: length),
        mediaTime: width == 8
          ? Int64(bitPattern: media) : Int64(Int32(truncatingIfNeeded: media)),
        rate: Int32(truncatingIfNeeded: rate))
    }
    return (entries, present == Int(clamping: count))
  }
}
