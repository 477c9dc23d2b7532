// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat

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
  /// Descriptions of the tracks that are neither the video track nor the audio track.
  ///
  /// An export leaves these tracks out.
  package var otherTracks: [String] {
    let taken = [videoTrack?.format.index, audioTrack?.format.index]
    return tracks.map(\.format).filter { !taken.contains($0.index) }.compactMap(\.otherName)
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
  /// - Throws: `LibAVError` if the file cannot be opened.
  package func demuxer(probes: Bool = true) throws(LibAVError) -> Demuxer {
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
  var origin: Rational {
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
