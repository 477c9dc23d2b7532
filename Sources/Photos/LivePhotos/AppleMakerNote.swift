// SPDX-License-Identifier: Apache-2.0

/// The MakerNote of Apple's devices with the content identifier of a Live Photo.
enum AppleMakerNote {
  /// The bytes before the directory: a name, a version and the byte order.
  static let prefix: [UInt8] = Array("Apple iOS".utf8) + [0, 0, 1] + Array("MM".utf8)
  static let identifierTag: UInt16 = 0x0011

  /// The note with an identifier.
  ///
  /// Its offsets count from its own start.
  static func bytes(contentIdentifier: String) -> [UInt8] {
    let directory = TIFFDirectory(fields: [identifierTag: .ascii(contentIdentifier)])
    return prefix + directory.bytes(at: prefix.count, next: 0)
  }
}
