// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import MediaTiming
import Retiming

/// Everything that is decided before the first byte is written.
struct ExportPlan {
  /// Where the pictures come from.
  enum Pictures {
    case copied(PassthroughPlan)
    case rendered(ConstantRatePlan)
  }

  let container: String
  let track: VideoTrack
  let pictures: Pictures
  /// Whether each frame keeps its number and its time, so that the recorder's account holds.
  let keepsRecording: Bool
  /// What will have been done, but for the time it takes.
  let report: ExportReport

  /// The number of frames to write.
  var frameCount: Int64 { report.framesCopied + report.framesEncoded }

  init(_ session: ExportSession, _ settings: ExportSettings) throws {
    let (composition, asset) = (session.composition, session.asset)
    container = try settings.container()
    track = try Self.track(composition, of: asset)
    var report = ExportReport()
    report.path = settings.path
    report.segments = composition.segments
    switch settings.mode {
    case .passthrough:
      let plan = try PassthroughPlan(composition, track.frames, path: asset.path)
      pictures = .copied(plan)
      report.framesCopied = Int64(plan.frames.count)
      report.framesSkipped = plan.skippedCount(of: track.frames)
      report.duration = try MediaTime(value: plan.endTicks, timescale: plan.timescale)
      report.maxTimeErrorNanoseconds = try Self.nanoseconds(
        plan.maxTimeError, .towardPositiveInfinity)
    case .constant(let rate):
      let plan = try ConstantRatePlan(composition, rate, track.frames)
      pictures = .rendered(plan)
      report.framesEncoded = plan.slots.count
      report.framesDuplicated = plan.duplicatedCount
      report.framesSkipped = plan.skippedCount
      report.duration = try MediaTime(plan.slots.seconds(of: plan.slots.count))
    }
    keepsRecording = settings.mode == .passthrough && composition.isWhole(of: asset)
    if let sound = asset.soundTrack {
      let planned = try Self.sound(sound, session, settings, container)
      report.sound = planned.report
      report.avEndDifferenceNanoseconds = try Self.nanoseconds(
        planned.end.subtracting(report.duration.seconds), .halfAwayFromZero)
    }
    report.lostMetadata = Self.lostMetadata(of: asset, keepsRecording: keepsRecording)
    self.report = report
  }

  private static func track(
    _ composition: Composition, of asset: Asset
  ) throws(ExportError) -> VideoTrack {
    guard let video = asset.videoTrack else {
      throw ExportError(
        .unsupportedSource, "\(asset.path) holds no pictures", hint: "give a movie with pictures")
    }
    guard !composition.segments.isEmpty else {
      throw ExportError(
        .unsupportedSource, "the composition plays nothing", hint: "insert a range of a movie")
    }
    for case let source? in composition.segments.map(\.source) where source.path != asset.path {
      throw ExportError(
        .unsupportedSource, "the composition plays \(source.path) besides \(asset.path)",
        hint: "export one file at a time")
    }
    return video
  }

  /// What the sound will come to, and where it ends in seconds.
  private static func sound(
    _ track: SoundTrack, _ session: ExportSession, _ settings: ExportSettings, _ container: String
  ) throws -> (report: ExportReport.Sound, end: Rational) {
    let rate = Int128(track.sampleRate)
    if SoundExport.isCopied(track, session.composition, of: session.asset, container: container) {
      return (
        ExportReport.Sound(algorithm: "copy", samples: track.sampleCount, lengthErrorSamples: 0),
        try Rational(Int128(track.startSample + track.sampleCount), rate)
      )
    }
    let samples = try AudioRetimer(
      algorithm: settings.audioTimePitchAlgorithm, sampleRate: track.sampleRate,
      channelCount: track.channelCount
    ).sampleCount(
      mappings: session.composition.segments.compactMap(\.mapping),
      duration: session.composition.duration)
    return (
      ExportReport.Sound(
        algorithm: settings.audioTimePitchAlgorithm.rawValue, samples: samples,
        lengthErrorSamples: 0),
      try Rational(Int128(samples), rate)
    )
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
