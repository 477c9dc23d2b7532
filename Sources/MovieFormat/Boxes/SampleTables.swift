// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// Facts about the sample tables of a MOV or MP4 file that libavformat does not expose.
package struct SampleTables {
  /// Whether samples are presented in decode order, for each track in file order.
  ///
  /// This is true for a track without a composition offset table (`ctts`).
  package private(set) var tracksInOrder: [Bool] = []
  /// Whether a track's index shows all properties of its packets, for each track in file order.
  ///
  /// This is false for a track with several sample descriptions, with encrypted samples, or with
  /// dependency flags (`sdtp`).
  package private(set) var plainTracks: [Bool] = []
  /// The size of the file in bytes.
  package let byteCount: Int64

  private static let compressedMovie: UInt32 = 0x636D_6F76  // cmov
  private static let compositionOffsets: UInt32 = 0x6374_7473  // ctts
  /// The boxes with properties of single samples: sdtp, saiz, saio, senc.
  private static let sampleProperties: Set<UInt32> = [
    0x7364_7470, 0x7361_697A, 0x7361_696F, 0x7365_6E63,
  ]
  /// The container boxes on the path from `moov` to the sample tables, from the outside in.
  private static let containers = [
    BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
    BoxType.sampleTable,
  ]

  /// Reads the structure of a movie's index.
  ///
  /// - Returns: Nil if the sample tables are incomplete, because the file is fragmented,
  ///   compressed, damaged or unreadable.
  package init?(of path: String) {
    guard let file = try? MovieBoxes(opening: path, forWriting: false), file.byteCount > 0 else {
      return nil
    }
    byteCount = file.byteCount
    guard read(0..<byteCount, of: file, depth: 0) else { return nil }
  }

  /// Reads the boxes in a range, and notes for each track whether its samples are in order.
  ///
  /// Returns false if a box is damaged, or if the movie is fragmented or compressed. A container is
  /// entered only at its own depth, because a hostile file may nest boxes without end.
  private mutating func read(
    _ range: Range<Int64>, of file: borrowing MovieBoxes, depth: Int
  ) -> Bool {
    var start = range.lowerBound
    var window = BoxWindow()
    while start + 8 <= range.upperBound {
      guard let box = file.box(at: start, before: range.upperBound, through: &window) else {
        return false
      }
      switch box.type {
      case BoxType.fragment, BoxType.extends, Self.compressedMovie: return false
      case BoxType.track:
        tracksInOrder.append(true)
        plainTracks.append(true)
      case BoxType.sampleDescriptions:
        // The number of descriptions follows the version and the flags.
        let head = file.file.read(8, at: box.start + box.headBytes)
        if head.suffix(4) != [0, 0, 0, 1] { excludeLastTrack() }
      case let type where Self.sampleProperties.contains(type): excludeLastTrack()
      case Self.compositionOffsets:
        if !tracksInOrder.isEmpty { tracksInOrder[tracksInOrder.count - 1] = false }
      default: break
      }
      if depth < Self.containers.count, box.type == Self.containers[depth],
        !read(box.start + box.headBytes..<box.end, of: file, depth: depth + 1)
      {
        return false
      }
      start = box.end
    }
    return true
  }

  private mutating func excludeLastTrack() {
    if !plainTracks.isEmpty { plainTracks[plainTracks.count - 1] = false }
  }
}
