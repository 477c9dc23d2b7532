// SPDX-License-Identifier: Apache-2.0

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
