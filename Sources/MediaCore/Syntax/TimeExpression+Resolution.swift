// SPDX-License-Identifier: Apache-2.0

extension TimeExpression {
  /// Whether the frames of the source must be known to tell the time.
  public var needsFrames: Bool {
    switch form {
    case .afterStart, .beforeEnd: false
    case .frame, .frameBeforeEnd: true
    }
  }

  /// The time that is meant in one source, whose first instant is zero.
  ///
  /// A number of frames equal to `frameCount` is the end of the source, so that `0f..240f` is
  /// all of a source of 240 frames. A time after the end is given as it is: whether that is an
  /// error is for the caller to say.
  ///
  /// - Parameters:
  ///   - sourceDuration: How long the source is, which is what `end` means.
  ///   - frameCount: How many frames the source has; only asked where ``needsFrames``.
  ///   - frameTime: Answers with the time of a frame, from 0 up to, but not including,
  ///     `frameCount`; only asked where ``needsFrames``.
  /// - Returns: The time, never before zero.
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start or a frame that
  ///   is not there, `.overflow` when the time cannot be said exactly; and what `frameCount`
  ///   and `frameTime` throw.
  public func resolved(
    sourceDuration: MediaTime,
    frameCount: @autoclosure () throws(MediaError) -> Int64,
    frameTime: (Int64) throws(MediaError) -> MediaTime
  ) throws(MediaError) -> MediaTime {
    switch form {
    case .afterStart(let time): return time
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

  /// The index of the frame this starts at, if it is a frame; the start is frame 0.
  func frameIndex(frameCount: Int64) -> Int64? {
    switch form {
    case .afterStart(let time): time == .zero ? 0 : nil
    case .beforeEnd: nil
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
  static func beforeStart(_ what: String) -> MediaError {
    MediaError(.outsideSource, "\(what) is before the start of the source")
  }

  static func afterEnd(_ what: String) -> MediaError {
    MediaError(.outsideSource, "\(what) is after the end of the source")
  }
}
