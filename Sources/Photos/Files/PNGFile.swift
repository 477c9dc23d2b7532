// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat

/// Adds metadata to PNG files.
enum PNGFile {
  /// The size in bytes of the signature and of the IHDR chunk, which is the first chunk.
  private static let headerSize = 33

  /// Returns a PNG file with Exif metadata in an `eXIf` chunk, which the third edition of PNG
  /// defines.
  static func adding(exif: [UInt8], to png: [UInt8]) -> [UInt8] {
    guard png.count > headerSize else { return png }
    let body = Array("eXIf".utf8) + exif
    let checksum = body.withUnsafeBytes { CRC32.checksum(of: $0) }
    let chunk = bigEndian(UInt32(exif.count)) + body + bigEndian(checksum)
    return png[..<headerSize] + chunk + png[headerSize...]
  }

  private static func bigEndian(_ number: UInt32) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }
}
