// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import LibAV
import MediaTiming
import Retiming

/// Everything that is decided before the first byte is written.
struct ExportPlan {
  /// Where the pictures come from.
  enum Pictures {
    case copied(PassthroughPlan)
    case rendered(ConstantRatePlan, PictureGeometry)
  }

  let container: String
  /// The assets whose pictures are shown, in the order in which they come.
  let assets: [Asset]
  /// The pictures of the first of them, which say what the track is like.
  let track: VideoTrack
  /// What the sound is made of; nil where there is none.
  let sound: SoundPlan?
  let pictures: Pictures
  /// Whether each frame keeps its number and its time, so that the recorder's account holds.
  let keepsRecording: Bool
  /// What will have been done, but for the time it takes.
  let report: ExportReport

  /// The number of frames to write.
  var frameCount: Int64 { report.framesCopied + report.framesHidden + report.framesEncoded }

  init(_ session: ExportSession, _ settings: ExportSettings) throws {
    let composition = session.composition
    container = try settings.container()
    let (track, assets) = try Self.pictures(session)
    guard let video = assets.first?.videoTrack, let asset = assets.first else {
      throw ExportError.hasNoPictures(session.asset.path)
    }
    self.track = video
    self.assets = assets
    var report = ExportReport()
    report.path = settings.path
    report.segments = track.segments
    switch settings.mode {
    case .passthrough:
      try Self.checkAlike(assets)
      let plan = try PassthroughPlan(track, assets, boundary: settings.boundary)
      pictures = .copied(plan)
      report.framesCopied = Int64(plan.frames.count) - plan.hiddenCount
      report.framesHidden = plan.hiddenCount
      report.hiddenNanoseconds = try Self.nanoseconds(
        Rational(Int128(plan.hiddenTicks), Int128(plan.timescale)), .towardPositiveInfinity)
      report.framesSkipped = plan.skippedCount
      report.duration = try MediaTime(value: plan.endTicks, timescale: plan.timescale)
      report.maxTimeErrorNanoseconds = try Self.nanoseconds(
        plan.maxTimeError, .towardPositiveInfinity)
    case .constant(let rate):
      let plan = try ConstantRatePlan(track, rate, settings.sampling, assets)
      let matrix = ExportOutput.displayMatrix(session.asset.videoTrack?.format, track)
      pictures = .rendered(plan, try PictureGeometry(video, matrix: matrix, settings))
      report.framesEncoded = plan.slots.count
      report.framesDuplicated = plan.duplicatedCount
      report.framesSkipped = plan.skippedCount
      report.sparse = plan.sparse
      report.duration = try MediaTime(plan.slots.seconds(of: plan.slots.count))
    }
    keepsRecording = settings.mode == .passthrough && composition.isWhole(of: asset)
    if let sound = try SoundPlan(session, settings, container) {
      report.sound = sound.report
      report.avEndDifferenceNanoseconds = try Self.nanoseconds(
        sound.end.subtracting(report.duration.seconds), .halfAwayFromZero)
      self.sound = sound
    } else {
      self.sound = nil
    }
    let keeps = keepsRecording
    report.lostMetadata = assets.flatMap { Self.lostMetadata(of: $0, keepsRecording: keeps) }
    self.report = report
  }

  /// The track of pictures, and the assets that it plays in the order in which they come.
  private static func pictures(
    _ session: ExportSession
  ) throws(ExportError) -> (CompositionTrack, [Asset]) {
    guard let track = session.composition.track(.video), !track.segments.isEmpty else {
      throw ExportError(
        .unsupportedSource, "the composition plays nothing", hint: "insert a range of a movie")
    }
    var assets: [Asset] = []
    for case let source? in track.segments.map(\.source)
    where !assets.contains(where: { $0.path == source.path }) {
      assets.append(try session.asset(for: source))
    }
    // What plays nothing at all still has a size.
    return (track, assets.isEmpty ? [session.asset] : assets)
  }

  /// Throws unless the packets of all assets can stand in one track.
  private static func checkAlike(_ assets: [Asset]) throws(ExportError) {
    guard let first = assets.first, let format = first.videoTrack?.format.parameters else { return }
    for asset in assets.dropFirst() {
      guard let other = asset.videoTrack?.format.parameters, other.decodesLike(format) else {
        throw ExportError(
          .unsupportedSource,
          "the pictures of \(asset.path) are stored in another way than those of \(first.path), "
            + "so that one track cannot hold copies of both",
          hint: "render them with --fps")
      }
    }
  }

  /// What of the source's tags and tracks the file is left without.
  private static func lostMetadata(of asset: Asset, keepsRecording: Bool) -> [String] {
    var lost: [String] = []
    if !asset.chapters.isEmpty { lost.append("chapters") }
    if asset.otherTrackCount > 0 { lost.append("\(asset.otherTrackCount) other tracks") }
    // The recorder's account names frames by the times they had.
    if !keepsRecording, asset.metadata[RecordingInfo.key] != nil { lost.append(RecordingInfo.key) }
    return lost
  }

  private static func nanoseconds(_ seconds: Rational, _ rounding: TimeRounding) throws -> Int64 {
    Int64(clamping: try seconds.multiplied(by: Rational(1_000_000_000)).rounded(rounding))
  }
}
