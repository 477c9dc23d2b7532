// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
package import OvercrankLibAV
public import OvercrankMediaCore
package import OvercrankMovieFormat

/// A movie file with the exact time of each frame.
///
/// Time zero is the first frame, or the first sample if the file has no video. The index is read
/// once, when the asset is created. The value may be used from any thread.
public struct Asset: Sendable {
  /// The path of the movie file.
  public let path: String
  /// The container family, such as `mov`, `matroska` or `avi`.
  public let container: String
  /// The video track that players choose, or nil.
  ///
  /// This is the first video track that can be decoded and is marked as enabled or default. If none
  /// is marked, it is the first one that can be decoded.
  public private(set) var videoTrack: VideoTrack?
  /// The audio track that players choose, or nil.
  ///
  /// It is chosen like ``videoTrack``.
  public private(set) var audioTrack: AudioTrack?
  /// All tracks of the file, in file order.
  public let tracks: [AssetTrack]
  /// The metadata tags of the file.
  public let metadata: [String: String]
  /// The readable part of a truncated file, or nil for a complete one.
  public let truncation: Truncation?
  /// The chapters of the file.
  public let chapters: [Chapter]
  /// Descriptions of faults that were found when the file was opened, but did not prevent opening.
  public let notes: [String]
  /// Whether the container says that bytes are missing; ``notes`` then says how often.
  let lacksBytes: Bool
  /// The corrections of packet times that every reader of the file must apply.
  ///
  /// Nil if the clock of the file never restarts.
  let corrections: TimeCorrections?
  /// The clock that ``captureClock(_:captureFrameRate:x:y:)`` chooses without arguments.
  private(set) var clockChoice = CaptureClock.Choice.capture
  /// The capture rate that it takes without arguments; nil for that of the file.
  private(set) var givenCaptureFrameRate: FrameRate?
  /// The index beside the file and its use; nil unless it was requested.
  public internal(set) var keptIndex: KeptIndex?
  /// The tracks that are neither the video track nor the audio track, without the titles of chapters.
  package var otherTracks: [TrackFormat] {
    let taken = [videoTrack?.format.index, audioTrack?.format.index]
    return tracks.map(\.format).filter { !taken.contains($0.index) && $0.otherName != nil }
  }

  /// The readable part of a truncated file, whose index or header describes more than the file
  /// contains.
  public struct Truncation: Hashable, Sendable {
    /// The number of frames that can be read.
    public let readableFrameCount: Int
    /// The number of frames that the index or the header states; nil if neither states a number.
    public let statedFrameCount: Int?
  }

  /// Reads the index of a movie file.
  ///
  /// Blocks.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - allowsTruncation: Whether a truncated file is accepted. ``truncation`` then describes it.
  ///     If false, a truncated file is an error.
  ///   - keepsIndex: Whether a ``KeptIndex`` is used, which stores the index of the packets in a
  ///     file next to the movie. If no such file fits the movie, it is written. ``keptIndex`` then
  ///     describes the use of that file. An error of that file never prevents opening the movie.
  /// - Throws: `MediaError` with `.fileNotFound`, `.noPermission`, or `.invalidData` for a file
  ///   that is not a movie, or is damaged or truncated.
  public init(
    path: String, allowsTruncation: Bool = false, keepsIndex: Bool = false
  ) throws(MediaError) {
    try AssetFile.check(path)
    self =
      keepsIndex
      ? try Asset.withKeptIndex(path: path, allowsTruncation: allowsTruncation)
      : try Asset(path, AssetIndex.reading(path), allowsTruncation: allowsTruncation)
  }

  /// Makes an asset from the index of its file.
  init(
    _ path: String, _ index: AssetIndex, allowsTruncation: Bool
  ) throws(MediaError) {
    self.path = path
    container = index.containerName.split(separator: ",").first.map(String.init) ?? "unknown"
    metadata = index.metadata
    chapters = index.chapters
    if index.tracks.contains(where: {
      [.video, .audio].contains($0.kind) && index.elsewhere.contains($0.index)
    }) {
      throw MediaError(
        .invalidData, DataReferences.refusal(of: path), recovery: DataReferences.recovery)
    }
    videoTrack = try index.videoTrack(allowsTruncation: allowsTruncation)
    audioTrack = try index.audioTrack(origin: videoTrack, allowsTruncation: allowsTruncation)
    truncation = videoTrack.flatMap { index.truncation(of: $0) }
    tracks = AssetTrack.all(
      of: index, video: videoTrack, audio: audioTrack, allowsTruncation: allowsTruncation)
    // A cancellation also makes a track unreadable, and must not be mistaken for damage.
    try MediaError.checkCancellation(path)
    guard videoTrack != nil || audioTrack != nil else {
      throw .invalid(path, "contains no video and no audio that can be decoded")
    }
    guard !index.isClockInconsistent else {
      throw MediaError(
        .invalidData, ClockRestarts.refusal(of: path), recovery: ClockRestarts.recovery)
    }
    corrections = index.corrections
    lacksBytes = !index.damagedCounts.isEmpty
    notes = index.notes(video: videoTrack, audio: audioTrack)
  }

  /// The tracks of one media type, in file order.
  public func tracks(of mediaType: MediaType) -> [AssetTrack] {
    tracks.filter { $0.mediaType == mediaType }
  }

  /// Returns this asset with other tracks as its video track and audio track.
  ///
  /// - Parameter selection: The tracks.
  /// - Returns: The asset.
  /// - Throws: `MediaError` with `.noSuchTrack` for a track number that does not exist, and for a
  ///   track that cannot be decoded.
  public func selecting(_ selection: TrackSelection) throws(MediaError) -> Asset {
    var asset = self
    if let number = selection.video {
      asset.videoTrack = try track(number, .video).video
    }
    switch selection.audio {
    case .automatic: break
    case .number(let number): asset.audioTrack = try track(number, .audio).audio
    case .none: asset.audioTrack = nil
    }
    guard asset.videoTrack != nil || asset.audioTrack != nil else {
      throw MediaError(
        .noSuchTrack, "no track of \(path) is left",
        recovery: Recovery("choose a track that it has", .inspect(file: path)))
    }
    asset.audioTrack = asset.audioTrack?.counted(from: asset.videoTrack)
    return asset
  }

  /// Returns the same asset, whose capture times come from this clock.
  ///
  /// - Parameters:
  ///   - choice: The clock.
  ///   - captureFrameRate: The capture rate; nil for that of the file.
  /// - Returns: The asset.
  public func measured(
    by choice: CaptureClock.Choice, captureFrameRate: FrameRate? = nil
  ) -> Asset {
    var asset = self
    (asset.clockChoice, asset.givenCaptureFrameRate) = (choice, captureFrameRate)
    return asset
  }

  /// The track with a number among those of its type, from 1.
  private func track(_ number: Int, _ mediaType: MediaType) throws(MediaError) -> AssetTrack {
    let all = tracks(of: mediaType)
    guard all.indices.contains(number - 1) else {
      throw MediaError(
        .noSuchTrack, "\(path) has no \(mediaType.rawValue) track \(number); it has \(all.count)",
        recovery: Recovery("choose a track that it has", .inspect(file: path)))
    }
    let track = all[number - 1]
    guard track.video != nil || track.audio != nil else {
      throw MediaError(
        .noSuchTrack, "\(mediaType.rawValue) track \(number) of \(path) cannot be decoded",
        recovery: Recovery("choose another track", .inspect(file: path)))
    }
    return track
  }

  /// Opens the file to read its packets, whose times are corrected as in the asset.
  ///
  /// - Parameter probes: Whether to read the first packets at once, to find parameters that the
  ///   headers lack.
  /// - Returns: The demuxer.
  /// - Throws: `CallFailure` if the file cannot be opened.
  package func demuxer(probes: Bool = true) throws(CallFailure) -> Demuxer {
    var demuxer = try Demuxer(opening: path, probes: probes)
    demuxer.corrections = corrections
    return demuxer
  }

  /// Returns this asset with the given track as its video track or audio track.
  func choosing(_ track: AssetTrack) -> Asset {
    var asset = self
    asset.videoTrack = track.video ?? videoTrack
    asset.audioTrack = track.audio ?? audioTrack
    return asset
  }

  /// The time of the asset's time zero on the file's own time axis, in seconds.
  package var origin: Rational {
    if let videoTrack { return videoTrack.origin }
    guard let audioTrack else { return .zero }
    return Rational(Int128(audioTrack.originSample), over: Int128(audioTrack.sampleRate))
  }

  /// The time from the asset's time zero to the end of the last frame, or to the end of the audio
  /// if there is no video.
  public var duration: MediaTime {
    if let frames = videoTrack?.frames {
      return MediaTime(frames.endTicks, over: frames.timescale)
    }
    return audioTrack.flatMap { MediaTime(exactly: $0.sampleCount, over: $0.sampleRate) } ?? .zero
  }
}

extension Asset {
  /// The asset as a media source for compositions.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an asset of zero duration.
  public func mediaSource() throws(MediaError) -> MediaSource {
    var tracks: [SourceTrack] = []
    if let videoTrack {
      tracks.append(
        SourceTrack(
          .video, rotation: videoTrack.rotation, language: videoTrack.format.metadata["language"]))
    }
    if let audioTrack {
      tracks.append(SourceTrack(.audio, language: audioTrack.format.metadata["language"]))
    }
    do throws(MediaError) {
      return try MediaSource(path: path, duration: duration, tracks: tracks)
    } catch {
      throw MediaError(.emptyRange, error.description, recovery: "choose a file that lasts longer")
    }
  }
}

extension Asset {
  /// The values of the timed metadata tracks (`mebx`), in order of time.
  ///
  /// Each value has the index of the last frame at or before its time. Values that
  /// `MovieFileOutput` stored have the exact time of a frame. Blocks while the samples are read.
  /// The result is empty for a file without such tracks, and for an unfinished file.
  public func timedMetadata() -> [TimedMetadataItem] {
    let entries = videoTrack?.frames.entries ?? []
    let timescale = Int128(videoTrack?.frames.timescale ?? 1)
    var index = 0
    return TimedMetadataReader.read(from: path).compactMap { value in
      let seconds = value.seconds - origin
      guard let time = MediaTime(exactly: seconds) else { return nil }
      // Values and frames are both in order of time, so `index` only increases.
      while index + 1 < entries.count,
        Rational(Int128(entries[index + 1].ticks), over: timescale) <= seconds
      {
        index += 1
      }
      return TimedMetadataItem(
        key: value.key, value: value.value, frameIndex: Int64(index), time: time)
    }
  }
}

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

/// The time map that a movie stores.
package enum StoredTimeMap: Sendable {
  /// The map of a part of the frame.
  package struct Pane: Sendable {
    /// The part; nil for the whole frame.
    package let box: TimeMapBox.Pane?
    /// The map.
    package let map: TimeMap
  }

  /// The movie has none.
  case none
  /// The movie is a recording, whose ledger is its map.
  case recording
  /// The maps; never empty.
  case panes([Pane])
  /// The movie has one that cannot be used, for a reason that completes "FILE …".
  case refused(String)
}

extension Asset {
  /// The time map of the movie: when and in which recording each frame was captured.
  ///
  /// Movies that this library exports have one, and the ledger of a recording is one. It is read from
  /// the file and compared with the movie. Nil if the movie has none, or if another program has changed
  /// the movie since.
  public var timeMap: TimeMap? {
    switch storedTimeMap() {
    case .panes(let panes): panes.first?.map
    case .none, .recording: recordingMap()?.map
    case .refused: nil
    }
  }

  /// Why the time map in the file is not used; nil if it is used, or if there is none.
  ///
  /// The text completes a sentence that begins with the name of the file.
  public var timeMapRefusal: String? {
    if case .refused(let reason) = storedTimeMap() { reason } else { nil }
  }

  /// Reads the time map from the file.
  ///
  /// The box counts more than the note in the comment, which other programs keep.
  package func storedTimeMap() -> StoredTimeMap {
    guard let frames = videoTrack?.frames else { return .none }
    let note = (metadata[TimeMapNote.key] ?? metadata[TimeMapNote.key.uppercased()])
      .flatMap(TimeMapNote.init(comment:))
    let box = storedBox()
    guard box != nil || note != nil else { return .none }
    let digest = sampleDigest()
    if let box {
      guard box.digest == digest else { return .refused(Self.changed) }
      let panes = box.entries.compactMap { entry in
        TimeMap(code: entry.code, frameCount: frames.entries.count).map {
          StoredTimeMap.Pane(box: entry.pane, map: $0)
        }
      }
      return panes.count == box.entries.count ? .panes(panes) : .refused("has a damaged time map")
    }
    guard let note else { return .none }
    guard note.digest == digest else { return .refused(Self.changed) }
    if recording != nil { return .recording }
    guard let map = note.map(ticks: frames.entries.map(\.ticks), timescale: frames.timescale)
    else {
      return .refused(
        "has lost its time map: another program copied it, and left out what it did not know")
    }
    return .panes([StoredTimeMap.Pane(box: nil, map: map)])
  }

  private static let changed =
    "has a time map of other frames or times: another program changed it since it was made"

  private func storedBox() -> TimeMapBox? {
    guard container == "mov", let file = try? MovieBoxes(opening: path, forWriting: false) else {
      return nil
    }
    return TimeMapBox(from: file)
  }

  /// The digest of the video track; nil if it cannot be computed.
  func sampleDigest() -> SampleDigest? {
    guard container == "mov", let track = videoTrack,
      let file = try? MovieBoxes(opening: path, forWriting: false)
    else { return nil }
    return SampleDigest(
      ofTrack: track.format.index, in: file, ticks: track.frames.entries.map(\.ticks),
      timescale: track.frames.timescale)
  }

  /// The identity of the movie as a recording, from its frames alone.
  private func identity(_ frames: FrameTable) -> UInt64 {
    var digest =
      sampleDigest()
      ?? SampleDigest(ticks: frames.entries.map(\.ticks), timescale: frames.timescale)
    if let recording { digest.add(UInt64(bitPattern: recording.firstCaptureTime.wholeNanoseconds)) }
    return digest.rawValue
  }

  /// The map of a recording, from its ledger, or computed from its first frame and its gaps; nil for
  /// another movie.
  func recordingMap() -> (map: TimeMap, hasLedger: Bool)? {
    guard let frames = videoTrack?.frames, let recording else { return nil }
    let missing = recording.missing(frameCount: frames.entries.count)
    let ticks: (timescale: Int32, ticks: [Int64])
    let count = frames.entries.count
    let taken = LedgerBox.takenTimes(from: path).flatMap { $0.count >= count ? $0 : nil }
    if let taken {
      ticks = (1_000_000, taken)
    } else {
      let start = recording.firstCaptureTime
      ticks = Self.sums(frames.entries.map { MediaTime($0.ticks, over: frames.timescale) }, start)
    }
    var map = TimeMap()
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: .driver, timescale: ticks.timescale,
        knowsLosses: missing != nil))
    map.beginSegment(recording: number, timeScale: .one, isContinued: false)
    var lost: Int64 = 0
    map.append(
      contentsOf: frames.entries.indices.map { index in
        lost &+= missing?[index] ?? 0
        return TimeMap.Frame(index: Int64(index), lost: lost, ticks: ticks.ticks[index])
      })
    return (map, hasLedger: taken != nil)
  }

  /// Returns times after a start as ticks, exactly where a timescale of 32 bits allows it.
  private static func sums(
    _ times: [MediaTime], _ start: MediaTime
  ) -> (timescale: Int32, ticks: [Int64]) {
    let common = times.first.map {
      greatestCommonDivisor(UInt128($0.timescale), UInt128(1_000_000))
    }
    let exact = times.first.flatMap { first in
      common.flatMap { Int32(exactly: Int128(first.timescale) / Int128($0) * 1_000_000) }
    }
    let timescale = exact ?? 1_000_000_000
    let ticks = times.map { time -> Int64 in
      let sum = (start + time) * Rational(Int64(timescale))
      return (try? sum.rounded(.halfAwayFromZero)).map { Int64(clamping: $0) } ?? 0
    }
    return (timescale, ticks)
  }

  /// The map of a movie whose times follow from those of the file by one factor.
  func fileMap(_ basis: TimeMap.Recording.Basis, timeScale: Rational) -> TimeMap {
    var map = TimeMap()
    guard let frames = videoTrack?.frames else { return map }
    // The factor becomes part of the timescale, so that the times stay exact.
    let units = Rational(Int64(frames.timescale)) / timeScale
    let exact = Int32(exactly: units.numerator)
    let timescale = exact ?? 1_000_000_000
    let factor = timeScale * Rational(Int128(timescale), over: Int128(frames.timescale))
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: basis, timescale: timescale, knowsLosses: false))
    map.reserveCapacity(frames.entries.count)
    map.beginSegment(recording: number, timeScale: timeScale, isContinued: false)
    for (index, entry) in frames.entries.enumerated() {
      let ticks = Rational(entry.ticks) * factor
      map.append(
        TimeMap.Frame(
          index: Int64(index),
          ticks: (try? ticks.rounded(.halfAwayFromZero)).map { Int64(clamping: $0) } ?? 0))
    }
    return map
  }

  /// The map of a movie whose frames were captured at a rate, whatever their times.
  func indexMap(_ rate: FrameRate) -> TimeMap {
    var map = TimeMap()
    guard let frames = videoTrack?.frames else { return map }
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity(frames), basis: .statedRate, timescale: rate.numerator,
        knowsLosses: false))
    map.beginSegment(recording: number, timeScale: nil, isContinued: false)
    for index in frames.entries.indices {
      map.append(
        TimeMap.Frame(index: Int64(index), ticks: Int64(index) &* Int64(rate.denominator)))
    }
    return map
  }
}

extension Asset {
  /// Opens a movie with the packet index that is stored next to it.
  ///
  /// If no valid index exists, reads the packets and writes an index.
  static func withKeptIndex(
    path: String, allowsTruncation: Bool
  ) throws(MediaError) -> Asset {
    var use = KeptIndex(path: PacketIndexFile.path(besides: path))
    let state = PacketIndexFile.MovieState(path)
    switch PacketIndexFile.read(use.path) {
    case nil: break
    case .failure(let refusal): use.refusal = refusal.reason
    case .success(let file):
      use.refusal = state.map { file.movie.refusal(now: $0) } ?? .unreadable
      if use.refusal == nil {
        // If the stored index yields no asset, the packets of the movie are read instead.
        if let index = try? AssetIndex(path, kept: file.tracks), !index.isContradicted,
          var asset = try? Asset(path, index, allowsTruncation: allowsTruncation)
        {
          use.isUsed = true
          asset.keptIndex = use
          return asset
        }
        use.refusal = .contradiction
      }
    }
    let index = try AssetIndex.reading(path)
    var asset = try Asset(path, index, allowsTruncation: allowsTruncation)
    use.writeFailure = index.write(state, &use)
    asset.keptIndex = use
    return asset
  }
}

extension Asset {
  /// Resolves a time expression in this asset, such as `1.25`, `120f`, `@hit` or `end`.
  ///
  /// A time after the end is returned unchanged.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a time before the start, or for a frame or
  ///   mark that does not exist; with `.overflow` for a time without an exact representation.
  public func resolve(_ time: TimeExpression) throws(MediaError) -> MediaTime {
    let frames = videoTrack?.frames
    return try time.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero },
      markTime: { (name) throws(MediaError) in try markTime(name) })
  }

  /// Resolves a range expression in this asset, such as `1.2..1.5` or `0f..240f`.
  ///
  /// - Throws: `MediaError` as for a time, and `.emptyRange` for a range that ends before it
  ///   starts.
  public func resolve(_ range: TimeRangeExpression) throws(MediaError) -> TimeRange {
    let frames = videoTrack?.frames
    return try range.resolved(
      sourceDuration: duration, frameCount: Int64(frames?.entries.count ?? 0),
      frameTime: { (index) throws(MediaError) in try frames?.time(ofFrame: index) ?? .zero },
      markTime: { (name) throws(MediaError) in try markTime(name) })
  }
}

extension Asset {
  /// Cancels all current and future reading of movie files in this process.
  ///
  /// The reads fail with ``MediaError/Code/cancelled``. Use this in a program that is about to
  /// exit. May be called from any thread. A disk read that is already in progress is not
  /// interrupted, but libavformat starts no further one (`AVIOInterruptCB`).
  public static func cancelReading() { ReadWatch.cancelAll() }
}

extension Asset {
  /// The names of the FFmpeg encoders that recordings, exports and stills need.
  package static var requiredEncoders: [String] { RequiredEncoders.names }

  /// The required encoders that are missing in the linked FFmpeg.
  package static var missingEncoders: [String] { RequiredEncoders.missing }

  /// The versions of the libraries that read and write movies.
  public static var libraryVersions: [LibraryVersion] { LibraryVersions.all }
}
