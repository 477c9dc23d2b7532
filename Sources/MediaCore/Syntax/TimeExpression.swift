// SPDX-License-Identifier: Apache-2.0

/// A parsed time, possibly relative to a source: `1.25`, `120f`, `-2s`.
///
/// | Written | Means |
/// |---|---|
/// | `1.25` `1.25s` `1/3` | seconds from the start of the source |
/// | `250ms` `40us` `40µs` `7ns` `2m` `2min` `1h` | a time in another unit |
/// | `1h30m` `1m2.5s` | a sum of units, in descending order |
/// | `1:02.5` `00:01:02.500` | minutes and seconds, or hours, minutes and seconds |
/// | `120f` | the time of frame 120, counted from 0 |
/// | `start` `end` | the first instant of the source, the first instant after it |
/// | `-2s` `-250ms` `-1:02.5` | the time that lies this duration before the end |
/// | `-120f` | the 120th frame from the end; `-1f` is the last one |
/// | `@hit` | the time of the mark `hit` |
/// | `@hit+0.3` `@hit-120f` | a time after or before a mark |
///
/// In clock notation every field but the first has two digits, and minutes and seconds are at most
/// 59. In a sum of units every number but the last is whole. A decimal point needs digits on both
/// sides. Nothing is rounded: a time that no ``MediaTime`` represents exactly is an error. Such times
/// usually have more than nine decimals.
///
/// The name of a mark is the rest of the text. If the source has no mark of this name, the text is split
/// at the last `+` or `-` that a duration or a number of frames follows. Frames are counted from the one
/// that is shown at the mark.
public struct TimeExpression: Hashable, Sendable {
  enum Form: Hashable, Sendable {
    case afterStart(MediaTime)
    case beforeEnd(MediaTime)
    case frame(Int64)
    /// The count is above zero. A count of zero means the end and is stored as `beforeEnd(.zero)`,
    /// so that equal expressions compare equal.
    case frameBeforeEnd(Int64)
    /// The text is a name, or a name with a ``MarkOffset``. It is not empty.
    case mark(String)
  }

  let form: Form

  /// The first instant of the source: zero.
  public static let start = TimeExpression(form: .afterStart(.zero))
  /// The first instant after the source.
  public static let end = TimeExpression(form: .beforeEnd(.zero))

  private init(form: Form) { self.form = form }

  /// Makes an expression for a time in the source.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a negative time.
  public init(_ time: MediaTime) throws(MediaError) {
    guard time >= .zero else { throw .beforeStart("the time \(time.displayText) s") }
    form = .afterStart(time)
  }

  /// Makes an expression for the time that lies `duration` before the end of the source.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a negative duration.
  public init(beforeEnd duration: MediaTime) throws(MediaError) {
    guard duration >= .zero else {
      throw .afterEnd("the time \(duration.displayText) s before the end")
    }
    form = .beforeEnd(duration)
  }

  /// Makes an expression for the time of a frame.
  ///
  /// The first frame has the index 0.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a negative index.
  public init(frame index: Int64) throws(MediaError) {
    guard index >= 0 else { throw .beforeStart("frame \(index)") }
    form = .frame(index)
  }

  /// Makes an expression for the frame that is `count` frames before the end.
  ///
  /// A count of 1 is the last frame, 0 is the end of the source.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a negative count.
  public init(framesBeforeEnd count: Int64) throws(MediaError) {
    guard count >= 0 else { throw .afterEnd("the frame \(count) frames before the end") }
    form = count == 0 ? .beforeEnd(.zero) : .frameBeforeEnd(count)
  }

  /// Makes an expression for the time of a mark, or for a time before or after a mark.
  ///
  /// - Throws: `MediaError` with `.syntax` for an empty name.
  public init(mark name: String) throws(MediaError) {
    guard !name.isEmpty else {
      throw MediaError(.syntax, "write the name of a mark after the @, such as @hit")
    }
    form = .mark(name)
  }

  /// Parses a time.
  ///
  /// - Throws: `MediaError` with `.syntax` for text that is not a time, `.overflow` for a time that
  ///   fits no ``MediaTime`` exactly, `.notPositive` for a zero denominator.
  public init(parsing text: String) throws(MediaError) {
    try self.init(parsing: text[...])
  }

  init(parsing text: Substring) throws(MediaError) {
    do throws(MediaError) {
      self = try Self.read(text)
    } catch {
      throw error.about(String(text), as: "a time")
    }
  }

  private static func read(_ text: Substring) throws(MediaError) -> TimeExpression {
    if text == "start" { return .start }
    if text == "end" { return .end }
    if text.first == "@" { return try TimeExpression(mark: String(text.dropFirst())) }
    var reader = TextReader(text)
    let isBeforeEnd = reader.take("-")
    if let frame = try reader.takeFrameAtEnd() {
      return try isBeforeEnd ? TimeExpression(framesBeforeEnd: frame) : TimeExpression(frame: frame)
    }
    guard let seconds = try reader.takeSeconds(), reader.isAtEnd else {
      throw MediaError(
        .syntax,
        "write seconds (1.25), 250ms, 40us, 1m30s, 1:02.5, 120f, @mark, end, or -2s from the end")
    }
    let time = try MediaTime(seconds)
    return try isBeforeEnd ? TimeExpression(beforeEnd: time) : TimeExpression(time)
  }
}

extension TimeExpression: CustomStringConvertible {
  /// The expression in the parseable syntax: `1.25`, `1/3`, `120f`, `-2s`, `@hit`, `end`.
  ///
  /// The text parses back to an equal expression.
  public var description: String {
    switch form {
    case .afterStart(let time): time.secondsText
    case .beforeEnd(.zero): "end"
    case .beforeEnd(let duration): "-\(duration.secondsText)s"
    case .frame(let index): "\(index)f"
    case .frameBeforeEnd(let count): "-\(count)f"
    case .mark(let name): "@\(name)"
    }
  }
}

extension MediaTime {
  /// Parses a time or duration that does not depend on a source: `1.25`, `250ms`, `1:02.5`.
  ///
  /// The syntax is that of ``TimeExpression`` without frames, `start`, `end` and signs.
  ///
  /// - Throws: `MediaError` as ``TimeExpression/init(parsing:)`` does.
  public init(parsing text: String) throws(MediaError) {
    do throws(MediaError) {
      var reader = TextReader(text[...])
      guard let seconds = try reader.takeSeconds(), reader.isAtEnd else {
        throw MediaError(.syntax, "write seconds (1.25), 250ms, 40us, 1m30s or 1:02.5")
      }
      try self.init(seconds)
    } catch {
      throw error.about(text, as: "a duration")
    }
  }
}

extension TextReader {
  /// Consumes a frame number and its `f` if they are the rest of the text.
  mutating func takeFrameAtEnd() throws(MediaError) -> Int64? {
    var ahead = self
    guard let digits = ahead.takeDigits(), ahead.take("f"), ahead.isAtEnd else { return nil }
    self = ahead
    guard let index = Int64(exactly: try Self.wholeNumber(digits)) else { throw .overflow("it") }
    return index
  }

  /// Consumes a clock time, a number with an optional unit, or a sum of units such as `1h30m`.
  mutating func takeSeconds() throws(MediaError) -> Rational? {
    if let clock = try takeClock() { return clock }
    var (seconds, last) = (Rational.zero, Rational?.none)
    while true {
      var ahead = self
      guard let digits = ahead.takeDigits(), let unit = ahead.takeUnit(), !ahead.isAtEnd,
        last.map({ unit < $0 }) ?? true
      else { break }
      let number = try Rational(Self.wholeNumber(digits))
      (self, last) = (ahead, unit)
      seconds += number * unit
    }
    guard let number = try takeNumber() else { return nil }
    let unit = takeUnit()
    if let last {
      guard let unit, unit < last else { return nil }
    }
    return seconds + number * (unit ?? .one)
  }

  /// Consumes a unit and returns its length in seconds.
  private mutating func takeUnit() -> Rational? {
    // The micro sign (U+00B5) and the Greek mu (U+03BC) look alike, and keyboards produce either,
    // so both are accepted.
    for micro in ["us", "\u{B5}s", "\u{3BC}s"] where take(micro) {
      return Rational(reducing: 1, 1_000_000)
    }
    if take("ms") { return Rational(reducing: 1, 1000) }
    if take("ns") { return Rational(reducing: 1, 1_000_000_000) }
    if take("min") || take("m") { return Rational(60) }
    if take("h") { return Rational(3600) }
    return take("s") ? .one : nil
  }

  /// Consumes a clock time: `1:02.5` or `00:01:02.500`.
  private mutating func takeClock() throws(MediaError) -> Rational? {
    var ahead = self
    guard let first = ahead.takeDigits(), ahead.take(":"),
      let second = ahead.takeDigits()
    else { return nil }
    var fields = [first, second]
    if ahead.take(":") {
      guard let third = ahead.takeDigits() else { return nil }
      fields.append(third)
    }
    guard fields.dropFirst().allSatisfy({ $0.count == 2 }) else {
      throw MediaError(.syntax, "minutes after hours, and seconds, have two digits, as in 1:02")
    }
    var whole: Int128 = 0
    for (position, field) in fields.enumerated() {
      let number = try Self.wholeNumber(field)
      guard number <= 59 || (position == 0 && fields.count == 3) else {
        throw MediaError(.syntax, "minutes and seconds of a clock end at 59")
      }
      guard let sum = Int64(exactly: number) else { throw .overflow("it") }
      whole = whole * 60 + Int128(sum)
    }
    let seconds = Rational(reducing: whole, 1)
    self = ahead
    guard let decimals = takeDecimals() else { return seconds }
    return try seconds + Self.rational("0".utf8[...], decimals: decimals)
  }
}

extension TimeExpression {
  /// True if ``resolved(sourceDuration:frameCount:frameTime:markTime:)`` needs the frames of the source,
  /// false if only its duration.
  public var needsFrames: Bool {
    switch form {
    case .afterStart, .beforeEnd: false
    case .frame, .frameBeforeEnd: true
    case .mark(let text):
      if case .frames? = MarkOffset(text)?.distance { true } else { false }
    }
  }

  /// Returns the time that the expression means in one source, whose time starts at zero.
  ///
  /// The frame index `frameCount` resolves to the end of the source, so `0f..240f` covers all 240
  /// frames. A time after the end is returned unchanged; the caller decides whether that is an
  /// error.
  ///
  /// - Parameters:
  ///   - sourceDuration: The duration of the source, which `end` resolves to.
  ///   - frameCount: The number of frames in the source; evaluated only if ``needsFrames`` is true.
  ///   - frameTime: Returns the time of the frame with an index from 0 to `frameCount - 1`. Called
  ///     only if ``needsFrames`` is true.
  ///   - markTime: Returns the time of the mark with a name; nil if the source has none.
  /// - Returns: The time, never negative.
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start, a frame out of range
  ///   or an unknown mark, `.overflow` when the time is not exactly representable. Errors of
  ///   `frameCount`, `frameTime` and `markTime` are rethrown.
  public func resolved(
    sourceDuration: MediaTime,
    frameCount: @autoclosure () throws(MediaError) -> Int64,
    frameTime: (Int64) throws(MediaError) -> MediaTime,
    markTime: ((String) throws(MediaError) -> MediaTime)? = nil
  ) throws(MediaError) -> MediaTime {
    switch form {
    case .afterStart(let time): return time
    case .mark(let text):
      guard let markTime else { throw .unknownMark(text, among: []) }
      do throws(MediaError) { return try markTime(text) } catch {
        guard error.code == .outsideSource, let offset = MarkOffset(text) else { throw error }
        return try offset.time(
          from: markTime(offset.name), sourceDuration: sourceDuration,
          frameCount: { () throws(MediaError) in try frameCount() }, frameTime: frameTime)
      }
    case .beforeEnd(let duration):
      guard duration <= sourceDuration else {
        throw MediaError.beforeStart(
          "\(self) in a source of \(sourceDuration.displayText) s")
      }
      return try MediaTime(sourceDuration - duration)
    case .frame(let index):
      return try Self.time(
        ofFrame: index, sourceDuration: sourceDuration, frameCount: frameCount(),
        frameTime: frameTime)
    case .frameBeforeEnd(let left):
      let count = try frameCount()
      guard left <= count else {
        throw MediaError.beforeStart("\(self) in a source of \(count) frames")
      }
      return try frameTime(count - left)
    }
  }

  /// Returns the frame index that the expression names, which is 0 for the start of the source; nil
  /// if it names another time.
  func frameIndex(frameCount: Int64) -> Int64? {
    switch form {
    case .afterStart(let time): time == .zero ? 0 : nil
    case .beforeEnd, .mark: nil
    case .frame(let index): index
    case .frameBeforeEnd(let left): frameCount - left
    }
  }

  static func time(
    ofFrame index: Int64, sourceDuration: MediaTime, frameCount: Int64,
    frameTime: (Int64) throws(MediaError) -> MediaTime
  ) throws(MediaError) -> MediaTime {
    guard index <= frameCount else {
      throw MediaError.afterEnd("frame \(index) in a source of \(frameCount) frames")
    }
    return try index == frameCount ? sourceDuration : frameTime(index)
  }
}

extension MediaError {
  /// The error for a mark that the source does not have.
  package static func unknownMark(
    _ name: String, in source: String = "the source", among names: [String]
  ) -> MediaError {
    let known = names.map { "@\($0)" }.joined(separator: ", ")
    return MediaError(
      .outsideSource, "\(source) has no mark named \(name)",
      recovery: Recovery(
        names.isEmpty ? "write a time instead" : "choose one of its marks: \(known)"))
  }

  static func beforeStart(_ what: String) -> MediaError {
    MediaError(.outsideSource, "\(what) is before the start of the source")
  }

  static func afterEnd(_ what: String) -> MediaError {
    MediaError(.outsideSource, "\(what) is after the end of the source")
  }
}
