// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The data references (`dref`) of a MOV or MP4 file.
///
/// They state which tracks have their samples in another file. libavformat lists the samples of
/// such a track in its index but does not open the other file.
package struct DataReferences {
  /// For each track in file order, whether a data reference names another file.
  package private(set) var tracksElsewhere: [Bool] = []

  /// The least size in bytes at which libavformat reads an alias as a file name.
  private static let smallestAlias: Int64 = 151
  /// The advice for a reference movie, whose samples are in another file.
  package static let recovery: Recovery = "choose that file, or save the movie as self-contained"

  /// Reads the data references of a movie.
  ///
  /// - Returns: Nil if the file cannot be read or has no `moov` box.
  package init?(of path: String) {
    guard let boxes = try? MovieBoxes(opening: path, forWriting: false),
      let (movie, bytes) = boxes.movie(in: boxes.boxes())
    else { return nil }
    tracksElsewhere = movie.all(BoxType.track, in: bytes).map { track in
      guard
        let references = track.first(BoxType.trackMedia, in: bytes)?
          .first(BoxType.mediaInformation, in: bytes)?
          .first(BoxType.dataInformation, in: bytes)?
          .first(BoxType.dataReferences, in: bytes)
      else { return false }
      // The entries of the `dref` box follow the version, the flags and the number of entries.
      return Box.list(in: bytes, from: Int(references.start) + 16, to: Int(references.end))
        .contains { Self.isElsewhere($0, in: bytes) }
    }
  }

  /// The error message for a reference movie, whose samples are in another file.
  package static func refusal(of path: String) -> String {
    "\(path) is a reference movie: its frames are in another file"
  }

  private static func isElsewhere(_ entry: Box, in bytes: [UInt8]) -> Bool {
    if entry.type == BoxType.alias { return entry.byteCount >= smallestAlias }
    // The samples are in another file if the entry is a URL with a location and its flag "samples
    // in this file" is not set.
    let content = Int(entry.start) + 8
    guard entry.type == BoxType.location, entry.byteCount > 13 else { return false }
    return bytes[content + 3] & 1 == 0 && bytes[content + 4] != 0
  }
}
