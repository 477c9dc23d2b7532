// SPDX-License-Identifier: Apache-2.0

/// A parsed half-open range in the time of a source: `1.2..1.5`, `0.5+1.25`.
///
/// | Written | Means |
/// |---|---|
/// | `1.2..1.5` | from 1.2 s up to, but not including, 1.5 s |
/// | `-2s..end` `120f..240f` | each side is a ``TimeExpression`` |
/// | `3..` `..3` | from 3 s to the end, from the start to 3 s |
/// | `0.5+1.25` | 1.25 s, starting at 0.5 s |
/// | `@hit+1` `@run..@hit` | starting at a mark, for 1 s or up to another mark |
/// | `@hit-0.2..@hit+0.3` | from 0.2 s before a mark up to 0.3 s after it |
/// | `120f+60f` | 60 frames, starting at frame 120; the start is a frame, a mark or `start` |
///
/// With marks, a text that can be split at more than one `..` is refused. Without `..`, it is split at
/// the last `+` that a duration or a number of frames follows.
public struct TimeRangeExpression: Hashable, Sendable {
  enum Extent: Hashable, Sendable {
    case until(TimeExpression)
    case lasting(MediaTime)
    case frames(Int64)
  }

  /// The first instant inside the range.
  public let start: TimeExpression
  let extent: Extent

  /// All of the source.
  public static let whole = TimeRangeExpression(start: .start, extent: .until(.end))

  private init(start: TimeExpression, extent: Extent) {
    (self.start, self.extent) = (start, extent)
  }

  /// Makes the range from `start` up to, but not including, `end`.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the range would be empty or reversed whatever
  ///   the duration of the source.
  public init(start: TimeExpression, end: TimeExpression) throws(MediaError) {
    if start == end { throw .emptyRange }
    let isReversed =
      switch (start.form, end.form) {
      case (.afterStart(let first), .afterStart(let last)): last < first
      case (.beforeEnd(let first), .beforeEnd(let last)): first < last
      case (.frame(let first), .frame(let last)): last < first
      case (.frameBeforeEnd(let first), .frameBeforeEnd(let last)): first < last
      default: false
      }
    if isReversed { throw .reversedRange }
    self.init(start: start, extent: .until(end))
  }

  /// Makes the range that begins at `start` and lasts `duration`.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a duration of zero or below.
  public init(start: TimeExpression, duration: MediaTime) throws(MediaError) {
    guard duration > .zero else { throw .emptyRange }
    self.init(start: start, extent: .lasting(duration))
  }

  /// Makes the range of `frameCount` frames that begins at `start`.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a count of zero or below, `.syntax` when `start`
  ///   is neither a frame, nor a mark, nor the start of the source.
  public init(start: TimeExpression, frameCount: Int64) throws(MediaError) {
    guard frameCount > 0 else { throw .emptyRange }
    guard start.needsFrames || start.isMark || start == .start else {
      throw MediaError(.syntax, "a length in frames needs a frame to start at, as in 120f+60f")
    }
    self.init(start: start, extent: .frames(frameCount))
  }

  /// Parses a range.
  ///
  /// - Throws: `MediaError` with `.syntax` for text that is not a range, `.emptyRange` when the
  ///   range would be empty or reversed whatever the duration of the source. Errors of
  ///   ``TimeExpression/init(parsing:)`` are rethrown.
  public init(parsing text: String) throws(MediaError) {
    do throws(MediaError) {
      self = try Self.read(text)
    } catch {
      throw error.about(text, as: "a range")
    }
  }

  private static func read(_ text: String) throws(MediaError) -> TimeRangeExpression {
    let bytes = text.utf8
    let hasMarks = bytes.contains(UInt8(ascii: "@"))
    if hasMarks, let range = try readSides(text) { return range }
    if let plus = hasMarks ? lastPlus(in: text) : bytes.firstIndex(of: UInt8(ascii: "+")) {
      let start = try TimeExpression(parsing: text[..<plus])
      let length = text[bytes.index(after: plus)...]
      var reader = TextReader(length)
      if let frames = try reader.takeFrameAtEnd() {
        return try TimeRangeExpression(start: start, frameCount: frames)
      }
      return try TimeRangeExpression(start: start, duration: MediaTime(parsing: String(length)))
    }
    guard let dots = dots(in: bytes).first, bytes.count > 2 else {
      throw MediaError(.syntax, "write start..end (1.2..1.5, 2..end) or start+duration (0.5+1.25)")
    }
    let (start, end) = try sides(of: text, at: dots)
    return try TimeRangeExpression(start: start, end: end)
  }

  /// Reads a range with marks, whose names may contain `..`; nil if no `..` has a time on each side.
  private static func readSides(_ text: String) throws(MediaError) -> TimeRangeExpression? {
    var found: (start: TimeExpression, end: TimeExpression)?
    for dots in dots(in: text.utf8) {
      guard let sides = try? sides(of: text, at: dots) else { continue }
      guard found == nil else {
        throw MediaError(.syntax, "it can be read in more than one way, because a name contains ..")
      }
      found = sides
    }
    guard let found else { return nil }
    return try TimeRangeExpression(start: found.start, end: found.end)
  }

  private static func sides(
    of text: String, at dots: String.Index
  ) throws(MediaError) -> (start: TimeExpression, end: TimeExpression) {
    let start = text[..<dots]
    let end = text[text.utf8.index(dots, offsetBy: 2)...]
    return try (
      start.isEmpty ? .start : TimeExpression(parsing: start),
      end.isEmpty ? .end : TimeExpression(parsing: end)
    )
  }

  /// The indices of `..` in a text.
  private static func dots(in bytes: String.UTF8View) -> [String.Index] {
    let dot = UInt8(ascii: ".")
    return zip(bytes.indices, zip(bytes, bytes.dropFirst())).filter { $0.1 == (dot, dot) }.map(\.0)
  }

  /// The index of the last `+` that a duration or a number of frames follows, else of the first.
  private static func lastPlus(in text: String) -> String.Index? {
    let signs = text.utf8.indices.filter { text.utf8[$0] == UInt8(ascii: "+") }
    return signs.last { MarkOffset.distance(text[text.utf8.index(after: $0)...]) != nil }
      ?? signs.first
  }
}

extension TimeExpression {
  fileprivate var isMark: Bool { if case .mark = form { true } else { false } }
}

extension TimeRangeExpression: CustomStringConvertible {
  /// The range in the parseable syntax: `1.2..1.5`, `-2s..end`, `0.5+1.25`, `120f+60f`.
  ///
  /// The text parses back to an equal range.
  public var description: String {
    switch extent {
    case .until(let end): "\(start)..\(end)"
    case .lasting(let duration): "\(start)+\(duration.secondsText)"
    case .frames(let count): "\(start)+\(count)f"
    }
  }
}

extension TimeRangeExpression {
  /// True if ``resolved(sourceDuration:frameCount:frameTime:markTime:)`` needs the frames of the source,
  /// false if only its duration.
  public var needsFrames: Bool {
    switch extent {
    case .until(let end): start.needsFrames || end.needsFrames
    case .lasting: start.needsFrames
    case .frames: true
    }
  }

  /// Returns the range that the expression means in one source, whose time starts at zero.
  ///
  /// A range beyond the end of the source is returned unchanged; the caller decides whether that is
  /// an error.
  ///
  /// - Parameters:
  ///   - sourceDuration: The duration of the source, which `end` resolves to.
  ///   - frameCount: The number of frames in the source; evaluated only if ``needsFrames`` is true.
  ///   - frameTime: Returns the time of the frame with an index from 0 to `frameCount - 1`. Called
  ///     only if ``needsFrames`` is true.
  ///   - markTime: Returns the time of the mark with a name; nil if the source has none.
  /// - Returns: The range, longer than zero.
  /// - Throws: `MediaError` with `.emptyRange` for a range that is empty or reversed. Errors of
  ///   ``TimeExpression/resolved(sourceDuration:frameCount:frameTime:markTime:)`` are rethrown.
  public func resolved(
    sourceDuration: MediaTime,
    frameCount: @autoclosure () throws(MediaError) -> Int64,
    frameTime: (Int64) throws(MediaError) -> MediaTime,
    markTime: ((String) throws(MediaError) -> MediaTime)? = nil
  ) throws(MediaError) -> TimeRange {
    let first = try start.resolved(
      sourceDuration: sourceDuration, frameCount: frameCount(), frameTime: frameTime,
      markTime: markTime)
    let last: MediaTime
    switch extent {
    case .until(let end):
      last = try end.resolved(
        sourceDuration: sourceDuration, frameCount: frameCount(), frameTime: frameTime,
        markTime: markTime)
    case .lasting(let duration): last = try MediaTime(first + duration)
    case .frames(let length):
      let count = try frameCount()
      let origin =
        if let known = start.frameIndex(frameCount: count) {
          known
        } else {
          try MarkOffset.frameIndex(at: first, frameCount: count, frameTime: frameTime)
        }
      let index = origin.addingReportingOverflow(length)
      guard !index.overflow else {
        throw MediaError.afterEnd("the end of \(self)")
      }
      last = try TimeExpression.time(
        ofFrame: index.partialValue, sourceDuration: sourceDuration, frameCount: count,
        frameTime: frameTime)
    }
    guard first < last else {
      throw (first == last ? MediaError.emptyRange : .reversedRange)
        .about("\(self)", as: "a range of this source")
    }
    return try TimeRange(start: first, end: last)
  }
}

extension MediaError {
  fileprivate static let emptyRange = MediaError(.emptyRange, "it is empty")
  fileprivate static let reversedRange = MediaError(.emptyRange, "it ends before it starts")
}
