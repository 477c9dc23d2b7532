// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore

/// An audit of a movie's timing: gaps, repeated frames, and frame rates that are not as stated.
///
/// Gaps are found from the times of frames alone, so metadata is not needed. Repeated frames are
/// found in the images. A finding is reported only if it is certain: a scene in which nothing moves
/// has no repeated frames.
///
/// ```swift
/// let audit = try TimingAudit(of: Asset(path: "take.mov"), expecting: 240)
/// print(audit.isOK, audit.gaps.count)
/// ```
public struct TimingAudit: Hashable, Sendable, Codable {
  /// A reason why the timing fails the audit.
  public enum Problem: String, Hashable, Sendable, Codable, CaseIterable {
    /// Frames are missing.
    case gaps
    /// Single frames repeat the frame before them.
    case duplicates
    /// A range of frames shows one image.
    case frozen
    /// The frame rate changes within the movie.
    case rateChanges = "rate_changes"
    /// The intervals between frames follow no period, so gaps are unknown.
    case irregular
    /// The capture rate is not the expected rate.
    case unexpectedRate = "unexpected_rate"
    /// The capture rate that the file states contradicts its frames.
    case statedRate = "stated_rate"
    /// Frames cannot be decoded.
    case undecodable
    /// The file is truncated.
    case truncated
  }

  /// Missing frames after a frame.
  public struct Gap: Hashable, Sendable, Codable {
    /// The index of the frame before the gap, from 0.
    public let afterIndex: Int
    /// The number of missing frames.
    public let count: Int
    /// The time at which the first missing frame was due, rounded to a tick of the track.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case afterIndex, count
      case time = "at"
    }
  }

  /// A frame that repeats the frame before it.
  public struct Duplicate: Hashable, Sendable, Codable {
    /// The index of the frame, from 0.
    public let index: Int
    /// The index of the frame whose image is repeated.
    public let ofIndex: Int
    /// The time of the frame.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case index, ofIndex
      case time = "at"
    }
  }

  /// A range of frames that show one image.
  public struct FrozenStretch: Hashable, Sendable, Codable {
    /// The index of the frame that is repeated, from 0.
    public let firstIndex: Int
    /// The index of the last frame that repeats the first one.
    public let lastIndex: Int
    /// The time of the first frame.
    public let start: MediaTime
    /// The end of the last frame.
    public let end: MediaTime
  }

  /// A part of the movie with a constant frame rate.
  public struct RateSegment: Hashable, Sendable, Codable {
    /// The index of the first frame, from 0.
    public let firstIndex: Int
    /// The index of the last frame.
    public let lastIndex: Int
    /// The frame rate, with missing frames counted.
    public let frameRate: Rational

    private enum CodingKeys: String, CodingKey {
      case firstIndex, lastIndex
      case frameRate = "fps"
    }
  }

  /// The intervals between frames.
  ///
  /// A percentile is the smallest interval that the given percentage of intervals does not exceed.
  public struct Intervals: Hashable, Sendable, Codable {
    /// The shortest.
    public let min: MediaTime
    /// The median.
    public let p50: MediaTime
    /// The 95th percentile.
    public let p95: MediaTime
    /// The 99th percentile.
    public let p99: MediaTime
    /// The longest.
    public let max: MediaTime
  }

  /// Flicker of the lighting.
  public struct Flicker: Hashable, Sendable, Codable {
    /// The frequency of the mains in hertz: 50 or 60.
    ///
    /// The lamps flicker at twice this frequency.
    public let mainsFrequency: Int
    /// The amplitude of the flicker as a fraction of the mean luma, from 0 to 1.
    public let depth: Double

    private enum CodingKeys: String, CodingKey {
      case mainsFrequency = "mainsHz"
      case depth
    }
  }

  /// The number of frames.
  public internal(set) var frameCount: Int
  /// The intervals between frames; nil for fewer than two frames.
  public internal(set) var intervals: Intervals?
  /// Whether the intervals are multiples of one period in each of ``segments``, apart from jitter.
  public internal(set) var isRegular: Bool
  /// Whether the track's ticks are too coarse to show every gap of one frame.
  ///
  /// Matroska files often have ticks of one millisecond.
  public internal(set) var isCoarse: Bool
  /// The gaps in order; empty if the intervals are not regular.
  public internal(set) var gaps: [Gap]
  /// The parts of constant rate in order; one unless the rate changes.
  public internal(set) var segments: [RateSegment]
  /// The frame rate of the longest segment, with missing frames counted.
  ///
  /// Nil for fewer than two frames.
  public internal(set) var measuredFrameRate: Rational?
  /// The rate of frames that differ, if frames are repeated in a regular pattern.
  ///
  /// A camera of 120 fps whose frames are all stored twice has 120 here. Nil if no pattern was
  /// found.
  public internal(set) var distinctFrameRate: Rational?
  /// Whether the images of frames were compared.
  ///
  /// If not, ``duplicates`` and ``frozen`` are empty.
  public internal(set) var comparesImages: Bool
  /// Single frames, or a few in a row, that repeat the frame before them; in order.
  public internal(set) var duplicates: [Duplicate]
  /// The ranges of at least ten repeated frames, in order.
  public internal(set) var frozen: [FrozenStretch]
  /// The indices of the frames that cannot be decoded.
  public internal(set) var undecodableFrames: [Int]
  /// The capture rate that the file states; nil if unknown.
  public internal(set) var captureFrameRate: FrameRate?
  /// The source of ``captureFrameRate``: the key of a tag, or `edit_list`.
  public internal(set) var captureFrameRateSource: String?
  /// Whether the stated capture rate agrees with the frames; nil without a stated rate.
  public internal(set) var captureFrameRateAgrees: Bool?
  /// The capture rate that the caller expects; nil for none.
  public internal(set) var expectedFrameRate: FrameRate?
  /// Flicker of the lighting; nil if none was found.
  ///
  /// It does not count as a problem of the timing.
  public internal(set) var flicker: Flicker?
  /// The reasons why the timing fails the audit, in the order of ``Problem``.
  public internal(set) var problems: [Problem]

  /// Whether no problem was found.
  public var isOK: Bool { problems.isEmpty }

  enum CodingKeys: String, CodingKey {
    case frameCount, intervals, gaps, segments, duplicates, frozen, undecodableFrames, flicker
    case problems, comparesImages, expectedFrameRate = "expectedFps"
    case isRegular = "regular"
    case isCoarse = "coarse"
    case measuredFrameRate = "measuredFps"
    case distinctFrameRate = "distinctFps"
    case captureFrameRate = "captureFps"
    case captureFrameRateSource = "captureFpsSource"
    case captureFrameRateAgrees = "captureFpsAgrees"
  }

  /// Audits the video track of an asset.
  ///
  /// Blocks until all frames are decoded. May be called from any thread.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - expectedFrameRate: The capture rate that the movie should have, to within one percent. Nil
  ///     expects nothing.
  ///   - comparesImages: Whether frames are decoded and compared. If not, only times are audited.
  ///   - clock: The capture times; the times of the movie itself are audited without one, and unless
  ///     its time map is known.
  ///   - progress: Receives the number of frames that were decoded.
  /// - Throws: `MediaError` with `.invalidData` for an asset without video, or the error of reading
  ///   the file. Frames that cannot be decoded are a finding and no error.
  public init(
    of asset: Asset, expecting expectedFrameRate: FrameRate? = nil, comparesImages: Bool = true,
    clock: CaptureClock? = nil, progress: (_ frame: Int) -> Void = { _ in }
  ) throws(MediaError) {
    guard let track = asset.videoTrack else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video", recovery: "choose a movie with video")
    }
    let map = clock.flatMap { $0.source == .map ? $0 : nil }
    self.init(times: track.frames, map.map { Self.lines(track.frames, $0) })
    (self.comparesImages, self.expectedFrameRate) = (comparesImages, expectedFrameRate)
    if comparesImages {
      let images = try FrameComparison(of: asset, track, progress)
      undecodableFrames = images.undecodable
      let seconds = track.frames.entries.map { Double($0.ticks) / Double(track.timescale) }
      let line = LightFlicker.line(in: images.strips, at: seconds)
      let repeated = RepeatedFrames(images.differences, flickers: line != nil).indices()
      addRepeated(repeated, track.frames)
      // A regular pattern of repeated frames looks like flicker, so flicker is only reported
      // without such a pattern.
      if repeated.count * 10 < frameCount {
        flicker = line.map { Flicker(mainsFrequency: $0.mains, depth: $0.depth) }
      }
    }
    let stated = asset.captureFrameRate
    captureFrameRate = stated?.rate
    captureFrameRateSource = stated?.source
    captureFrameRateAgrees = stated.map {
      agrees($0.rate, hasCaptureTimes: asset.recording != nil)
    }
    problems = foundProblems(isTruncated: asset.truncation != nil)
  }
}

extension TimingAudit {
  /// The least number of consecutive repeated frames that counts as a frozen stretch.
  private static let frozenCount = 10

  /// Frames whose times are in ascending order, with their indices in the movie.
  struct Line {
    let indices: [Int]
    let ticks: [Int64]
    let timescale: Int32
  }

  /// The times of a movie on its own clock.
  static func lines(_ frames: FrameTable) -> [Line] {
    [
      Line(
        indices: Array(frames.entries.indices), ticks: frames.entries.map(\.ticks),
        timescale: frames.timescale)
    ]
  }

  /// The capture times of a movie: a line for each part between two cuts, without repeated frames.
  static func lines(_ frames: FrameTable, _ clock: CaptureClock) -> [Line] {
    var lines: [Line] = []
    var part: Int?
    var (indices, ticks): ([Int], [Int64]) = ([], [])
    func flush() {
      guard !indices.isEmpty else { return }
      let isBackward = ticks.count > 1 && ticks[1] < ticks[0]
      lines.append(
        Line(
          indices: indices, ticks: isBackward ? ticks.map { -$0 } : ticks,
          timescale: 1_000_000_000))
      (indices, ticks) = ([], [])
    }
    for index in frames.entries.indices {
      let next = clock.part(ofFrame: index)
      if next != part { flush() }
      part = next
      guard next != nil, clock.map.frames[index].content != .repeated || indices.isEmpty,
        let time = clock.map.captureTime(ofFrame: index)?.wholeNanoseconds,
        time != ticks.last
      else { continue }
      if let last = ticks.last, ticks.count > 1, (time > last) != (last > ticks[ticks.count - 2]) {
        // The direction changes.
        flush()
      }
      indices.append(index)
      ticks.append(time)
    }
    flush()
    return lines
  }

  /// Audits times alone.
  init(times frames: FrameTable, _ lines: [Line]? = nil) {
    let lines = lines ?? Self.lines(frames)
    frameCount = frames.entries.count
    let steps = lines.flatMap { line in
      zip(line.ticks.dropFirst(), line.ticks).map { MediaTime($0 - $1, over: line.timescale) }
    }
    let sorted = steps.sorted()
    func percentile(_ percent: Int) -> MediaTime {
      sorted[Swift.max(0, (sorted.count * percent + 99) / 100 - 1)]
    }
    intervals =
      sorted.isEmpty
      ? nil
      : Intervals(
        min: sorted[0], p50: percentile(50), p95: percentile(95), p99: percentile(99),
        max: sorted[sorted.count - 1])
    let parts = lines.map { line in
      FrameRateSegments.ranges(of: line.ticks).filter { $0.count > 1 }.map { range in
        // Few ticks per second are the frame rate itself. Milliseconds are ticks of their own.
        (range: range, grid: FrameGrid(line.ticks[range], isExact: line.timescale < 500))
      }
    }
    isRegular = parts.allSatisfy { $0.allSatisfy(\.grid.isRegular) }
    isCoarse = parts.contains { $0.contains(where: \.grid.isCoarse) }
    gaps = zip(lines, parts).flatMap { line, parts in
      parts.flatMap(\.grid.gaps).map { gap in
        let (after, next) = (line.indices[gap.after], line.indices[gap.after + 1])
        // The time in the movie.
        let interval = frames.entries[next].ticks - frames.entries[after].ticks
        return Gap(
          afterIndex: after, count: gap.count,
          time: MediaTime(
            frames.entries[after].ticks + interval / Int64(gap.count + 1), over: frames.timescale))
      }
    }
    segments = Self.joined(
      zip(lines, parts).flatMap { line, parts in
        parts.compactMap { range, grid in
          let distance = line.ticks[range.upperBound] - line.ticks[range.lowerBound]
          let rate = Rational(
            Int128(grid.periodCount) * Int128(line.timescale), over: Int128(distance))
          return rate.isValid
            ? RateSegment(
              firstIndex: line.indices[range.lowerBound],
              lastIndex: line.indices[range.upperBound], frameRate: rate) : nil
        }
      }, acrossCuts: lines.count > 1)
    measuredFrameRate =
      segments.max { $0.lastIndex - $0.firstIndex < $1.lastIndex - $1.firstIndex }?.frameRate
    distinctFrameRate = nil
    comparesImages = false
    duplicates = []
    frozen = []
    undecodableFrames = []
    captureFrameRate = nil
    captureFrameRateSource = nil
    captureFrameRateAgrees = nil
    expectedFrameRate = nil
    flicker = nil
    problems = []
  }

  /// Joins segments of one rate that a cut divides.
  private static func joined(_ segments: [RateSegment], acrossCuts: Bool) -> [RateSegment] {
    guard acrossCuts else { return segments }
    return segments.reduce(into: []) { joined, next in
      guard let last = joined.last, isNear(next.frameRate / last.frameRate) else {
        joined.append(next)
        return
      }
      let isLonger = next.lastIndex - next.firstIndex > last.lastIndex - last.firstIndex
      joined[joined.count - 1] = RateSegment(
        firstIndex: last.firstIndex, lastIndex: next.lastIndex,
        frameRate: isLonger ? next.frameRate : last.frameRate)
    }
  }

  /// Adds the frames that repeat the one before, given by their indices in ascending order.
  mutating func addRepeated(_ indices: [Int], _ frames: FrameTable) {
    func time(_ index: Int) -> MediaTime {
      MediaTime(frames.entries[index].ticks, over: frames.timescale)
    }
    var runs: [ClosedRange<Int>] = []
    for index in indices {
      if let last = runs.last, last.upperBound == index - 1 {
        runs[runs.count - 1] = last.lowerBound...index
      } else {
        runs.append(index...index)
      }
    }
    for run in runs {
      let first = run.lowerBound - 1
      guard run.count < Self.frozenCount else {
        let entry = frames.entries[run.upperBound]
        frozen.append(
          FrozenStretch(
            firstIndex: first, lastIndex: run.upperBound, start: time(first),
            end: MediaTime(entry.ticks + entry.duration, over: frames.timescale)))
        continue
      }
      duplicates += run.map { Duplicate(index: $0, ofIndex: first, time: time($0)) }
    }
    distinctFrameRate = repetition(indices).flatMap { count in
      measuredFrameRate.map { $0 / Rational(Int64(count)) }
    }
  }

  /// The number of times that each image is shown, if this is the same for most frames.
  ///
  /// The majority is counted in frames. An image whose repetitions were not detected looks like
  /// several images, so a majority of images would be too strict.
  private func repetition(_ indices: [Int]) -> Int? {
    guard frameCount >= 16, indices.count * 3 >= frameCount else { return nil }
    let repeated = Set(indices)
    let fresh = (0..<frameCount).filter { !repeated.contains($0) }
    let counts = zip(fresh.dropFirst(), fresh).map { $0 - $1 }
    guard let count = counts.sorted().dropFirst(counts.count / 2).first, count > 1,
      counts.count(where: { $0 == count }) * count * 10 >= counts.reduce(0, +) * 8
    else { return nil }
    return count
  }

  /// Whether a stated capture rate is plausible.
  ///
  /// A slow-motion file plays slower than it was captured, and a time lapse plays faster. A file
  /// with the times of the capture does neither.
  func agrees(_ stated: FrameRate, hasCaptureTimes: Bool) -> Bool {
    guard let measured = measuredFrameRate, distinctFrameRate == nil else {
      return distinctFrameRate == nil
    }
    let ratio = measured / stated.framesPerSecond
    if Self.isNear(ratio) { return true }
    if hasCaptureTimes { return false }
    if ratio < .one { return measured < Rational(61) }
    return stated.framesPerSecond < Rational(24)
  }

  /// The measured or stated frame rate that is compared with the expected rate.
  private var effectiveFrameRate: Rational? {
    if let distinctFrameRate { return distinctFrameRate }
    if captureFrameRateAgrees == true { return captureFrameRate?.framesPerSecond }
    return measuredFrameRate
  }

  /// The constant frame rate of an asset, derived only from the times of its frames.
  ///
  /// The result is the nominal rate, if that drifts from the frames by at most half a frame over
  /// the whole asset.
  ///
  /// - Parameter asset: The asset.
  /// - Returns: The rate. Nil if the rate changes, if the intervals follow no period, or for fewer
  ///   than two frames.
  public static func constantFrameRate(of asset: Asset) -> FrameRate? {
    guard let frames = asset.videoTrack?.frames else { return nil }
    let audit = TimingAudit(times: frames)
    guard audit.isRegular, audit.segments.count == 1, let measured = audit.measuredFrameRate
    else { return nil }
    if let nominal = frames.nominalFrameRate {
      let periods = Rational(frames.endTicks) / Rational(Int64(frames.timescale)) * measured
      let drift = (nominal.framesPerSecond / measured - .one).magnitude * periods
      if drift <= Rational(1, over: 2) { return nominal }
    }
    // Rounds to 0.001 fps. This error takes more than half an hour to add up to one frame.
    let thousandths = try? (measured * 1_000).rounded(.halfAwayFromZero)
    return thousandths.flatMap { FrameRate(exactly: Rational($0, over: 1_000)) }
  }

  private static func isNear(_ ratio: Rational) -> Bool {
    (ratio - .one).magnitude <= Rational(1, over: 100)
  }

  func foundProblems(isTruncated: Bool) -> [Problem] {
    var found: Set<Problem> = []
    if !gaps.isEmpty { found.insert(.gaps) }
    if !duplicates.isEmpty { found.insert(.duplicates) }
    if !frozen.isEmpty { found.insert(.frozen) }
    if segments.count > 1 { found.insert(.rateChanges) }
    if !isRegular { found.insert(.irregular) }
    if captureFrameRateAgrees == false { found.insert(.statedRate) }
    if !undecodableFrames.isEmpty { found.insert(.undecodable) }
    if isTruncated { found.insert(.truncated) }
    if let expected = expectedFrameRate?.framesPerSecond,
      effectiveFrameRate.map({ Self.isNear($0 / expected) }) != true
    {
      found.insert(.unexpectedRate)
    }
    return Problem.allCases.filter(found.contains)
  }
}

/// Decodes all frames of a track, and compares each frame with the frame before it.
struct FrameComparison {
  /// The difference of each frame to the frame before it; nil for the first frame, and if one of
  /// the two frames cannot be decoded.
  private(set) var differences: [FrameDifference?]
  /// The mean luma of each horizontal strip, by frame; empty for a frame that was not measured.
  ///
  /// Only the first frames are included, as many as ``LightFlicker`` analyzes.
  private(set) var strips: [[Double]]
  /// The indices of the frames that cannot be decoded.
  private(set) var undecodable: [Int]

  /// Decodes the frames once, in order.
  ///
  /// - Throws: `MediaError` if the file cannot be read.
  init(
    of asset: Asset, _ track: VideoTrack, _ progress: (_ frame: Int) -> Void
  ) throws(MediaError) {
    let count = track.frameCount
    var differences = [FrameDifference?](repeating: nil, count: count)
    var strips = [[Double]](repeating: [], count: min(count, LightFlicker.largestCount))
    var isDecoded = [Bool](repeating: false, count: count)
    if count > 0 {
      var reader = try FrameReader(asset, undecodable: .skip)
      var converter = FrameConverter(to: .gray8, isFullRange: true)
      // Up to three consecutive frames before this one; emptied at a frame that cannot be compared.
      var recent: [LumaPlane] = []
      var lastIndex = -1
      try reader.readFrames(in: 0...count - 1, wanted: { _ in true }) { index, frame in
        isDecoded[index] = true
        progress(index + 1)
        guard let plane = LumaPlane(frame, &converter) else { return true }
        if strips.indices.contains(index) {
          strips[index] = plane.stripBrightness(LightFlicker.stripCount)
        }
        if lastIndex != index - 1 || recent.last?.hasSize(of: plane) != true { recent = [] }
        lastIndex = index
        if let last = recent.last { differences[index] = FrameDifference(plane, after: last) }
        if recent.count == 3, let before = differences[index - 2]?.largest,
          let middle = differences[index - 1]?.largest, let after = differences[index]?.largest,
          middle <= RepeatedFrames.codingError.upperBound,
          min(before, after) > RepeatedFrames.codingError.lowerBound
        {
          differences[index - 1]?.around = FrameDifference(plane, after: recent[0]).largest
        }
        recent = Array((recent + [plane]).suffix(3))
        return true
      }
    }
    (self.differences, self.strips) = (differences, strips)
    undecodable = isDecoded.indices.filter { !isDecoded[$0] }
  }
}
