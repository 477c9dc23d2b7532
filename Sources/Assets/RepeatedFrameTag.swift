// SPDX-License-Identifier: Apache-2.0

/// The metadata tag by which earlier versions stated which frames of a movie repeat the image before
/// them; now the time map does.
///
/// The text lists ranges of frame indices, for example `12,40+3` for the frames 12, 40, 41 and 42.
package struct RepeatedFrameTag: Hashable, Sendable {
  /// The key of the tag in a movie's metadata.
  package static let key = "com.overcrank.repeated_frames"

  /// The index ranges of repeated frames, in ascending order.
  package let ranges: [Range<Int64>]

  package init(_ ranges: [Range<Int64>]) { self.ranges = ranges }

  /// Parses the text of a tag.
  ///
  /// Returns nil if the text is invalid.
  ///
  package init?(_ text: String) {
    var ranges: [Range<Int64>] = []
    for part in text.split(separator: ",") {
      let numbers = part.split(separator: "+", omittingEmptySubsequences: false).map { Int64($0) }
      guard numbers.count <= 2, let first = numbers[0],
        let count = numbers.count == 2 ? numbers[1] : 1,
        first >= ranges.last?.upperBound ?? 0, count > 0,
        !first.addingReportingOverflow(count).overflow
      else { return nil }
      ranges.append(first..<first + count)
    }
    self.init(ranges)
  }

  /// Returns for each frame whether it is repeated.
  func flags(frameCount: Int) -> [Bool] {
    var flags = [Bool](repeating: false, count: frameCount)
    for range in ranges {
      for index in range.clamped(to: 0..<Int64(frameCount)) { flags[Int(index)] = true }
    }
    return flags
  }
}

extension Asset {
  /// The times of all frames of a constant-rate copy, with the sequence numbers of its source.
  ///
  /// - Parameter source: The frames of the source, each of which the copy shows once or several
  ///   times in a row.
  /// - Returns: The rows. Without sequence numbers if the copy does not show each frame of the source.
  package func frameTimingRows(copiedFrom source: [FrameTimingRow]) -> [FrameTimingRow] {
    let rows = frameTimingRows()
    guard rows.count(where: { $0.isDuplicate == false }) == source.count else { return rows }
    var next = 0
    return rows.map { row in
      if row.isDuplicate == false { next += 1 }
      guard source.indices.contains(next - 1) else { return row }
      let shown = source[next - 1]
      return FrameTimingRow(
        index: row.index, time: row.time, captureTime: shown.captureTime, sequence: shown.sequence,
        duration: row.duration, lostBefore: row.lostBefore, isDuplicate: row.isDuplicate)
    }
  }
}
