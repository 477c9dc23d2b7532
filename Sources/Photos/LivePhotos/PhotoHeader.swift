// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// The metadata of a JPEG or HEIC file that links the photo to a movie.
struct PhotoHeader {
  /// The content identifier in Apple's MakerNote.
  private(set) var contentIdentifier: String?
  /// The time in the movie at which the photo was taken, from XMP.
  private(set) var presentationTime: MediaTime?
  /// The size in bytes of the movie at the end of the file.
  ///
  /// Nil if the file contains no movie.
  private(set) var embeddedByteCount: Int64?

  /// The number of bytes at the start of a file in which the metadata is expected.
  private static let headerSize = 1 << 20

  /// Reads the metadata of a file.
  ///
  /// Returns nil unless the file is a JPEG file, or a HEIC file with Exif metadata.
  init?(readingFrom path: String) {
    guard let file = try? RandomAccessFile(opening: path, forWriting: false) else { return nil }
    let bytes = file.read(Self.headerSize, at: 0)
    guard bytes.starts(with: [0xFF, 0xD8, 0xFF]) else {
      guard let exif = HEICFile.exif(in: file) else { return nil }
      contentIdentifier = TIFFReader(exif[...]).contentIdentifier
      return
    }
    for payload in Self.applicationSegments(bytes) {
      if payload.starts(with: Self.exifName) {
        contentIdentifier =
          contentIdentifier
          ?? TIFFReader(payload.dropFirst(Self.exifName.count)).contentIdentifier
      } else if payload.starts(with: XMPPacket.name) {
        read(
          MotionPhotoXMP.Values(
            String(decoding: payload.dropFirst(XMPPacket.name.count), as: UTF8.self)),
          of: file)
      }
    }
  }

  private mutating func read(_ values: MotionPhotoXMP.Values, of file: borrowing RandomAccessFile) {
    guard values.isMotionPhoto else { return }
    presentationTime = values.presentationMicroseconds.map { MediaTime(microseconds: $0) }
    guard let count = values.movieByteCount, count > 8, count < file.count(),
      // A movie begins with an `ftyp` box, so the bytes at the stated position are checked.
      file.read(4, at: file.count() - count + 4).elementsEqual("ftyp".utf8)
    else { return }
    embeddedByteCount = count
  }

  private static let exifName = Array("Exif".utf8) + [0, 0]

  /// The payloads of the APP1 segments before the image data.
  private static func applicationSegments(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    var (payloads, position): ([ArraySlice<UInt8>], Int) = ([], 2)
    while position + 4 <= bytes.count, bytes[position] == 0xFF {
      let marker = bytes[position + 1]
      if marker == 0xFF {
        position += 1
        continue
      }
      let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
      let end = position + 2 + length
      guard marker != 0xDA, length >= 2, end <= bytes.count else { break }
      if marker == 0xE1 { payloads.append(bytes[(position + 4)..<end]) }
      position = end
    }
    return payloads
  }
}

/// Reads fields of a TIFF structure in either byte order.
private struct TIFFReader {
  private let bytes: [UInt8]
  private let isBigEndian: Bool

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = Array(bytes)
    isBigEndian = self.bytes.starts(with: "MM".utf8)
  }

  /// The content identifier in an Apple MakerNote.
  var contentIdentifier: String? {
    guard let start = number(4, 4), let exif = field(0x8769, at: start),
      let directory = number(exif + 8, 4), let note = field(0x927C, at: directory),
      let size = number(note + 4, 4), let offset = number(note + 8, 4),
      size > 16, offset + size <= bytes.count
    else { return nil }
    let content = bytes[offset..<offset + size]
    guard content.starts(with: AppleMakerNote.prefix) else { return nil }
    // Offsets in the note are relative to the start of the note, which is big-endian.
    let inner = TIFFReader(Array(content), isBigEndian: true)
    guard
      let entry = inner.field(Int(AppleMakerNote.identifierTag), at: AppleMakerNote.prefix.count),
      let count = inner.number(entry + 4, 4), let place = inner.number(entry + 8, 4),
      count > 4, place + count <= inner.bytes.count
    else { return nil }
    return String(
      decoding: inner.bytes[place..<place + count].prefix { $0 != 0 }, as: UTF8.self)
  }

  private init(_ bytes: [UInt8], isBigEndian: Bool) {
    (self.bytes, self.isBigEndian) = (bytes, isBigEndian)
  }

  /// The offset of the entry for the field `tag` in the TIFF directory that begins at the offset
  /// `directory`.
  private func field(_ tag: Int, at directory: Int) -> Int? {
    guard let count = number(directory, 2) else { return nil }
    return (0..<count).lazy.map { directory + 2 + 12 * $0 }.first { number($0, 2) == tag }
  }

  private func number(_ offset: Int, _ size: Int) -> Int? {
    guard offset >= 0, offset + size <= bytes.count else { return nil }
    let part = bytes[offset..<offset + size]
    return (isBigEndian ? Array(part) : part.reversed()).reduce(0) { $0 << 8 | Int($1) }
  }
}

/// Reads the XMP metadata of a photo that contains a movie.
enum MotionPhotoXMP {
  /// The values in an XMP packet, which may come from a phone.
  struct Values {
    let isMotionPhoto: Bool
    let presentationMicroseconds: Int64?
    let movieByteCount: Int64?

    init(_ text: String) {
      let tokens = Tokens(text)
      // Phones before 2019 used the MicroVideo names.
      isMotionPhoto = tokens["MotionPhoto"] == "1" || tokens["MicroVideo"] == "1"
      let time =
        tokens["MotionPhotoPresentationTimestampUs"]
        ?? tokens["MicroVideoPresentationTimestampUs"]
      presentationMicroseconds = time.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
      movieByteCount =
        (tokens.length(ofSemantic: "MotionPhoto") ?? tokens["MicroVideoOffset"])
        .flatMap { Int64($0) }
    }
  }

  /// The names and values in an XMP packet, in order.
  ///
  /// The namespace prefixes of names are removed.
  private struct Tokens {
    private var values: [(name: Substring, value: Substring)] = []

    init(_ text: String) {
      // In XMP, a value is an attribute or the text of an element. In both cases, it follows its
      // name.
      for element in text.split(separator: "<") {
        guard let end = element.firstIndex(of: ">") else { continue }
        let tag = element[..<end]
        let content = element[element.index(after: end)...]
        let name = tag.prefix { !$0.isWhitespace && $0 != "/" }
        if !content.allSatisfy(\.isWhitespace) { values.append((Self.local(name), content)) }
        var rest = tag.dropFirst(name.count)
        while let sign = rest.firstIndex(of: "=") {
          let name = rest[..<sign].split(whereSeparator: \.isWhitespace).last ?? ""
          let quoted = rest[rest.index(after: sign)...].drop { $0.isWhitespace }
          guard let quote = quoted.first, quote == "\"" || quote == "'",
            let close = quoted.dropFirst().firstIndex(of: quote)
          else { break }
          values.append((Self.local(name), quoted.dropFirst()[..<close]))
          rest = quoted[quoted.index(after: close)...]
        }
      }
    }

    private static func local(_ name: Substring) -> Substring {
      name.split(separator: ":").last ?? name
    }

    subscript(name: String) -> String? {
      values.first { $0.name == name }.map { String($0.value) }
    }

    /// The length in bytes, as text, of the container item with this semantic, such as
    /// `MotionPhoto`.
    ///
    /// The fields of an item may have any order.
    func length(ofSemantic semantic: String) -> String? {
      var (isItem, length): (Bool, Substring?) = (false, nil)
      for (name, value) in values {
        switch name {
        case "Mime":
          if isItem, let length { return String(length) }
          (isItem, length) = (false, nil)
        case "Semantic": isItem = value == semantic
        case "Length": length = value
        default: break
        }
      }
      return isItem ? length.map(String.init) : nil
    }
  }
}
