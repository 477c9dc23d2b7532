// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankMovieFormat

/// A metadata value whose frame may not be stored yet.
struct PendingValue: Sendable {
  /// The frame that a metadata value belongs to.
  enum Position: Sendable {
    /// The frame with this index in the take, over all its files.
    case frame(Int64)
    /// The last frame captured at or before this time, in microseconds of the camera's clock.
    case captured(Int64)
    /// The last frame captured at or before this time, unless the file of that frame is already
    /// finished.
    ///
    /// The time is in microseconds of the camera's clock. A value that arrives after the file is
    /// finished is not stored.
    case frameTime(Int64)
  }

  var position: Position
  var key: String
  var value: MetadataValue
}

/// The metadata values of a take that wait until their frames are stored.
struct PendingValues {
  /// Whether more frames may follow the stored ones.
  enum End {
    /// No end yet: more frames of the file may come.
    case none
    /// The file ends at this time, in microseconds of the file, and the next file begins.
    case file(Int64)
    /// The take ends.
    case take
  }

  private(set) var waiting: [PendingValue] = []
  /// The number of frames in the files before this one.
  private(set) var earlierCount: Int64 = 0
  /// The number of metadata values that arrived after the file of their frame was finished.
  private(set) var lateCount = 0

  mutating func add(_ values: [PendingValue]) { waiting += values }

  /// Continues with the take's next file, after a file with `count` frames.
  mutating func begin(afterFrames count: Int64) { earlierCount += count }

  /// Removes and returns the values whose frames are stored, with their times in the file.
  ///
  /// - Parameters:
  ///   - times: The times of the stored frames in microseconds, ascending.
  ///   - margin: The number of frames at the end of `times` between which reordered frames may
  ///     still be stored.
  ///   - clock: The clock that converts capture times to times of the file.
  ///   - end: Whether more frames may follow the stored ones.
  /// - Returns: The values, in order of arrival.
  mutating func take(
    times: [Int64], margin: Int, clock: PausableClock, end: End
  ) -> [TimedValue] {
    guard !waiting.isEmpty, !times.isEmpty else { return [] }
    let isEnd = if case .none = end { false } else { true }
    let decidedCount = isEnd ? times.count : max(0, times.count - margin)
    var values: [TimedValue] = []
    var rest: [PendingValue] = []
    for value in waiting {
      var index: Int?
      switch value.position {
      case .frame(let frame) where frame < earlierCount:
        lateCount += 1
        continue
      case .frame(let frame):
        index = Int(exactly: frame &- earlierCount).flatMap { $0 < decidedCount ? $0 : nil }
      case .captured(let microseconds), .frameTime(let microseconds):
        let time = clock.time(ofMicroseconds: microseconds)
        let next = times.partitioningIndex { $0 > time }
        let belongs =
          switch end {
          case .none: next < decidedCount
          case .file(let end): time < end
          case .take: true
          }
        if case .frameTime = value.position, next == 0, decidedCount > 0 {
          lateCount += 1
          continue
        }
        if belongs { index = max(0, next - 1) }
      }
      if let index {
        values.append(TimedValue(ticks: times[index], key: value.key, value: value.value))
      } else {
        rest.append(value)
      }
    }
    waiting = rest
    return values
  }

  /// The warning about values whose frames are in no file at the end of the take, or nil.
  var warning: String? {
    let count = waiting.count + lateCount
    guard count > 0 else { return nil }
    return count == 1
      ? "1 metadata value was not stored: its frame is not in the file"
      : "\(count) metadata values were not stored: their frames are not in the file"
  }
}
