// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// Properties of the sample tables in a MOV or MP4 file that libavformat does not expose.
package struct SampleTables {
  /// For each track in file order, whether samples are presented in decode order.
  ///
  /// This is true for a track without a composition offset table (`ctts`).
  package private(set) var tracksInOrder: [Bool] = []
  /// For each track in file order, whether the index shows all properties of the packets.
  ///
  /// This is false for a track with several sample descriptions, with encrypted samples, or with
  /// dependency flags (`sdtp`).
  package private(set) var plainTracks: [Bool] = []
  /// The size of the movie file in bytes.
  package let byteCount: Int64

  private static let compressedMovie: UInt32 = 0x636D_6F76  // cmov
  private static let compositionOffsets: UInt32 = 0x6374_7473  // ctts
  /// The boxes that contain properties of single samples: sdtp, saiz, saio, senc.
  private static let sampleProperties: Set<UInt32> = [
    0x7364_7470, 0x7361_697A, 0x7361_696F, 0x7365_6E63,
  ]
  /// The types of the boxes around the sample tables, from `moov` inward.
  private static let containers = [
    BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
    BoxType.sampleTable,
  ]

  /// Reads the structure of a movie's index.
  ///
  /// - Returns: Nil if the sample tables are incomplete, because the file is fragmented or damaged,
  ///   has a compressed index, or cannot be read.
  package init?(of path: String) {
    guard let file = try? MovieBoxes(opening: path, forWriting: false), file.byteCount > 0 else {
      return nil
    }
    byteCount = file.byteCount
    guard read(0..<byteCount, of: file, depth: 0) else { return nil }
  }

  /// Reads the boxes in a range, and records for each track whether the samples are in order.
  ///
  /// Returns false if a box is damaged, or if the movie is fragmented or compressed. A container
  /// box is entered only at the expected depth, because a malicious file may nest boxes endlessly.
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
        // The number of sample descriptions follows the version and the flags of the box.
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
