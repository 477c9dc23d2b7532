// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankEditing
public import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat
public import OvercrankRaster

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
    public let size: PixelRect
    /// The part of the movie for each clip, in pixels.
    public let boxes: [PixelRect]
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
      size: PixelRect(x: 0, y: 0, width: width, height: height), boxes: boxes,
      frameCount: Int(count), start: start, frames: frames)
  }

  /// The position of each clip, with even sides.
  private func boxes() throws(MediaError) -> [PixelRect] {
    let sizes = clips.map { clip -> (width: Int, height: Int) in
      guard let track = clip.asset.videoTrack else { return (2, 2) }
      return track.rotation % 180 == 0
        ? (track.width, track.height) : (track.height, track.width)
    }
    guard let first = sizes.first else { return [] }
    guard layout == .side else {
      let box = PixelRect(
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
      return PixelRect(x: x, y: 0, width: width, height: Self.even(height))
    }
  }

  private static func even(_ side: Int) -> Int { max(2, side & ~1) }

  /// Writes the movie in H.264 without audio.
  ///
  /// Each frame shows the time since the instant of alignment.
  ///
  /// Blocks the calling thread, which may be any. An unfinished file is removed.
  ///
  /// - Parameters:
  ///   - path: The file; its extension is `.mov`, `.mp4` or `.m4v`.
  ///   - overwrites: Whether an existing file is replaced.
  ///   - isCancelled: Polled between frames.
  ///   - progress: Called after each frame with the number of finished frames.
  /// - Returns: The plan that was carried out.
  /// - Throws: `MediaError` as ``plan()`` does, with `.outputExists`, `.cannotCreate`, `.diskFull`
  ///   or `.writeFailed` for the file, `.invalidData` for a frame that cannot be decoded, an error
  ///   of the logo's file, or `.cancelled`.
  @discardableResult
  public func write(
    to path: String, overwrites: Bool = false, isCancelled: () -> Bool = { false },
    progress: (_ done: Int) -> Void = { _ in }
  ) throws(MediaError) -> Plan {
    guard [".mov", ".mp4", ".m4v"].contains(where: path.lowercased().hasSuffix) else {
      throw MediaError(
        .cannotCreate, "the extension of \(path) does not name a supported container",
        recovery: "use the extension .mov, .mp4 or .m4v")
    }
    let plan = try plan()
    var file: WholeFile
    do throws(CallFailure) { file = try WholeFile(creating: path, overwrites: overwrites) } catch {
      throw MediaError(creating: error)
    }
    do {
      try encode(plan, to: file.writtenPath, isCancelled, progress)
    } catch let error as MediaError {
      throw error
    } catch let error as CallFailure {
      let message = "could not write \(path): \(error)"
      throw MediaError(
        error, at: CallStage(other: .init(.writeFailed, "check the disk")), message: message)
    } catch {
      throw MediaError(.writeFailed, "could not write \(path): \(error)")
    }
    do throws(CallFailure) { try file.finish() } catch { throw MediaError(creating: error) }
    return plan
  }

  private func encode(
    _ plan: Plan, to path: String, _ isCancelled: () -> Bool, _ progress: (Int) -> Void
  ) throws {
    // Chooses a timescale, of about 24000 ticks per second or more, in which a frame is a whole
    // number of ticks.
    let factor = max(1, 24_000 / Int64(frameRate.numerator))
    let timescale = Int32(clamping: Int64(frameRate.numerator) * factor)
    let ticks = Int64(frameRate.denominator) * factor
    var settings = Encoder.VideoSettings(
      codec: "libx264", width: plan.size.width, height: plan.size.height, pixelFormat: .yuv420p,
      timescale: timescale)
    settings.frameRate = frameRate
    settings.colors = .convertedFromRGB
    settings.options = ["preset": "medium", "crf": "18"]
    var encoder = try Encoder(video: settings)
    let container: MovieContainer = path.lowercased().hasSuffix(".mov") ? .mov : .mp4
    var layout = MovieWriter.Settings(container: container, movieTimescale: timescale)
    let maps = writesTimeMap ? timeMaps(plan) : []
    let shown = plan.frames.indices.map { Int64($0) * ticks }
    if let map = maps.first {
      layout.metadata[TimeMapNote.key] =
        TimeMapNote(map, ticks: shown, timescale: timescale).text
    }
    var writer = try MovieWriter(path: path, settings: layout)
    _ = try writer.addTrack(encoder.parameters, timescale: timescale)
    try writer.begin()
    var converter = FrameConverter(to: .yuv420p, isFullRange: false)
    let readers = try ComparedFrames.open(clips, plan)
    let text = try burnIn.map {
      try ComparisonText($0, clips, plan, speed, isStacked: self.layout == .overlay)
    }
    for (slot, indices) in plan.frames.enumerated() {
      if isCancelled() {
        throw MediaError(
          .cancelled, "the comparison was cancelled",
          recovery: "start again; no file was left behind")
      }
      var canvas = Canvas(width: plan.size.width, height: plan.size.height)
      for (number, index) in indices.enumerated() {
        let image = try readers[number].image(at: index)
        if self.layout == .overlay, number > 0 {
          Self.blend(image, into: &canvas, share: 1 / Float(number + 1))
        } else {
          canvas.draw(image, x: plan.boxes[number].x, y: 0)
        }
      }
      label(slot, plan, on: &canvas)
      var frame = try converter.convert(canvas.frame())
      frame = try text?.draw(indices, on: frame) ?? frame
      try encoder.send(frame, at: Int64(slot) * ticks)
      while let packet = try encoder.nextPacket() { try Self.write(packet, to: &writer, ticks) }
      progress(slot + 1)
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { try Self.write(packet, to: &writer, ticks) }
    try writer.finish()
    guard !maps.isEmpty else { return }
    try TimeMapFile.attach(
      timeMapEntries(maps, plan), to: path, track: 0, ticks: shown, timescale: timescale,
      keepsNote: true)
  }

  private static func write(
    _ packet: Packet, to writer: inout MovieWriter, _ ticks: Int64
  ) throws(CallFailure) {
    let pts = packet.pts ?? 0
    try writer.write(packet, track: 0, pts: pts, dts: packet.dts ?? pts, duration: ticks)
  }

  /// Draws the real time since the instant of alignment.
  private func label(_ slot: Int, _ plan: Plan, on canvas: inout Canvas) {
    let scale = Canvas.textScale(forWidth: canvas.width)
    let step = frameRate.frameDuration.seconds * speed.fraction
    let real = plan.start + step * Rational(Int64(slot))
    let milliseconds = (try? (real * Rational(1_000)).rounded(.halfAwayFromZero)) ?? 0
    let text = (milliseconds < 0 ? "-" : "+") + "\(milliseconds.magnitude) ms"
    canvas.drawLabel(
      text, x: 4 * scale, y: canvas.height - Canvas.textHeight(scale: scale) - 4 * scale,
      scale: scale)
  }

  private static func blend(
    _ image: UprightFrames.Image, into canvas: inout Canvas, share: Float
  ) {
    guard image.width == canvas.width, image.height == canvas.height else { return }
    for index in canvas.bytes.indices {
      let (old, new) = (Float(canvas.bytes[index]), Float(image.bytes[index]))
      canvas.bytes[index] = UInt8(old + (new - old) * share)
    }
  }
}

/// The frames of one clip, scaled to the clip's rectangle in the comparison.
private final class ComparedFrames {
  private var frames: UprightFrames
  /// The last decoded image and the index of its frame: consecutive output frames often show the
  /// same image.
  private var last: (index: Int, image: UprightFrames.Image)?

  private init(_ asset: Asset, _ box: PixelRect) throws(MediaError) {
    frames = try UprightFrames(asset, isColor: true)
    frames.scale(toWidth: box.width, height: box.height)
  }

  static func open(
    _ clips: [ClipComparison.Clip], _ plan: ClipComparison.Plan
  ) throws(MediaError) -> [ComparedFrames] {
    var result: [ComparedFrames] = []
    for (clip, box) in zip(clips, plan.boxes) {
      result.append(try ComparedFrames(clip.asset, box))
    }
    return result
  }

  func image(at index: Int) throws(MediaError) -> UprightFrames.Image {
    if let last, last.index == index { return last.image }
    let image = try frames.image(at: index)
    last = (index, image)
    return image
  }
}

extension ClipComparison {
  /// The time map of each clip in a comparison; a clip of unknown time has an empty part.
  func timeMaps(_ plan: Plan) -> [TimeMap] {
    clips.enumerated().map { number, clip in
      TimeMap(
        showing: plan.frames.map { $0[number] }, of: clip.clock?.map ?? TimeMap(),
        timeScale: speed.fraction)
    }
  }

  /// The boxes of the clips with their maps; blended clips have no box of their own.
  func timeMapEntries(_ maps: [TimeMap], _ plan: Plan) -> [TimeMapBox.Entry] {
    zip(maps, plan.boxes).map { map, box in
      TimeMapBox.Entry(
        pane: layout == .side
          ? TimeMapBox.Pane(x: box.x, y: box.y, width: box.width, height: box.height) : nil,
        code: map.code)
    }
  }
}

extension TimeMap {
  /// Makes the map of a movie that shows frames of another at one speed in real time.
  fileprivate init(showing indices: [Int], of source: TimeMap, timeScale: Rational) {
    self.init()
    var last: Int?
    var current: Recording??
    for index in indices {
      let recording = source.recording(ofFrame: index)
      if current != .some(recording) {
        beginSegment(
          recording: recording.map { self.index(of: $0) }, timeScale: timeScale,
          isContinued: false)
        current = .some(recording)
      }
      var frame = recording == nil ? Frame(index: 0, ticks: 0) : source.frames[index]
      if last == index { frame.content = .repeated }
      if last != index, frame.content == .repeated { frame.content = .genuine }
      append(frame)
      last = index
    }
  }
}

/// Draws the text of each clip and the logo into the frames of a comparison.
struct ComparisonText {
  private let drawing: BurnInDrawing
  private let texts: [BurnInText]
  private let boxes: [PixelRect]
  private let lineCount: Int
  private let speed: String
  /// True if the texts are above each other, false if each is in the box of its clip.
  private let isStacked: Bool

  /// Reads the logo, and the capture times of the clips' frames.
  ///
  /// - Throws: `MediaError` if the logo cannot be read.
  init(
    _ burnIn: BurnIn, _ clips: [ClipComparison.Clip], _ plan: ClipComparison.Plan, _ speed: Speed,
    isStacked: Bool
  ) throws {
    drawing = try BurnInDrawing(
      burnIn, width: plan.size.width, height: plan.size.height,
      pixelFormat: .yuv420p, isFullRange: false, TransferFunction(.convertedFromRGB))
    texts = clips.map {
      BurnInText(burnIn.items, of: $0.asset, mark: burnIn.mark ?? $0.origin, clock: $0.clock)
    }
    boxes = plan.boxes
    lineCount = burnIn.items.count
    self.speed = try BurnInText.speedText(speed.fraction)
    self.isStacked = isStacked
  }

  /// Returns a copy of a frame with the logo and with the text for each clip's frame.
  func draw(_ indices: [Int], on frame: MediaFrame) throws -> MediaFrame {
    let result = try frame.copied()
    // Leaves space at the bottom for the line with the time since the instant of alignment.
    let scale = Canvas.textScale(forWidth: result.width)
    let bottom = max(0, result.height - Canvas.textHeight(scale: scale) - 8 * scale) & ~3
    for (number, index) in indices.enumerated() {
      let box = boxes[number]
      let below = isStacked ? indices.count - 1 - number : 0
      let lines = try texts[number].lines(at: BurnInText.Position(index), speed: speed)
      drawing.draw(
        lines, x: box.x, width: box.width,
        bottom: bottom - below * BurnInDrawing.height(ofLines: lineCount, inWidth: box.width),
        on: result)
    }
    drawing.drawLogo(on: result)
    return result
  }
}
