// SPDX-License-Identifier: Apache-2.0
public import Assets
public import Editing
import LibAV
import MediaTiming
import Retiming

/// Writes a composition of one asset as a movie file.
///
/// The file appears under its name when it is finished; an error or a cancelled export leaves
/// nothing behind.
///
/// ```swift
/// var slow = try Composition(asset)
/// try slow.scaleTimeRange(range, toDuration: MediaTime(seconds: 8))
/// let session = ExportSession(slow, of: asset)
/// let report = try session.export(ExportSettings(path: "slow.mov", mode: .passthrough))
/// ```
public struct ExportSession: Sendable {
  /// What is exported.
  public let composition: Composition
  /// The one asset that its segments play.
  public let asset: Asset

  /// Makes a session for a composition whose segments all play one asset.
  public init(_ composition: Composition, of asset: Asset) {
    self.composition = composition
    self.asset = asset
  }

  /// Finds out, without writing, whether the export is possible.
  ///
  /// - Throws: `ExportError` with what stands against it: `.cutNotOnKeyFrame` with the nearest
  ///   free cuts, `.unsupportedContainer`, `.unsupportedSource`, `.soundRefused`.
  public func check(_ settings: ExportSettings) throws {
    _ = try settings.container()
    let video = try checkedVideo()
    switch settings.mode {
    case .passthrough:
      _ = try PassthroughPlan(composition, video.frames, path: asset.path)
    case .constant(let rate):
      _ = try ConstantRateExport.slots(composition, rate, video.frames)
    }
    if let sound = asset.soundTrack, !composition.isWhole(of: asset) {
      do throws(RetimingError) {
        _ = try AudioRetimer(
          algorithm: settings.audioTimePitchAlgorithm, sampleRate: sound.sampleRate,
          channelCount: sound.channelCount
        ).sampleCount(
          mappings: composition.segments.compactMap(\.mapping), duration: composition.duration)
      } catch { throw ExportError(error) }
    }
  }

  /// Writes the movie; blocks until it is done.
  ///
  /// - Parameters:
  ///   - settings: What to make.
  ///   - isCancelled: Asked for each frame and each block of sound.
  ///   - progress: Told how many of how many frames are done.
  /// - Returns: What was done.
  /// - Throws: `ExportError`, or `AssetError` when the source cannot be read further.
  @discardableResult
  public func export(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool = { false },
    progress: (_ done: Int64, _ total: Int64) -> Void = { _, _ in }
  ) throws -> ExportReport {
    let started = ContinuousClock.now
    try check(settings)
    let video = try checkedVideo()
    var report = ExportReport()
    do {
      var file = try MovieFile(
        creating: settings.path, overwrites: settings.overwrites, grows: false)
      let sound = try SoundExport.make(
        asset, composition, settings.audioTimePitchAlgorithm, isCancelled: isCancelled)
      var output = ExportOutput(
        path: file.writtenPath, container: try settings.container(), asset: asset, sound: sound,
        isCancelled: isCancelled)
      switch settings.mode {
      case .passthrough:
        let plan = try PassthroughPlan(composition, video.frames, path: asset.path)
        try PassthroughExport(plan: plan, asset: asset, track: video)
          .write(to: &output, &report, progress)
      case .constant(let rate):
        try ConstantRateExport(composition, asset, video, rate, settings)
          .write(to: &output, &report, progress)
      }
      try output.finish()
      try file.finish()
      report.sound = sound?.report
      report.avEndDifferenceNanoseconds = try sound.map {
        try Self.nanoseconds($0.end.subtracting(Rational(report.duration)), .halfAwayFromZero)
      }
    } catch let error as MovieFile.CreationError {
      throw ExportError(error)
    } catch let error as LibAVError {
      throw ExportError(error)
    } catch let error as RetimingError {
      throw ExportError(error)
    }
    report.path = settings.path
    report.lostMetadata = lostMetadata
    report.wallNanoseconds = Self.nanoseconds(ContinuousClock.now - started)
    return report
  }

  private func checkedVideo() throws -> VideoTrack {
    guard let video = asset.videoTrack else {
      throw ExportError(
        .unsupportedSource, "\(asset.path) holds no pictures", hint: "give a movie with pictures")
    }
    guard composition.segments.allSatisfy({ $0.source.map { $0.path == asset.path } ?? true })
    else {
      throw ExportError(
        .unsupportedSource, "the composition plays other files than \(asset.path)",
        hint: "export one file at a time")
    }
    return video
  }

  /// What the file is left without.
  private var lostMetadata: [String] {
    var lost: [String] = []
    if !asset.chapters.isEmpty { lost.append("chapters") }
    if asset.otherTrackCount > 0 { lost.append("\(asset.otherTrackCount) other tracks") }
    // The recorder's account names frames by the times they had.
    if asset.recording != nil { lost.append(RecordingInfo.key) }
    return lost
  }

  static func nanoseconds(_ seconds: Rational, _ rounding: TimeRounding) throws -> Int64 {
    Int64(clamping: try seconds.multiplied(by: Rational(1_000_000_000)).rounded(rounding))
  }

  private static func nanoseconds(_ duration: Duration) -> Int64 {
    duration.components.seconds * 1_000_000_000 + duration.components.attoseconds / 1_000_000_000
  }
}

extension Composition {
  /// Makes a composition that plays an asset as it is.
  ///
  /// - Throws: `EditingError` with `.emptyRange` for an asset that lasts no time.
  public init(_ asset: Asset) throws(EditingError) {
    self.init(try asset.mediaSource())
  }
}

extension Asset {
  /// The asset as the value that compositions hold.
  ///
  /// - Throws: `EditingError` with `.emptyRange` for an asset that lasts no time.
  public func mediaSource() throws(EditingError) -> MediaSource {
    try MediaSource(path: path, duration: duration)
  }
}
