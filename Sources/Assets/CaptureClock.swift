// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

/// The times at which the frames of a movie were captured, and where they are known from.
///
/// Everything that measures time in a movie uses it, so that a slowed movie gives the times of the
/// event and not those of its playback.
public struct CaptureClock: Sendable {
  /// The origin of capture times.
  public enum Source: String, Hashable, Sendable, CaseIterable, Codable {
    /// The time map that this library writes into a movie.
    case map
    /// The ledger of a recording.
    case recording
    /// A capture rate that the file states.
    case tag
    /// A capture rate that the caller gave.
    case option
    /// The times of the file itself.
    case file
  }

  /// The clock to use.
  public enum Choice: String, Hashable, Sendable, CaseIterable, Codable {
    /// The time of the capture.
    case capture
    /// The time of the file, as players show it.
    case file
  }

  /// The origin of the times.
  public let source: Source
  /// The assumption on which the times rest; nil if none is needed.
  public let assumption: Assumption?
  /// The time map of the frames.
  public let map: TimeMap
  private let frames: FrameTable

  /// An assumption about a movie that states no capture rate.
  public enum Assumption: String, Hashable, Sendable, Codable {
    /// The file was neither slowed down nor sped up.
    case fileTimesAreReal = "file_times_are_real"
    /// The file from which this movie was made was neither slowed down nor sped up.
    case originalTimesAreReal = "original_times_are_real"
  }

  init(_ source: Source, _ map: TimeMap, _ frames: FrameTable) {
    (self.source, self.map, self.frames) = (source, map, frames)
    let isAssumed = map.recordings.contains { $0.basis == .fileTimes }
    switch source {
    case .map: assumption = isAssumed ? .originalTimesAreReal : nil
    case .file: assumption = .fileTimesAreReal
    case .recording, .tag, .option: assumption = nil
    }
  }

  init(times map: TimeMap, _ frames: FrameTable) {
    (source, self.map, self.frames, assumption) = (.file, map, frames, nil)
  }

  /// The time scale of all frames, see ``timeScale(in:)``.
  public var timeScale: Rational? { timeScale(in: 0..<map.frames.count) }

  /// Seconds of capture time per second of the movie: 1/8 for a movie that shows 240 frames per second
  /// at 30.
  ///
  /// - Parameter range: The indices of the frames.
  /// - Returns: The scale. Nil if it varies among the frames, or if one of them has an unknown origin.
  public func timeScale(in range: Range<Int>) -> Rational? {
    var scale: Rational?
    for segment in map.segments where segment.frames.overlaps(range) {
      guard let own = segment.timeScale, scale == nil || scale == own else { return nil }
      scale = own
    }
    return scale
  }

  /// Returns the capture time of a frame in seconds; nil for one of unknown origin.
  ///
  /// Times of one part can be compared, see ``part(ofFrame:)``.
  public func seconds(ofFrame index: Int) -> Rational? {
    map.captureTime(ofFrame: index)?.seconds
  }

  /// Returns the capture time at an instant of the movie in seconds.
  ///
  /// Between two frames, time goes on at the speed of the movie.
  ///
  /// - Parameter time: The time in the movie.
  /// - Returns: The time; nil outside the movie, and where the origin of the frame is unknown.
  public func seconds(at time: MediaTime) -> Rational? {
    let end = MediaTime(frames.endTicks, over: frames.timescale)
    guard
      let index = time == end ? frames.entries.indices.last : frames.index(at: time),
      let start = seconds(ofFrame: index), let shown = try? frames.time(ofFrame: Int64(index))
    else { return nil }
    let passed = time - shown
    if passed == .zero { return start }
    if let scale = map.segments[map.segmentIndex(ofFrame: index)].timeScale {
      return (start + passed * scale).ifValid
    }
    // On a ramp, the next frame shows the speed.
    let duration = Rational(Int128(frames.entries[index].duration), over: Int128(frames.timescale))
    guard index + 1 < map.frames.count, part(ofFrame: index + 1) == part(ofFrame: index),
      let next = seconds(ofFrame: index + 1)
    else { return start }
    return (start + (next - start) * (passed / duration)).ifValid
  }

  /// Returns the number of the part of a frame: frames of one part were captured one after another in
  /// one recording, without a cut between them.
  ///
  /// Nil for a frame of unknown origin.
  public func part(ofFrame index: Int) -> Int? {
    guard map.frames.indices.contains(index) else { return nil }
    var segment = map.segmentIndex(ofFrame: index)
    guard map.segments[segment].recording != nil else { return nil }
    while map.segments[segment].isContinued { segment -= 1 }
    return segment
  }
}

extension CaptureClock {
  /// Returns the last frame of a part.
  package func lastFrame(ofPart part: Int) -> Int? {
    guard map.segments.indices.contains(part) else { return nil }
    var last = part
    while last + 1 < map.segments.count, map.segments[last + 1].isContinued { last += 1 }
    return map.segments[last].frames.last
  }
}

extension Asset {
  /// Returns the capture times of the frames.
  ///
  /// They come from the time map or the ledger of the file, else from the capture rate that it states,
  /// else its own times are taken for capture times.
  ///
  /// - Parameters:
  ///   - choice: The clock; `file` takes the times of the file as they are. Nil for `capture`, or the
  ///     choice of ``measured(by:captureFrameRate:)``.
  ///   - captureFrameRate: The capture rate, which counts more than what the file states. If the speed
  ///     of the movie changes, each frame was captured one period after the one before.
  ///   - x: The column of a pixel. In a movie that shows several others side by side, the clock is that
  ///     of the one at this pixel; without a pixel, that of the first.
  ///   - y: The row of the pixel.
  /// - Returns: The clock.
  /// - Throws: `MediaError` with `.unknownCaptureTime` if the file was slowed or changed in a way that
  ///   leaves its capture times unknown, or `.invalidData` without video.
  public func captureClock(
    _ choice: CaptureClock.Choice? = nil, captureFrameRate: FrameRate? = nil, x: Int? = nil,
    y: Int? = nil
  ) throws(MediaError) -> CaptureClock {
    guard let frames = videoTrack?.frames else { throw .invalid(path, "contains no video") }
    if (choice ?? clockChoice) == .file {
      return CaptureClock(times: fileMap(.fileTimes, timeScale: .one), frames)
    }
    if let captureFrameRate = captureFrameRate ?? givenCaptureFrameRate {
      return CaptureClock(.option, map(capturedAt: captureFrameRate, frames), frames)
    }
    switch storedTimeMap() {
    case .panes(let panes):
      let shown = panes.first { pane in
        guard let box = pane.box, let x, let y else { return false }
        return (box.x..<box.x + box.width).contains(x) && (box.y..<box.y + box.height).contains(y)
      }
      if let pane = shown ?? panes.first { return CaptureClock(.map, pane.map, frames) }
    case .refused(let reason): throw Self.unknownTimes(path, reason)
    case .none, .recording: break
    }
    if let recorded = recordingMap() {
      if !recorded.hasLedger { try checkRecording(frames) }
      return CaptureClock(.recording, recorded.map, frames)
    }
    guard let scale = try statedTimeScale(frames) else {
      return CaptureClock(.file, fileMap(.fileTimes, timeScale: .one), frames)
    }
    return CaptureClock(.tag, fileMap(.statedRate, timeScale: scale), frames)
  }

  /// Returns the best time map of the movie for an export, which never fails.
  ///
  /// - Returns: The map, and why a better one was not used; nil if it is the best that there is.
  package func sourceTimeMap() -> (map: TimeMap, refusal: String?) {
    do throws(MediaError) { return (try captureClock(.capture).map, nil) } catch {
      return (fileMap(.fileTimes, timeScale: .one), error.message)
    }
  }

  /// Seconds of capture time per second of the movie, from the tags of cameras; nil without them.
  private func statedTimeScale(_ frames: FrameTable) throws(MediaError) -> Rational? {
    guard let stated = captureFrameRate else { return nil }
    // With Apple's key or an edit list, the sample times of the movie are the capture times.
    if stated.source == Self.appleIntentKey || stated.source == "edit_list" { return .one }
    guard !speedChanges(frames) else {
      throw Self.unknownTimes(
        path, "plays at several speeds, and states only the rate of its capture")
    }
    guard let nominal = frames.nominalFrameRate else { return nil }
    let scale = nominal.framesPerSecond / stated.rate.framesPerSecond
    return scale.isValid && scale > .zero ? scale : nil
  }

  private func map(capturedAt rate: FrameRate, _ frames: FrameTable) -> TimeMap {
    guard !speedChanges(frames), let nominal = frames.nominalFrameRate,
      case let scale = nominal.framesPerSecond / rate.framesPerSecond, scale.isValid
    else { return indexMap(rate) }
    return fileMap(.statedRate, timeScale: scale)
  }

  /// Whether the frame rate changes within the movie.
  private func speedChanges(_ frames: FrameTable) -> Bool {
    FrameRateSegments.ranges(of: frames.entries.map(\.ticks)).count > 1
  }

  /// Throws if the times of a recording without a ledger are no longer those of its capture.
  ///
  /// Another program may keep the tag of a recording, but not its ledger, and change its times.
  private func checkRecording(_ frames: FrameTable) throws(MediaError) {
    let count = frames.entries.count
    guard count > 2, let stated = taggedCaptureFrameRate?.rate else { return }
    let steps = frames.entries.dropLast().map(\.duration).sorted()
    let median = Rational(Int128(steps[steps.count / 2]), over: Int128(frames.timescale))
    let ratio = median * stated.framesPerSecond
    guard ratio.isValid, ratio >= Rational(2, over: 3), ratio <= Rational(3, over: 2) else {
      throw Self.unknownTimes(
        path, "has the tags of a recording, and frames at another rate than they state")
    }
  }

  private static func unknownTimes(_ path: String, _ reason: String) -> MediaError {
    MediaError(
      .unknownCaptureTime, "\(path) \(reason)",
      recovery: Recovery(
        "give the capture rate, or choose the times of the file", .change(.captureClock)))
  }
}

extension MediaError.Code {
  /// A file was slowed or changed, so that the capture times of its frames are unknown.
  public static let unknownCaptureTime = Self(rawValue: "unknown_capture_time")
}
