// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Adds the chapter list of Nero (`chpl`) to the index of a movie.
///
/// libavformat and players read it. A chapter lasts until the next one, so an instant is a chapter of one
/// frame with a chapter without a title behind it.
package enum ChapterListBox {
  private static let userData: UInt32 = 0x7564_7461  // udta
  private static let chapterList: UInt32 = 0x6368_706C  // chpl
  /// The greatest number of chapters, which the box counts in a byte.
  private static let maximumCount = 255

  /// The chapters that mark instants of a movie.
  ///
  /// - Parameters:
  ///   - instants: The instants in microseconds, in any order. Equal ones are marked once, and those
  ///     outside the movie not at all.
  ///   - title: The title of each.
  ///   - length: The length of a chapter in microseconds, above zero.
  ///   - end: The end of the movie in microseconds.
  /// - Returns: The titles and starts, in order.
  package static func chapters(
    at instants: [Int64], title: String, length: Int64, end: Int64
  ) -> [(title: String, start: Int64)] {
    let marked = Set(instants).filter { $0 >= 0 && $0 < end }.sorted()
    var chapters: [(title: String, start: Int64)] = []
    for (index, instant) in marked.enumerated() {
      if chapters.isEmpty, instant > 0 { chapters.append(("", 0)) }
      chapters.append((title, instant))
      let next = index + 1 < marked.count ? marked[index + 1] : end
      if instant &+ length < next { chapters.append(("", instant &+ length)) }
    }
    return Array(chapters.prefix(maximumCount))
  }

  /// Adds chapters to an index.
  ///
  /// - Parameters:
  ///   - chapters: The titles and the starts in microseconds; titles have at most 255 bytes.
  ///   - bytes: Boxes with a `moov` box among them. The array grows.
  package static func add(_ chapters: [(title: String, start: Int64)], to bytes: inout [UInt8]) {
    guard !chapters.isEmpty,
      let movie = Box.list(in: bytes, from: 0, to: bytes.count)
        .first(where: { $0.type == BoxType.movie }), movie.headBytes == 8
    else { return }
    var list = BoxBytes()
    list.fullBox(chapterList, version: 1, flags: 0) { box in
      box.append(UInt32(0))
      box.append(UInt8(clamping: chapters.count))
      for chapter in chapters.prefix(maximumCount) {
        let title = Array(chapter.title.utf8.prefix(255))
        box.append(UInt64(clamping: chapter.start.saturatingMultiplied(by: 10)))
        box.append(UInt8(clamping: title.count))
        box.append(bytes: title)
      }
    }
    var added = list.bytes
    let position: Int
    if let user = movie.first(userData, in: bytes), user.headBytes == 8 {
      // The list goes first: QuickTime ends the user data with a zero.
      position = Int(user.start) + 8
      grow(user, by: added.count, in: &bytes)
    } else {
      var user = BoxBytes()
      user.box(userData) { $0.append(bytes: list.bytes) }
      added = user.bytes
      position = Int(movie.end)
    }
    grow(movie, by: added.count, in: &bytes)
    bytes.insert(contentsOf: added, at: position)
  }

  /// Writes a greater size into the header of a box.
  private static func grow(_ box: Box, by count: Int, in bytes: inout [UInt8]) {
    var size = BoxBytes()
    size.append(UInt32(clamping: box.byteCount + Int64(count)))
    bytes.replaceSubrange(Int(box.start)..<Int(box.start) + 4, with: size.bytes)
  }
}
