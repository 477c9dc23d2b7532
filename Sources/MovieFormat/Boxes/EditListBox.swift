// SPDX-License-Identifier: Apache-2.0

/// Reads the edit list of a track.
package enum EditListBox {
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
