// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMovieFormat

/// Reads the metadata of a HEIC file (ISO/IEC 23008-12).
enum HEICFile {
  private static let metadata: UInt32 = 0x6D65_7461  // meta
  private static let itemInformation: UInt32 = 0x6969_6E66  // iinf
  private static let itemEntry: UInt32 = 0x696E_6665  // infe
  private static let itemLocations: UInt32 = 0x696C_6F63  // iloc
  private static let exif: UInt64 = 0x4578_6966  // the item type `Exif`
  /// The greatest size in bytes of a `meta` box or an item that is read.
  private static let maximumByteCount: Int64 = 1 << 20

  /// The Exif metadata, beginning with its TIFF header.
  ///
  /// Nil for a file without Exif metadata, and for a file of another format.
  static func exif(in file: borrowing RandomAccessFile) -> [UInt8]? {
    guard let bytes = metadataBox(in: file),
      let box = Box.list(in: bytes, from: 0, to: bytes.count).first,
      let item = exifItem(in: box, bytes), let range = location(ofItem: item, in: box, bytes)
    else { return nil }
    let data = file.read(Int(range.count), at: range.lowerBound)
    // The item begins with four bytes that state the distance from their end to the TIFF header.
    guard data.count == range.count, data.count >= 4 else { return nil }
    let distance = Int(Box.number(data[0..<4]))
    return distance <= data.count - 4 ? Array(data[(4 + distance)...]) : nil
  }

  /// The bytes of the file's `meta` box.
  private static func metadataBox(in file: borrowing RandomAccessFile) -> [UInt8]? {
    var start: Int64 = 0
    // In a photo, the `meta` box is among the first boxes, so the search ends after 16 boxes.
    for _ in 0..<16 {
      guard let box = Box(head: file.read(16, at: start), at: start, end: file.count()) else {
        return nil
      }
      if box.type == metadata {
        guard box.byteCount <= maximumByteCount else { return nil }
        let bytes = file.read(Int(box.byteCount), at: start)
        return bytes.count == box.byteCount ? bytes : nil
      }
      start = box.end
    }
    return nil
  }

  /// The child boxes of a full box, after `skipped` bytes of the content.
  private static func boxes(in box: Box, skipping skipped: Int, _ bytes: [UInt8]) -> [Box] {
    Box.list(in: bytes, from: Int(box.start + box.headBytes) + skipped, to: Int(box.end))
  }

  private static func exifItem(in box: Box, _ bytes: [UInt8]) -> UInt64? {
    guard
      let list = boxes(in: box, skipping: 4, bytes).first(where: { $0.type == itemInformation }),
      let head = list.number(0, in: bytes)
    else { return nil }
    for entry in boxes(in: list, skipping: head >> 24 == 0 ? 6 : 8, bytes)
    where entry.type == itemEntry {
      var reader = ItemReader(entry, bytes)
      // Only entries of versions 2 and 3 contain an item type.
      guard let version = reader.next(4).map({ $0 >> 24 }), version == 2 || version == 3,
        let number = reader.next(version == 2 ? 2 : 4), reader.next(2) != nil
      else { continue }
      if reader.next(4) == exif { return number }
    }
    return nil
  }

  /// The byte range of an item in the file.
  ///
  /// Nil if the item is not contiguous.
  private static func location(ofItem item: UInt64, in box: Box, _ bytes: [UInt8]) -> Range<Int64>?
  {
    guard let list = boxes(in: box, skipping: 4, bytes).first(where: { $0.type == itemLocations })
    else { return nil }
    var reader = ItemReader(list, bytes)
    guard let version = reader.next(4).map({ $0 >> 24 }), version <= 2,
      let sizes = reader.next(2), let count = reader.next(version < 2 ? 2 : 4)
    else { return nil }
    let (offsetSize, lengthSize) = (Int(sizes >> 12), Int(sizes >> 8 & 15))
    let (baseSize, indexSize) = (Int(sizes >> 4 & 15), version == 0 ? 0 : Int(sizes & 15))
    for _ in 0..<count {
      guard let number = reader.next(version < 2 ? 2 : 4),
        let method = version == 0 ? 0 : reader.next(2), reader.next(2) != nil,
        let base = reader.next(baseSize), let extents = reader.next(2),
        // A damaged file may state any number of extents. If an extent takes no bytes of the box,
        // the end of the box does not limit this number.
        extents <= 1 || indexSize + offsetSize + lengthSize > 0
      else { return nil }
      var found: Range<Int64>?
      for _ in 0..<extents {
        guard reader.next(indexSize) != nil, let offset = reader.next(offsetSize),
          let length = reader.next(lengthSize)
        else { return nil }
        let start = Int64(clamping: base) &+ Int64(clamping: offset)
        if length <= maximumByteCount, start >= 0, start < .max - Int64(length) {
          found = start..<start + Int64(length)
        }
      }
      // With construction method 0, offsets are relative to the start of the file.
      if number == item { return method & 15 == 0 && extents == 1 ? found : nil }
    }
    return nil
  }
}

/// Reads consecutive big-endian numbers from a box.
private struct ItemReader {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  init(_ box: Box, _ bytes: [UInt8]) {
    self.bytes = bytes[Int(box.start + box.headBytes)..<Int(box.end)]
    position = self.bytes.startIndex
  }

  /// Returns the next number of `size` bytes, at most 8.
  ///
  /// Nil at the end of the box; 0 for a size of 0.
  mutating func next(_ size: Int) -> UInt64? {
    guard size <= 8, position + size <= bytes.endIndex else { return nil }
    defer { position += size }
    return Box.number(bytes[position..<position + size])
  }
}
