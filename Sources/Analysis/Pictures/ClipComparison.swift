// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankEditing
public import OvercrankExport
public import OvercrankMediaCore

/// One movie of several clips, side by side or blended.
///
/// The clips are aligned in time and play at the same speed in real time.
public struct ClipComparison: Sendable {
  /// A movie, and the instant at which it is aligned with the others.
  public struct Clip: Sendable {
    /// The movie.
    public let asset: Asset
    /// The instant of alignment, in the movie's time.
    public let origin: MediaTime
    /// The capture times of the movie.
    public let clock: CaptureClock?
    /// The part of the movie that is shown, in the movie's time; nil for all of it.
    public let range: TimeRange?

    /// Creates a clip.
    ///
    /// Without a clock, it is the one that the file states, or its own times.
    public init(
      _ asset: Asset, origin: MediaTime = .zero, clock: CaptureClock? = nil,
      range: TimeRange? = nil
    ) {
      (self.asset, self.origin, self.range) = (asset, origin, range)
      self.clock = clock ?? (try? asset.captureClock()) ?? (try? asset.captureClock(.file))
    }

    /// Creates a clip from a track of a project, which has one segment at a constant speed.
    ///
    /// The clip plays in real time, whatever that speed.
    ///
    /// - Parameters:
    ///   - track: The track.
    ///   - instant: A time of the project at which all tracks show a movie. The clips are aligned there.
    ///   - assets: The movies of the project.
    ///   - clock: Returns the capture times of a movie.
    /// - Throws: `MediaError` with `.unsupportedSource` for another track, or an error of `clock`.
    public init(
      _ track: CompositionTrack, at instant: MediaTime, of assets: [Asset],
      clock: (Asset) throws(MediaError) -> CaptureClock?
    ) throws(MediaError) {
      let shown = track.segments.filter { !$0.isEmpty }
      guard let segment = shown.first, shown.count == 1, let source = segment.source,
        let asset = assets.first(where: { $0.path == source.path }),
        let mapping = segment.mapping, !mapping.isReversed, mapping.sourceStart < mapping.sourceEnd,
        mapping.motion == .constant
      else {
        throw MediaError(
          .unsupportedSource,
          "a track of the project has \(shown.count) clips, or a clip that does not play forward at "
            + "one speed",
          recovery: "export each track first, and compare the movies")
      }
      let range = try TimeRange(
        start: MediaTime(mapping.sourceStart), end: MediaTime(mapping.sourceEnd))
      let speed = range.duration / segment.target.duration
      let origin = mapping.sourceStart + (instant - segment.target.start) * speed
      self.init(asset, origin: try MediaTime(origin), clock: try clock(asset), range: range)
    }

    /// The real times at which the range begins and ends, after the instant of alignment.
    fileprivate var shown: (start: Rational, end: Rational)? {
      guard let range, let clock, let origin = clock.seconds(at: origin),
        let start = clock.seconds(at: range.start), let end = clock.seconds(at: range.end)
      else { return nil }
      return (start - origin, end - origin)
    }
  }

  /// The arrangement of the clips.
  public enum Layout: String, Hashable, Sendable, CaseIterable, Codable {
    /// Next to each other, with the same height.
    case side
    /// Blended over each other, with the size of the first clip.
    case overlay
  }

  /// The size and length of a comparison.
  public struct Plan: Hashable, Sendable {
    /// The size of the comparison movie in pixels.
    public let size: PixelBox
    /// The part of the movie for each clip, in pixels.
    public let boxes: [PixelBox]
    /// The number of frames of the comparison movie.
    public let frameCount: Int
    /// The real time of the first frame, relative to the instant of alignment, in seconds.
    public let start: Rational
    /// For each output frame, the index of the frame that each clip shows.
    let frames: [[Int]]
  }

  /// The clips, in order from the left.
  public let clips: [Clip]
  /// The frame rate of the movie.
  public let frameRate: FrameRate
  /// Seconds of real time per second of the movie.
  public let speed: Speed
  /// The arrangement.
  public let layout: Layout
  /// Text for each clip, and a logo; nil for none.
  ///
  /// The text of a clip is in the lower left corner of its part, above the time since the instant
  /// of alignment. The texts of blended clips are stacked in the order of the clips. Capture times
  /// count from the first frame of each clip. A nil ``BurnIn/mark`` is the instant of alignment of
  /// each clip. The speed is ``speed``.
  public var burnIn: BurnIn?
  /// True to store the time maps of the clips in the movie, false for none.
  public var writesTimeMap = true

  /// Creates a comparison.
  ///
  /// - Precondition: At least one clip.
  public init(
    _ clips: [Clip], frameRate: FrameRate, speed: Speed = .normal, layout: Layout = .side
  ) {
    precondition(!clips.isEmpty, "a comparison has clips")
    (self.clips, self.frameRate) = (clips, frameRate)
    (self.speed, self.layout) = (speed, layout)
  }

  private static let maximumFrames = 1_000_000
  /// The greatest width in pixels of clips side by side, and the least height to which they are
  /// scaled.
  private static let (maximumColumns, minimumRows) = (4_096, 16)

  /// Computes the movie without decoding anything.
  ///
  /// The movie covers the real time that all clips share.
  ///
  /// - Returns: The plan.
  /// - Throws: `MediaError` with `.invalidData` for a clip without video, `.outsideSource` for an
  ///   instant outside its clip, `.nothingInCommon` if the clips share no time, `.imageTooLarge`.
  public func plan() throws(MediaError) -> Plan {
    var (start, end): (Rational?, Rational?) = (nil, nil)
    var lines: [CaptureLine] = []
    for clip in clips {
      guard clip.asset.videoTrack != nil, let clock = clip.clock else {
        throw MediaError(
          .invalidData, "\(clip.asset.path) contains no video",
          recovery: "choose a movie with video")
      }
      guard clip.origin >= .zero, clip.asset.duration > clip.origin,
        let line = CaptureLine(clock, clip.asset, around: clip.origin)
      else {
        throw MediaError(
          .outsideSource, "the time \(clip.origin.displayText) s is outside \(clip.asset.path)",
          recovery: "it ends at \(clip.asset.duration.displayText) s")
      }
      lines.append(line)
      let shown = clip.shown
      start = [start, line.start, shown?.start].compactMap(\.self).max()
      end = [end, line.end, shown?.end].compactMap(\.self).min()
    }
    guard let start, let end, start < end, end.isValid else {
      throw MediaError(
        .nothingInCommon, "the clips share no time around their instants",
        recovery: "choose other instants")
    }
    let step = frameRate.frameDuration.seconds * speed.fraction
    let count = try ((end - start) / step).exact("the number of frames")
      .wholeNumber(.towardPositiveInfinity, of: "the number of frames")
    guard count <= Self.maximumFrames else {
      throw MediaError(
        .imageTooLarge, "the movie would have \(count) frames",
        recovery: "choose a higher speed or a lower frame rate")
    }
    var frames: [[Int]] = []
    for slot in 0..<count {
      let real = start + step * Rational(slot)
      frames.append(lines.map { $0.frame(at: real) })
    }
    let boxes = try boxes()
    let width = boxes.map { $0.x + $0.width }.max() ?? 0
    let height = boxes.map(\.height).max() ?? 0
    try StillComposer.check(width: width, height: height)
    return Plan(
      size: PixelBox(x: 0, y: 0, width: width, height: height), boxes: boxes,
      frameCount: Int(count), start: start, frames: frames)
  }

  /// The position of each clip, with even sides.
  private func boxes() throws(MediaError) -> [PixelBox] {
    let sizes = clips.map { clip -> (width: Int, height: Int) in
      guard let track = clip.asset.videoTrack else { return (2, 2) }
      return track.rotation % 180 == 0
        ? (track.width, track.height) : (track.height, track.width)
    }
    guard let first = sizes.first else { return [] }
    guard layout == .side else {
      let box = PixelBox(
        x: 0, y: 0, width: Self.even(first.width), height: Self.even(first.height))
      return clips.map { _ in box }
    }
    // All clips get the height of the lowest clip, and together at most 4096 columns.
    var height = min(Self.maximumColumns, sizes.map(\.height).min() ?? 2)
    func widths() -> [Int] {
      sizes.map { Self.even(($0.width * height + $0.height / 2) / max(1, $0.height)) }
    }
    while widths().reduce(0, +) > Self.maximumColumns, height > Self.minimumRows {
      height = max(Self.minimumRows, height - max(2, height / 16))
    }
    let columns = widths().reduce(0, +)
    guard columns <= Self.maximumColumns else {
      throw MediaError(
        .imageTooLarge,
        "\(clips.count) movies side by side would be \(columns) pixels wide, more than "
          + "\(Self.maximumColumns)",
        recovery: "choose fewer or narrower movies, or blend them")
    }
    var x = 0
    return widths().map { width in
      defer { x += width }
      return PixelBox(x: x, y: 0, width: width, height: Self.even(height))
    }
  }

  private static func even(_ side: Int) -> Int { max(2, side & ~1) }
}
