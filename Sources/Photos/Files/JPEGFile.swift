// SPDX-License-Identifier: Apache-2.0

/// A parsed JPEG image: the marker segments, and the compressed data after them.
struct JPEGFile {
  /// The bytes of a marker segment, including the marker and the length.
  typealias Segment = ArraySlice<UInt8>

  private static let (sof0, dht, soi, eoi, sos, app0, app1, comment):
    (
      UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8
    ) = (0xC0, 0xC4, 0xD8, 0xD9, 0xDA, 0xE0, 0xE1, 0xFE)

  private let segments: [Segment]
  /// The compressed data, from the end of the first scan header up to and including the EOI marker.
  let scanData: ArraySlice<UInt8>

  /// Parses a JPEG image.
  ///
  /// Zero bytes after the image, which some cameras append, are removed. Returns nil if the image
  /// is damaged or truncated.
  init?(parsing bytes: UnsafeRawBufferPointer) {
    let bytes = [UInt8](bytes)
    var end = bytes.count
    while end > 0, bytes[end - 1] == 0 { end -= 1 }
    guard end >= 4, bytes[0] == 0xFF, bytes[1] == Self.soi, bytes[end - 2] == 0xFF,
      bytes[end - 1] == Self.eoi
    else { return nil }
    var segments: [Segment] = []
    var position = 2
    while true {
      // A marker may be preceded by any number of fill bytes.
      guard position + 4 <= end, bytes[position] == 0xFF else { return nil }
      if bytes[position + 1] == 0xFF {
        position += 1
        continue
      }
      let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
      guard length >= 2, position + 2 + length <= end else { return nil }
      let marker = bytes[position + 1]
      segments.append(bytes[position..<(position + 2 + length)])
      position += 2 + length
      if marker == Self.sos { break }
    }
    guard segments.contains(where: { Self.isFrameHeader($0) }) else { return nil }
    self.segments = segments
    scanData = bytes[position..<end]
  }

  /// The width and height of the image in pixels, from the frame header.
  var size: (width: Int, height: Int) {
    guard let header = segments.first(where: Self.isFrameHeader), header.count >= 9 else {
      return (0, 0)
    }
    let start = header.startIndex
    func number(_ offset: Int) -> Int {
      Int(header[start + offset]) << 8 | Int(header[start + offset + 1])
    }
    return (number(7), number(5))
  }

  /// Returns the bytes of a JPEG file with this image and Exif metadata.
  ///
  /// The JFIF header, existing Exif metadata and the encoder's comment are removed. If the image
  /// contains no Huffman tables, which is common for frames from USB cameras, the standard tables
  /// are added. The compressed data is not changed.
  ///
  /// - Parameters:
  ///   - exif: The TIFF structure, at most 65 527 bytes.
  ///   - xmp: The segment with XMP metadata, or an empty array.
  /// - Returns: The bytes of the file.
  func bytes(withExif exif: [UInt8], xmp: [UInt8] = []) -> [UInt8] {
    let payload = Array("Exif".utf8) + [0, 0] + exif
    let length = payload.count + 2
    var result: [UInt8] = [0xFF, Self.soi]
    result.reserveCapacity(scanData.count + payload.count + 2_048)
    if length <= 0xFFFF {
      result += [0xFF, Self.app1, UInt8(length >> 8), UInt8(length & 0xFF)]
      result += payload
    }
    result += xmp
    let hasTables = segments.contains { $0[$0.startIndex + 1] == Self.dht }
    for segment in segments where !Self.isReplaced(segment) {
      if segment[segment.startIndex + 1] == Self.sos, !hasTables {
        result += StandardHuffmanTables.segment
      }
      result += segment
    }
    result += scanData
    return result
  }

  private static func isFrameHeader(_ segment: Segment) -> Bool {
    let marker = segment[segment.startIndex + 1]
    // 0xC4, 0xC8 and 0xCC lie in the range of the frame header markers, but have other meanings.
    return (sof0...0xCF).contains(marker) && ![dht, 0xC8, 0xCC].contains(marker)
  }

  private static func isReplaced(_ segment: Segment) -> Bool {
    let text = segment.dropFirst(4)
    return switch segment[segment.startIndex + 1] {
    case app0: text.starts(with: "JFIF".utf8) || text.starts(with: "AVI1".utf8)
    case app1: text.starts(with: "Exif".utf8)
    case comment: text.starts(with: "Lavc".utf8)
    default: false
    }
  }
}
