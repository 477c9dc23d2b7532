// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A digest of a movie file that is stored in the file itself, so that damage is detected.
///
/// The digest is computed while zeros are stored in the file's metadata instead of the digest. The
/// digest then replaces these zeros.
enum FileSeal {
  /// The metadata key of the seal, which is the file's own digest.
  static let key = "com.overcrank.shard_seal"
  private static let mark = "sha256:"
  private static let zeros = String(repeating: "0", count: ContentDigest.digitCount)

  /// The metadata value in a file whose digest is not computed yet.
  static let placeholder = mark + zeros

  /// Computes the digest of a finished file, and stores it in place of the placeholder.
  ///
  /// - Throws: `CallFailure` if the file cannot be read or written, or has no placeholder.
  static func seal(_ path: String) throws(CallFailure) {
    let file = try MovieBoxes(opening: path)
    guard let found = offset(in: file), digits(at: found, in: file) == zeros,
      let known = digest(of: file, found)
    else { throw CallFailure("seal", path, EIO) }
    try file.file.write(Array(known.utf8), at: found)
  }

  /// Returns true if the file is unchanged since its digest was stored in it, and false otherwise.
  static func isIntact(_ path: String) -> Bool {
    guard let file = try? MovieBoxes(opening: path, forWriting: false),
      let offset = offset(in: file), let known = digest(of: file, offset)
    else { return false }
    return digits(at: offset, in: file) == known
  }

  /// Returns the byte offset of the digest that is stored in a file; nil if none is stored.
  private static func offset(in file: borrowing MovieBoxes) -> Int64? {
    guard let movie = file.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = file.bytes(of: movie)
    else { return nil }
    let searched = Array(mark.utf8)
    let last = bytes.count - searched.count - ContentDigest.digitCount
    guard last >= 0 else { return nil }
    // The search starts at the end, because the metadata is at the end of the index.
    for index in stride(from: last, through: 0, by: -1)
    where bytes[index] == searched[0]
      && bytes[index..<index + searched.count].elementsEqual(searched)
    {
      return movie.start + Int64(index + searched.count)
    }
    return nil
  }

  private static func digits(at offset: Int64, in file: borrowing MovieBoxes) -> String {
    String(decoding: file.file.read(ContentDigest.digitCount, at: offset), as: UTF8.self)
  }

  /// Computes the digest of a file, with zeros for the digest stored at the byte offset `seal`; nil
  /// if the file cannot be read.
  private static func digest(of file: borrowing MovieBoxes, _ seal: Int64) -> String? {
    guard var digest = try? ContentDigest() else { return nil }
    var offset: Int64 = 0
    while offset < file.byteCount {
      if offset == seal {
        digest.update(zeros)
        offset += Int64(ContentDigest.digitCount)
        continue
      }
      let end = offset < seal ? seal : file.byteCount
      let bytes = file.file.read(Int(min(1 << 20, end - offset)), at: offset)
      if bytes.isEmpty { return nil }
      digest.update(bytes)
      offset += Int64(bytes.count)
    }
    return digest.finish()
  }
}
