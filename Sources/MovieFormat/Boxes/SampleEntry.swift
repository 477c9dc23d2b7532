// SPDX-License-Identifier: Apache-2.0

/// Reads and writes the boxes in a video track's first sample description, in the bytes of a `moov`
/// box.
enum SampleEntry {
  private static let media: [UInt32] = [
    BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable, BoxType.sampleDescriptions,
  ]

  /// Writes a box into a sample description.
  ///
  /// A box of the same type is replaced.
  ///
  /// - Parameters:
  ///   - box: The bytes of the box with its header.
  ///   - type: The type of the box.
  ///   - bytes: The bytes of a `moov` box. The array may grow.
  ///   - number: The index of the track, counted from 0.
  /// - Returns: True if the box was written, false if the track has no sample description.
  static func set(
    _ box: [UInt8], _ type: UInt32, in bytes: inout [UInt8], track number: Int
  ) -> Bool {
    guard let (around, inside) = boxes(in: bytes, track: number), let entry = around.last else {
      return false
    }
    let old = inside.first { $0.type == type }
    let position = old.map { Int($0.start)..<Int($0.end) } ?? Int(entry.end)..<Int(entry.end)
    bytes.replaceSubrange(position, with: box)
    for outer in around {
      let size = UInt32(Int(outer.byteCount) + box.count - position.count).bigEndian
      withUnsafeBytes(of: size) {
        bytes.replaceSubrange(Int(outer.start)..<Int(outer.start) + 4, with: $0)
      }
    }
    return true
  }

  /// The bytes of a box in a sample description, including the header of the box.
  ///
  /// Nil if there is no such box.
  static func bytes(of type: UInt32, in bytes: [UInt8], track number: Int) -> [UInt8]? {
    guard let box = boxes(in: bytes, track: number)?.inside.first(where: { $0.type == type })
    else { return nil }
    return Array(bytes[Int(box.start)..<Int(box.end)])
  }

  /// The boxes around the first sample entry of a track, and the boxes inside the entry.
  ///
  /// The entry is the last of the boxes around it.
  private static func boxes(
    in bytes: [UInt8], track number: Int
  ) -> (around: [Box], inside: [Box])? {
    guard let track = Box.track(number, in: bytes) else { return nil }
    let movie = Box(type: BoxType.movie, start: 0, byteCount: Int64(bytes.count))
    var (around, table) = ([movie, track], track)
    for type in media {
      guard let inner = table.first(type, in: bytes) else { return nil }
      around.append(inner)
      table = inner
    }
    // A sample description starts with 8 bytes: the version, the flags and the number of entries.
    // Each visual sample entry starts with a header and 78 fixed bytes.
    guard
      let entry = Box.list(in: bytes, from: Int(table.start) + 16, to: Int(table.end)).first,
      entry.byteCount >= 86
    else { return nil }
    around.append(entry)
    return (around, Box.list(in: bytes, from: Int(entry.start) + 86, to: Int(entry.end)))
  }
}
