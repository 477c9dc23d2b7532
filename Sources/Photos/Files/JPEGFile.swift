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

/// The Huffman tables of ITU-T T.81, annex K.3.
///
/// Motion JPEG frames that contain no Huffman tables were compressed with these tables.
enum StandardHuffmanTables {
  /// A DHT segment that contains all four standard Huffman tables.
  static let segment: [UInt8] = {
    let parts: [[UInt8]] = [
      [0x00], lumaDCCounts, values, [0x10], lumaACCounts, lumaACValues,
      [0x01], chromaDCCounts, values, [0x11], chromaACCounts, chromaACValues,
    ]
    let tables = [UInt8](parts.joined())
    let length = tables.count + 2
    return [0xFF, 0xC4, UInt8(length >> 8), UInt8(length & 0xFF)] + tables
  }()

  /// The values of both DC tables, for luma and for chroma.
  private static let values: [UInt8] = Array(0...11)
  /// The number of codes with each code length, from 1 to 16 bits.
  private static let lumaDCCounts: [UInt8] = [
    0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,
  ]
  private static let chromaDCCounts: [UInt8] = [
    0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
  ]
  private static let lumaACCounts: [UInt8] = [
    0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125,
  ]
  private static let chromaACCounts: [UInt8] = [
    0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119,
  ]
  /// The values in the order of their codes, from the shortest code to the longest.
  private static let lumaACValues: [UInt8] = [
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
    0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52,
    0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25,
    0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45,
    0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x63, 0x64,
    0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83,
    0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    0x9A, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6,
    0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3,
    0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8,
    0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
  ]
  private static let chromaACValues: [UInt8] = [
    0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61,
    0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33,
    0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1, 0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18,
    0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x43, 0x44,
    0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x63,
    0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A,
    0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97,
    0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4,
    0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA,
    0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7,
    0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
  ]
}
