// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankRetiming

/// All decisions about an export, made before the first byte is written.
struct ExportPlan {
  /// The method that produces the video frames.
  enum FrameSource {
    case copied(PassthroughPlan, crf: Int)
    case rendered(ConstantRatePlan, FrameGeometry, RenderSettings)
    case joined(ShardJoin)
  }

  /// The file and the digest of the shard to make; nil unless a shard is made.
  let shard: (file: ShardFile, digest: ExportDigest)?
  let container: String
  /// The assets with visible video, in order of first use.
  let assets: [Asset]
  /// The video track of the first asset, which determines the output format.
  let track: VideoTrack
  /// The audio plan; nil without audio.
  let audio: AudioExportPlan?
  let frames: FrameSource
  /// Whether every frame keeps its index and time.
  ///
  /// The recording's metadata about single frames then stays valid.
  let keepsRecording: Bool
  /// The chapters of the assets in composition time.
  let chapters: ChapterMap
  /// Track-level side data, such as HDR metadata.
  let sideData: [TrackSideData]
  /// The tracks that are copied besides the video and the chosen audio; nil if all frames are rendered.
  let furtherTracks: FurtherTracks?
  /// The search for the quality at which a movie fits the file size; nil without a limit.
  let search: FileLengthSearch?
  /// The search for the animated image that fits the file size; nil without a limit, and for
  /// movies.
  let imageSearch: AnimatedImageSearch?
  /// The video tracks of the assets, each with the display matrix by which rendered frames are
  /// rotated.
  let sources: [(track: VideoTrack, matrix: [Int32])]
  /// The expected report, without the elapsed time.
  let report: ExportReport
  /// The time maps of the assets; nil if the output gets none.
  private let sourceMaps: [TimeMap]?
  /// The expected time map; nil if the output gets none.
  let timeMap: OutputTimeMap?
  /// Whether the capture rate gives the capture times of the output, as it must without a time map.
  let ratesGiveTimes: Bool

  /// The number of video frames to write to the output.
  var frameCount: Int64 { report.framesCopied + report.framesHidden + report.framesEncoded }

  /// Whether output frames are synthesized.
  var synthesizesFrames: Bool {
    if case .rendered(let plan, _, _) = frames { plan.inBetweens != nil } else { false }
  }

  /// Plans an export; `reason` says why a passthrough export encodes no frames, if that is known.
  init(
    _ session: ExportSession, _ settings: ExportSettings, hidingBecause reason: String? = nil
  ) throws {
    let composition = session.composition
    let container = try settings.container()
    try AnimatedImageCheck.check(settings)
    shard = try Self.shard(session, settings)
    search = try FileLengthSearch(settings)
    imageSearch = AnimatedImageSearch(settings)
    self.container = shard == nil ? container : "mov"
    let (track, assets) = try Self.frames(session)
    guard let video = assets.first?.videoTrack, let asset = assets.first else {
      throw MediaError.hasNoFrames(session.asset.path)
    }
    self.track = video
    self.assets = assets
    let isMixed = Self.differInRotation(assets, track)
    let matrix = ExportOutput.displayMatrix(session.asset.videoTrack?.format, track)
    sources = assets.compactMap(\.videoTrack).map {
      ($0, isMixed ? $0.format.displayMatrix : matrix)
    }
    var report = ExportReport()
    report.path = settings.path
    report.segments = track.segments
    switch settings.mode {
    case .passthrough(let boundary, let crf):
      try Self.checkAlike(assets, isMixed: isMixed)
      try Self.checkStorable(video, asset, container)
      if assets.contains(where: { $0.videoTrack?.changesDescription == true }) {
        _ = try JoinedDescriptions(assets, in: MovieContainer(rawValue: container))
      }
      let plan = try PassthroughPlan(track, assets, boundary: boundary, hidingBecause: reason)
      frames = .copied(plan, crf: crf)
      chapters = try ChapterMap(
        track, assets, markers: composition.markers, timescale: plan.timescale)
      report.framesCopied = Int64(plan.frames.count) - plan.hiddenCount - plan.encodedCount
      report.framesEncoded = plan.encodedCount
      report.framesHeaderChanged = plan.changedCount
      report.copies = plan.copies
      report.cuts = plan.cuts
      report.framesHidden = plan.hiddenCount
      report.hiddenDuration = try Self.duration(
        Rational(Int128(plan.hiddenTicks), over: Int128(plan.timescale)), .towardPositiveInfinity)
      report.framesSkipped = plan.skippedCount
      report.duration = MediaTime(plan.endTicks, over: plan.timescale)
      report.maxTimeError = try Self.duration(
        plan.maxTimeError, .towardPositiveInfinity)
      if let reason = plan.hidingReason {
        report.warnings.append(
          "frames that only decoding needs are hidden at cuts, and some players show them: \(reason)"
        )
      }
    case .constant(let rate, var rendering):
      // A track has one rotation, so frames that need different rotations are rotated during
      // rendering.
      if isMixed { rendering.appliesRotation = true }
      guard container == "mov" || rendering.encoding != .ffv1 else {
        throw MediaError(
          .unsupportedContainer, "MP4 cannot hold ffv1 frames",
          recovery: Recovery("use the extension .mov, or choose H.264", .change(.codec)))
      }
      let shutter = rendering.appliedShutterAngle
      var plan = try ConstantRatePlan(track, rate, rendering.sampling, shutter, assets)
      if let shard {
        plan = plan.limited(to: try plan.groups.frames(of: shard.file.shard))
        report.path = shard.file.path
        report.shard = ExportReport.Shard(
          number: shard.file.shard.number, count: shard.file.shard.count,
          firstFrame: plan.rendered.lowerBound, frameCount: Int64(plan.rendered.count))
      }
      let geometry = try FrameGeometry(sources, rendering)
      if rendering.encoding.codec == .h264, geometry.format.depth > 8 {
        report.warnings.append(
          "the \(geometry.format.depth)-bit frames become H.264 of the profile High "
            + "\(geometry.format.depth), which phones and most browsers do not play; more play HEVC"
        )
      }
      // GIF has no partially transparent pixels, so an alpha channel is not kept.
      let keepsAlpha = geometry.format.hasAlpha && rendering.encoding != .gif
      if !keepsAlpha, sources.contains(where: { $0.track.hasAlpha }) {
        report.lostMetadata.append("alpha channel")
      }
      if settings.part == .joined {
        frames = .joined(
          try ShardJoin(
            plan, settings, settings.digest ?? session.digest(settings, version: ""),
            isUpright: rendering.rotatesFrames))
      } else {
        frames = .rendered(plan, geometry, rendering)
      }
      chapters = try ChapterMap(
        shard == nil ? track : nil, assets, markers: composition.markers, timescale: 240_000)
      report.framesEncoded = Int64(plan.rendered.count)
      report.framesDuplicated = plan.duplicatedCount
      report.framesSkipped = plan.skippedCount
      report.framesSynthesized = plan.inBetweens?.synthesizedCount ?? 0
      report.shutterDegrees = shutter?.degrees.doubleValue
      report.sparse = plan.sparse
      report.duration = try MediaTime(plan.slots.seconds(of: Int64(plan.rendered.count)))
      if rendering.encoding.animatedImage != nil {
        let timing = try SlotTiming(rate, rendering.encoding)
        report.maxTimeError = try Self.duration(
          timing.greatestError(count: Int64(plan.rendered.count)), .towardPositiveInfinity)
      }
    }
    let known = assets.map { $0.sourceTimeMap() }
    for (asset, source) in zip(assets, known) {
      if let refusal = source.refusal {
        report.warnings.append("\(refusal); the times of \(asset.path) are taken as they are")
      }
    }
    let hasMap =
      settings.writesTimeMap && self.shard == nil
      && AnimatedImageFormat(path: settings.path) == nil
    sourceMaps = hasMap ? known.map(\.map) : nil
    timeMap = try Self.timeMap(frames, sourceMaps, settings)
    ratesGiveTimes =
      try settings.writesTimeMap
      || Self.timeMap(frames, known.map(\.map), settings)?.isOneSpeed ?? true
    keepsRecording =
      settings.mode.isPassthrough && composition.isWhole(of: asset) && known[0].refusal == nil
    // The audio is planned for a shard as well, so that a refusal comes first.
    if AnimatedImageFormat(path: settings.path) != nil {
      self.audio = nil
      if session.composition.track(.audio)?.segments.isEmpty == false {
        report.lostMetadata.append("audio")
      }
    } else if let audio = try AudioExportPlan(session, settings, container), shard == nil {
      report.audio = audio.report
      report.warnings += audio.conversions + (audio.speedWarning.map { [$0] } ?? [])
      report.avEndDifference = try Self.duration(
        audio.end - report.duration.seconds, .halfAwayFromZero)
      self.audio = audio
    } else {
      self.audio = nil
    }
    if case .copied(let plan, _) = frames, let format = MovieContainer(rawValue: container) {
      furtherTracks = try FurtherTracks(
        track, assets, in: format, timescale: plan.timescale, audio: self.audio)
    } else {
      furtherTracks = nil
    }
    report.warnings += session.assets.flatMap { asset in
      asset.notes.map { "\(asset.path): \($0)" }
    }
    // A movie whose frames are all encoded has no metadata of Dolby Vision, and does not claim it.
    let keepsPackets = settings.mode.isPassthrough && report.framesCopied + report.framesHidden > 0
    sideData = try Self.sideData(of: asset, keepsPackets: keepsPackets)
    if keepsPackets, sideData.contains(where: \.isDolbyVision) {
      report.framesWithoutRPU = report.framesEncoded
    }
    report.lostMetadata += chapters.lost
    for case let language? in Set(session.composition.tracks.map(\.language))
    where TrackLanguage.stored(language, in: container) == nil {
      report.lostMetadata.append("language=\(language)")
    }
    for (number, asset) in assets.enumerated() {
      report.lostMetadata += Self.lostMetadata(
        of: asset, container, keepsPackets: keepsPackets, keepsRecording: keepsRecording)
      let copied = furtherTracks?.copied[number] ?? []
      report.lostMetadata += asset.otherTracks.filter { !copied.contains($0.index) }
        .compactMap(\.otherName)
    }
    if AnimatedImageFormat(path: settings.path) != nil {
      report.lostMetadata.append("capture times")
      for asset in assets where asset.videoTrack?.containsHDRVideo == true {
        report.warnings.append(
          "\(asset.path) has a high dynamic range (HDR), which the image does not; its frames are not "
            + "tone-mapped and look flat")
      }
      report.lostMetadata += AnimatedImageCheck.lostMetadata(asset, chapters)
        .filter { !report.lostMetadata.contains($0) }
    }
    self.report = report
  }

  /// Returns the time map of the output after its frames were written; nil if it gets none.
  func timeMap(after rendered: OutputTimeMap.Rendered) throws -> OutputTimeMap? {
    switch frames {
    case .copied(let plan, _) where !rendered.undecodable.isEmpty:
      sourceMaps.map { OutputTimeMap(plan, $0, undecodable: rendered.undecodable) }
    case .rendered(let plan, _, _):
      try sourceMaps.map { OutputTimeMap(plan, $0, try SlotTiming(plan.slots.rate), rendered) }
    case .copied, .joined: timeMap
    }
  }

  /// Returns the frames of the assets that could not be decoded.
  func frames(
    _ undecodable: [ExportReport.UndecodableFrame]
  ) -> Set<TimeMapBuilder.SourceFrame> {
    Set(
      undecodable.compactMap { frame in
        assets.firstIndex { $0.path == frame.path }
          .map { TimeMapBuilder.SourceFrame(source: $0, index: frame.index) }
      })
  }

  private static func timeMap(
    _ frames: FrameSource, _ sources: [TimeMap]?, _ settings: ExportSettings
  ) throws -> OutputTimeMap? {
    guard let sources else { return nil }
    return switch frames {
    case .copied(let plan, _): OutputTimeMap(plan, sources)
    case .rendered(let plan, _, _):
      OutputTimeMap(plan, sources, try SlotTiming(plan.slots.rate))
    case .joined(let shards):
      OutputTimeMap(shards.plan, sources, try SlotTiming(shards.plan.slots.rate))
    }
  }

  /// Returns how the frames of an attempt are rendered; nil without a search.
  func rendering(
    _ search: AnimatedImageSearch?
  ) throws(MediaError) -> (geometry: FrameGeometry, settings: RenderSettings)? {
    guard let search, case .rendered(_, let geometry, let requested) = frames else { return nil }
    let settings = search.settings(requested, size: geometry.encoded)
    return (try FrameGeometry(sources, settings), settings)
  }

  /// Returns the file and the digest of the shard to make; nil unless a shard is made.
  ///
  /// - Throws: `MediaError` with `.shardRefused`, or if a source cannot be read.
  private static func shard(
    _ session: ExportSession, _ settings: ExportSettings
  ) throws -> (file: ShardFile, digest: ExportDigest)? {
    guard settings.part != .whole else { return nil }
    guard !settings.mode.isPassthrough else {
      throw MediaError(
        .shardRefused, "an export that copies packets has no shards",
        recovery: Recovery("render them at a constant frame rate", .change(.outputFrameRate)))
    }
    guard settings.undecodableFrames != .skip else {
      throw MediaError(
        .shardRefused, "an export in shards cannot skip frames",
        recovery: "repeat the previous frame instead")
    }
    if case .constant(_, let rendering) = settings.mode, rendering.sampling.synthesizesFrames {
      throw MediaError(
        .shardRefused, "an export that synthesizes frames has no shards",
        recovery: Recovery("choose another sampling", .change(.sampling)))
    }
    guard case .shard(let shard) = settings.part else { return nil }
    return (
      ShardFile(shard, besides: settings.path),
      try settings.digest ?? session.digest(settings, version: "")
    )
  }

  /// Returns the video track of the composition, and the assets that it plays in order of first
  /// use.
  private static func frames(
    _ session: ExportSession
  ) throws(MediaError) -> (CompositionTrack, [Asset]) {
    guard let track = session.composition.track(.video), !track.segments.isEmpty else {
      throw MediaError(
        .unsupportedSource, "the composition is empty", recovery: "insert a range of a movie")
    }
    var assets: [Asset] = []
    for case let source? in track.segments.map(\.source)
    where !assets.contains(where: { $0.path == source.path }) {
      assets.append(try session.asset(for: source))
    }
    // If the composition consists of gaps only, the track plays no asset. The session's asset then
    // determines the frame size.
    return (track, assets.isEmpty ? [session.asset] : assets)
  }

  /// Returns true if players would rotate the assets differently and the composition sets no
  /// rotation for all of them.
  private static func differInRotation(_ assets: [Asset], _ track: CompositionTrack) -> Bool {
    let tracks = assets.compactMap(\.videoTrack)
    guard let first = tracks.first else { return false }
    // A composition gets the rotation of its source. If the composition has another rotation, it
    // was set explicitly.
    if let rotation = track.rotation,
      rotation == 0 || !tracks.contains(where: { $0.rotation == rotation })
    {
      return false
    }
    return !tracks.allSatisfy { $0.isRotated(like: first) }
  }

  /// Throws an error if the packets of the assets differ in format or rotation.
  ///
  /// One track cannot contain packets with different formats or rotations.
  private static func checkAlike(_ assets: [Asset], isMixed: Bool) throws(MediaError) {
    guard let first = assets.first, let format = first.videoTrack?.format.parameters else { return }
    for asset in assets.dropFirst() {
      if isMixed, let track = asset.videoTrack, first.videoTrack?.isRotated(like: track) == false {
        throw MediaError(
          .unsupportedSource,
          "the video of \(asset.path) has another rotation than that of \(first.path), "
            + "so that one track cannot hold copies of both",
          recovery: Recovery("render them at a constant frame rate", .change(.outputFrameRate)))
      }
      guard let other = asset.videoTrack?.format.parameters, other.decodesLike(format) else {
        throw MediaError(
          .unsupportedSource,
          "the video of \(asset.path) has another format than that of \(first.path)"
            + "\(difference(asset.videoTrack, from: first.videoTrack)), "
            + "so that one track cannot hold copies of both",
          recovery: Recovery("render them at a constant frame rate", .change(.outputFrameRate)))
      }
    }
  }

  /// Names the first property of a track that keeps its packets out of another track.
  private static func difference(_ track: VideoTrack?, from other: VideoTrack?) -> String {
    guard let track, let other else { return "" }
    let formats = [track, other].map(\.format.parameters.pixelFormat.name)
    if track.codec != other.codec { return " (\(track.codec), not \(other.codec))" }
    if (track.width, track.height) != (other.width, other.height) {
      return " (\(track.width)x\(track.height), not \(other.width)x\(other.height))"
    }
    return formats[0] == formats[1]
      ? " (other parameter sets)" : " (\(formats[0]), not \(formats[1]))"
  }

  /// Throws an error if the container cannot store copies of the video packets.
  private static func checkStorable(
    _ track: VideoTrack, _ asset: Asset, _ container: String
  ) throws(MediaError) {
    guard ![.h264, .hevc, .mjpeg].contains(track.codec),
      !MovieWriter.accepts(
        track.format.parameters, timescale: track.timescale,
        container: MovieContainer(rawValue: container) ?? .mov)
    else { return }
    let fitsMP4 =
      container == "mov"
      && MovieWriter.accepts(
        track.format.parameters, timescale: track.timescale, container: .mp4)
    throw MediaError(
      .unsupportedContainer,
      "\(container.uppercased()) cannot hold the \(track.codec) frames of \(asset.path)",
      recovery: fitsMP4
        ? "use the extension .mp4"
        : Recovery("render them at a constant frame rate", .change(.outputFrameRate)))
  }

  /// Returns the side data that applies to all frames of an asset.
  ///
  /// HDR10 metadata may be stored only inside the frames. Copied frames keep this metadata, but
  /// rendered frames lose it. For rendering, it is therefore read from the first frame and written
  /// for the whole track.
  private static func sideData(
    of asset: Asset, keepsPackets: Bool
  ) throws -> [TrackSideData] {
    guard let format = asset.videoTrack?.format else { return [] }
    guard !keepsPackets else { return format.sideData }
    let stated = format.sideData.filter(\.survivesEncoding)
    guard format.parameters.isPerceptuallyQuantized else { return stated }
    var reader = try FrameReader(asset)
    return stated
      + TrackSideData.all(of: try reader.mediaFrame(at: 0)).filter { found in
        !stated.contains { $0.isSameKind(as: found) }
      }
  }

  /// Returns the names of the metadata and tracks of a source that the output does not keep.
  private static func lostMetadata(
    of asset: Asset, _ container: String, keepsPackets: Bool, keepsRecording: Bool
  ) -> [String] {
    // Both containers can store the side data that frames bring.
    var lost = (asset.videoTrack?.format.sideData ?? []).filter { data in
      !data.isStorable(in: container) || !keepsPackets && !data.survivesEncoding
    }.map(\.name)
    // The metadata of a recording refers to the original frame times. If the frame times change,
    // the metadata is lost.
    if !keepsRecording, asset.metadata[RecordingInfo.key] != nil { lost.append(RecordingInfo.key) }
    return lost
  }

  private static func duration(
    _ seconds: Rational, _ rounding: TimeRounding
  ) throws(MediaError) -> Duration {
    .nanoseconds(Int64(clamping: try (seconds * 1_000_000_000).rounded(rounding)))
  }
}
