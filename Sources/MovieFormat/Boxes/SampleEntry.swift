// SPDX-License-Identifier: Apache-2.0

/// The boxes of a video track's first sample description, in the bytes of a `moov` box.
enum SampleEntry {
  private static let media: [UInt32] = [
    BoxType.trackMedia, BoxType.mediaInformation, BoxType.sampleTable, BoxType.sampleDescriptions,
  ]

  /// Writes a box into a sample description, in place of one of the same type.
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

  /// The bytes of a box in a sample description with its header, or nil if there is none.
  static func bytes(of type: UInt32, in bytes: [UInt8], track number: Int) -> [UInt8]? {
    guard let box = boxes(in: bytes, track: number)?.inside.first(where: { $0.type == type })
    else { return nil }
    return Array(bytes[Int(box.start)..<Int(box.end)])
  }

  /// The boxes around the first sample entry of a track, the entry last, and the boxes inside it.
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
    // A sample description starts with 8 bytes of version, flags and entry count. Each visual
    // sample entry starts with 78 fixed bytes after its header.
    guard
      let entry = Box.list(in: bytes, from: Int(table.start) + 16, to: Int(table.end)).first,
      entry.byteCount >= 86
    else { return nil }
    around.append(entry)
    return (around, Box.list(in: bytes, from: Int(entry.start) + 86, to: Int(entry.end)))
  }
}
