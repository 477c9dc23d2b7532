// SPDX-License-Identifier: Apache-2.0
public import Assets
public import Editing
import LibAV

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

  /// Finds out, without writing, what an export would do.
  ///
  /// - Parameter settings: What to make.
  /// - Returns: What ``export(_:isCancelled:progress:)`` would return, but for the time it takes.
  /// - Throws: `ExportError` with what stands against it: `.cutNotOnKeyFrame` with the nearest
  ///   free cuts, `.unsupportedContainer`, `.unsupportedSource`, `.soundRefused`.
  public func plan(_ settings: ExportSettings) throws(ExportError) -> ExportReport {
    do { return try ExportPlan(self, settings).report } catch { throw ExportError(any: error) }
  }

  /// Finds out, without writing, whether the export is possible.
  ///
  /// - Throws: `ExportError` as ``plan(_:)`` does.
  public func check(_ settings: ExportSettings) throws(ExportError) { _ = try plan(settings) }

  /// Writes the movie; blocks until it is done.
  ///
  /// - Parameters:
  ///   - settings: What to make.
  ///   - isCancelled: Asked for each frame and each block of sound.
  ///   - progress: Told how many of how many frames are done; first of none, while the sound is
  ///     made.
  /// - Returns: What was done.
  /// - Throws: `ExportError`; nothing is then left behind.
  @discardableResult
  public func export(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool = { false },
    progress: (_ done: Int64, _ total: Int64) -> Void = { _, _ in }
  ) throws(ExportError) -> ExportReport {
    do {
      return try write(settings, isCancelled: isCancelled, progress)
    } catch { throw ExportError(any: error) }
  }

  private func write(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool,
    _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport {
    let started = ContinuousClock.now
    let plan = try ExportPlan(self, settings)
    progress(0, plan.frameCount)
    var file = try MovieFile(
      creating: settings.path, overwrites: settings.overwrites, grows: false)
    let sound = try SoundExport.make(
      asset, composition, settings.audioTimePitchAlgorithm, container: plan.container,
      isCancelled: isCancelled)
    var output = ExportOutput(
      path: file.writtenPath, container: plan.container, asset: asset,
      keepsRecording: plan.keepsRecording, sound: sound, isCancelled: isCancelled)
    switch plan.pictures {
    case .copied(let frames):
      try PassthroughExport(plan: frames, asset: asset, track: plan.track)
        .write(to: &output, progress)
    case .rendered(let frames):
      try ConstantRateExport(plan: frames, asset: asset, track: plan.track, settings: settings)
        .write(to: &output, progress)
    }
    try output.checkCancelled()
    try output.finish()
    try file.finish()
    var report = plan.report
    report.sound = sound?.report
    report.wallNanoseconds = Self.nanoseconds(ContinuousClock.now - started)
    return report
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
