// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension Asset {
  /// A named instant of a movie.
  ///
  /// Marks are stored as chapters, so other players show them, too. An export moves each mark
  /// together with its frame.
  public struct Mark: Hashable, Sendable {
    /// The name of the mark, which is the title of its chapter.
    public let name: String
    /// The time of the mark after the first frame.
    public let time: MediaTime
    /// The index of the frame on screen at this time, from 0.
    ///
    /// Nil after the last frame, and without video.
    public let frameIndex: Int?
    /// The capture time of the frame at ``frameIndex``.
    ///
    /// It is the time on the driver's clock, if the file contains that time. Otherwise it is the
    /// time since the first frame, from the capture rate of the file or from frame times that are
    /// capture times. Nil if the file has none of these.
    public let captureTime: MediaTime?
  }

  /// The marks of the movie: its chapters with a title, in the order of their starts.
  ///
  /// The recorder stores the instant of a trigger as the mark `trigger`. If a movie has several, they
  /// are `trigger1`, `trigger2` and so on.
  ///
  /// If the movie has marks, this reads the capture times from the file.
  public var marks: [Mark] {
    let known = markTimes
    guard !known.isEmpty else { return [] }
    let frames = videoTrack?.frames
    let captured = frames == nil ? [] : captureTimes()
    return known.map { name, time in
      let index = frames?.index(at: time)
      return Mark(
        name: name, time: time, frameIndex: index,
        captureTime: index.flatMap { captured.indices.contains($0) ? captured[$0] : nil })
    }
  }

  /// The names and times of the marks.
  private var markTimes: [(name: String, time: MediaTime)] {
    let origin = videoTrack?.origin ?? .zero
    let marks = chapters.filter { !$0.title.isEmpty }.compactMap {
      chapter -> (name: String, time: MediaTime)? in
      let seconds = max(.zero, chapter.start - origin)
      // A time that `MediaTime` cannot represent exactly is rounded to a nanosecond.
      let units = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
      let near = units.flatMap { Int64(exactly: $0) }.map(MediaTime.init(nanoseconds:))
      return (MediaTime(exactly: seconds) ?? near).map { (chapter.title, $0) }
    }
    .sorted { $0.time < $1.time }
    guard marks.count(where: { $0.name == Self.triggerMark }) > 1 else { return marks }
    var number = 0
    return marks.map { mark -> (name: String, time: MediaTime) in
      guard mark.name == Self.triggerMark else { return mark }
      number += 1
      return ("\(mark.name)\(number)", mark.time)
    }
  }

  /// The name of the mark at a trigger.
  public static let triggerMark = "trigger"

  /// Returns the time of the first mark with a name.
  func markTime(_ name: String) throws(MediaError) -> MediaTime {
    let known = markTimes
    guard let mark = known.first(where: { $0.name == name }) else {
      throw .unknownMark(name, in: path, among: known.map(\.name))
    }
    return mark.time
  }

  /// Returns the capture time of each frame.
  ///
  /// - Returns: The times; nil for a frame of unknown origin. All are nil if the file gives no reason to
  ///   take its times for those of a capture.
  package func captureTimes() -> [MediaTime?] {
    guard let frames = videoTrack?.frames else { return [] }
    guard let clock = try? captureClock(), clock.assumption != .fileTimesAreReal
    else {
      return frames.entries.map { _ in nil }
    }
    return frames.entries.indices.map { clock.map.captureTime(ofFrame: $0) }
  }
}
