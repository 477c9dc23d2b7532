// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The tracks of a MOV or MP4 file whose samples are in other files (`dref`).
///
/// libavformat does not open those files, but still lists the samples.
package struct DataReferences {
  /// For each track, in the file's order, whether a data reference names another file.
  package private(set) var tracksElsewhere: [Bool] = []

  /// The size from which libavformat reads an alias as the name of another file.
  private static let smallestAlias: Int64 = 151
  /// What to do about such a movie.
  package static let recovery: Recovery = "give that file, or save the movie as self-contained"

  /// Reads the boxes of a movie.
  ///
  /// - Returns: Nil where the file cannot be read or has no index.
  package init?(of path: String) {
    guard let boxes = try? MovieBoxes(opening: path, forWriting: false),
      let movie = boxes.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = boxes.bytes(of: movie)
    else { return nil }
    let inside = Box.list(in: bytes, from: Int(movie.headBytes), to: bytes.count)
    tracksElsewhere = inside.filter { $0.type == BoxType.track }.map { track in
      guard
        let references = track.first(BoxType.trackMedia, in: bytes)?
          .first(BoxType.mediaInformation, in: bytes)?
          .first(BoxType.dataInformation, in: bytes)?
          .first(BoxType.dataReferences, in: bytes)
      else { return false }
      // Version, flags and count come before the entries.
      return Box.list(in: bytes, from: Int(references.start) + 16, to: Int(references.end))
        .contains { Self.isElsewhere($0, in: bytes) }
    }
  }

  /// What is wrong with such a movie: one line.
  package static func refusal(of path: String) -> String {
    "\(path) is a reference movie: its frames are in another file"
  }

  private static func isElsewhere(_ entry: Box, in bytes: [UInt8]) -> Bool {
    if entry.type == BoxType.alias { return entry.byteCount >= smallestAlias }
    // A URL with a location, without the flag that the samples are in this file.
    let content = Int(entry.start) + 8
    guard entry.type == BoxType.location, entry.byteCount > 13 else { return false }
    return bytes[content + 3] & 1 == 0 && bytes[content + 4] != 0
  }
}
