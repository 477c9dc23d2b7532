// SPDX-License-Identifier: Apache-2.0

/// Apple's MakerNote, with the content identifier of a Live Photo.
enum AppleMakerNote {
  /// The bytes before the directory of fields: a name, a version and the byte order.
  static let prefix: [UInt8] = Array("Apple iOS".utf8) + [0, 0, 1] + Array("MM".utf8)
  static let identifierTag: UInt16 = 0x0011

  /// Returns a MakerNote that contains an identifier.
  ///
  /// The offsets in the note are relative to the start of the note.
  static func bytes(contentIdentifier: String) -> [UInt8] {
    let directory = TIFFDirectory(fields: [identifierTag: .ascii(contentIdentifier)])
    return prefix + directory.bytes(at: prefix.count, next: 0)
  }
}
