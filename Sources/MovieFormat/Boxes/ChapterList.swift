// SPDX-License-Identifier: Apache-2.0

/// Makes the chapter list of a movie, see ``MovieIndex/chapterList``.
///
/// A chapter lasts until the next one, so an instant is a chapter of one frame with a chapter without a
/// title behind it.
package enum ChapterList {
  /// The greatest number of chapters, which the box counts in a byte.
  static let maximumCount = 255

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
}
