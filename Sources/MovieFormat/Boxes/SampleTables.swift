// SPDX-License-Identifier: Apache-2.0

/// What the boxes of a MOV or MP4 file say about its sample tables, beyond what libavformat tells.
package struct SampleTables {
  /// For each track, in the file's order, whether its samples are shown when they are decoded:
  /// there is no table of other times (`ctts`).
  package private(set) var tracksInOrder: [Bool] = []
  /// The bytes of the file.
  package let byteCount: Int64

  private static let compressedMovie: UInt32 = 0x636D_6F76  // cmov
  private static let compositionOffsets: UInt32 = 0x6374_7473  // ctts
  /// Boxes in which others lie, on the way to the tables.
  private static let containers: Set<UInt32> = [
    BoxType.movie, BoxType.track, BoxType.trackMedia, BoxType.mediaInformation,
    BoxType.sampleTable,
  ]

  /// Looks for the tables of a movie.
  ///
  /// - Returns: Nil where they are not all there is to know: in fragments, with a compressed index,
  ///   in what is damaged or cannot be read.
  package init?(of path: String) {
    guard let file = try? MovieBoxes(opening: path, forWriting: false), file.byteCount > 0 else {
      return nil
    }
    byteCount = file.byteCount
    guard read(0..<byteCount, of: file) else { return nil }
  }

  /// Whether all boxes of a range are whole and of the kinds that are understood.
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
