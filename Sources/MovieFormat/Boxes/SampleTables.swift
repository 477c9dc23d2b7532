// SPDX-License-Identifier: Apache-2.0

/// Facts about the sample tables of a MOV or MP4 file that libavformat does not expose.
package struct SampleTables {
  /// Whether samples are presented in decode order, for each track in file order.
  ///
  /// This is true for a track without a composition offset table (`ctts`).
  package private(set) var tracksInOrder: [Bool] = []
  /// The size of the file in bytes.
  package let byteCount: Int64

  private static let compressedMovie: UInt32 = 0x636D_6F76  // cmov
  private static let compositionOffsets: UInt32 = 0x6374_7473  // ctts
  /// The container boxes on the path from `moov` to the sample tables.
  private static let containers: Set<UInt32> = [
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
    guard read(0..<byteCount, of: file) else { return nil }
  }

  /// Reads the boxes in a range, and notes for each track whether its samples are in order.
  ///
  /// Returns false if a box is damaged, or if the movie is fragmented or compressed.
  private mutating func read(_ range: Range<Int64>, of file: borrowing MovieBoxes) -> Bool {
    var start = range.lowerBound
    while start + 8 <= range.upperBound {
      guard let box = file.box(at: start, before: range.upperBound) else { return false }
      switch box.type {
      case BoxType.fragment, BoxType.extends, Self.compressedMovie: return false
      case BoxType.track: tracksInOrder.append(true)
      case Self.compositionOffsets:
        if !tracksInOrder.isEmpty { tracksInOrder[tracksInOrder.count - 1] = false }
      default: break
      }
      if Self.containers.contains(box.type), !read(box.start + box.headBytes..<box.end, of: file) {
        return false
      }
      start = box.end
    }
    return true
  }
}
