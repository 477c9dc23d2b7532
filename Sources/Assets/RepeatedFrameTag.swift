// SPDX-License-Identifier: Apache-2.0

/// The metadata tag that lists the frames of a movie that repeat the image of the frame before.
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

  /// The text of the tag.
  package var text: String {
    ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)+\($0.count)" }
      .joined(separator: ",")
  }

  /// Returns for each frame whether it repeats the image of the frame before.
  func flags(frameCount: Int) -> [Bool] {
    var flags = [Bool](repeating: false, count: frameCount)
    for range in ranges {
      for index in range.clamped(to: 0..<Int64(frameCount)) { flags[Int(index)] = true }
    }
    return flags
  }
}

extension Asset {
  /// The frame times of this movie, a constant-rate export, with the capture times and sequence
  /// numbers of the export's source.
  ///
  /// - Parameter source: The frame times of the source. The export shows each source frame once, or
  ///   repeats it.
  /// - Returns: The rows; without capture times if the export does not show all frames of the
  ///   source.
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
        duration: row.duration, lostBefore: 0, isDuplicate: row.isDuplicate)
    }
  }
}
