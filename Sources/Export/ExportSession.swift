// SPDX-License-Identifier: Apache-2.0

public import Logging
public import OvercrankAssets
public import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// Writes a composition of one asset or several as a movie file.
///
/// The file appears under its name when it is finished; an error or a cancelled export leaves
/// nothing behind.
///
/// ```swift
/// var slow = try Composition(asset)
/// try slow.scaleTimeRange(range, toDuration: MediaTime(seconds: 8))
/// let session = ExportSession(slow, of: asset)
/// let report = try session.export(ExportSettings(path: "slow.mov", mode: .passthrough()))
/// ```
public struct ExportSession: Sendable {
  /// What is exported.
  public let composition: Composition
  /// The asset whose tags travel along.
  public let asset: Asset
  /// The assets that its segments play.
  public let assets: [Asset]
  /// Where exports say what they did, and what of the sources they did not keep; quiet until set.
  ///
  /// An error that is thrown is not told.
  public var logger = Logger.quiet

  /// Makes a session for a composition whose segments all play one asset.
  public init(_ composition: Composition, of asset: Asset) {
    self.composition = Self.naming([asset], in: composition)
    self.asset = asset
    assets = [asset]
  }

  /// Makes a session for a composition, and opens the files that it plays.
  ///
  /// - Throws: `MediaError` as ``Asset/init(path:allowsTruncation:)`` for a file that cannot be
  ///   read, or with `.emptyRange` for a composition that plays none.
  public init(_ composition: Composition) throws(MediaError) {
    guard !composition.sources.isEmpty else {
      throw MediaError(
        .emptyRange, "the composition plays nothing", recovery: "append a range of a movie")
    }
    let assets = try composition.sources.map { (source) throws(MediaError) in
      try Asset(path: source.path)
    }
    try self.init(composition, of: assets)
  }

  /// Makes a session for a composition of several assets.
  ///
  /// - Parameters:
  ///   - composition: What is exported.
  ///   - assets: All that its segments play, known by the files that their paths lead to.
  /// - Throws: `MediaError` with `.unsupportedSource` when it plays one that is not among them.
  public init(_ composition: Composition, of assets: [Asset]) throws(MediaError) {
    let composition = Self.naming(assets, in: composition)
    guard let path = (composition.sources.first?.path) ?? assets.first?.path,
      let first = assets.first(where: { $0.path == path })
    else { throw Self.missing(composition.sources.first?.path ?? "any file") }
    self.composition = composition
    asset = first
    self.assets = assets
    for source in composition.sources { _ = try self.asset(for: source) }
  }

  /// The composition with the assets' own paths: what it calls `./a.mov` may be the asset `a.mov`.
  private static func naming(_ assets: [Asset], in composition: Composition) -> Composition {
    let known = Set(assets.map(\.path))
    guard !composition.sources.allSatisfy({ known.contains($0.path) }) else { return composition }
    func name(_ path: String) -> String {
      guard !known.contains(path), let file = FileIdentity(at: path) else { return path }
      return assets.first { FileIdentity(at: $0.path) == file }?.path ?? path
    }
    // Only names change, so what was valid is.
    return (try? composition.replacingSourcePaths(name)) ?? composition
  }

  /// The asset that a source stands for.
  func asset(for source: MediaSource) throws(MediaError) -> Asset {
    guard let asset = assets.first(where: { $0.path == source.path }) else {
      throw Self.missing(source.path)
    }
    return asset
  }

  private static func missing(_ path: String) -> MediaError {
    MediaError(
      .unsupportedSource, "the composition plays \(path), which was not given",
      recovery: "give all the files that it plays")
  }

  /// Finds out, without writing, what an export would do.
  ///
  /// - Parameter settings: What to make.
  /// - Returns: What ``export(_:isCancelled:progress:)`` would return, but for the time it takes.
  /// - Throws: `MediaError` with what stands against it: `.cutNotOnKeyFrame` with the nearest
  ///   free cuts, `.unsupportedContainer`, `.unsupportedSource`, `.audioRefused`.
  public func plan(_ settings: ExportSettings) throws(MediaError) -> ExportReport {
    do { return try ExportPlan(self, settings).report } catch { throw MediaError(exporting: error) }
  }

  /// Finds out, without writing, whether the export is possible.
  ///
  /// - Throws: `MediaError` as ``plan(_:)`` does.
  public func check(_ settings: ExportSettings) throws(MediaError) { _ = try plan(settings) }

  /// Writes the movie; blocks until it is done.
  ///
  /// - Parameters:
  ///   - settings: What to make.
  ///   - isCancelled: Asked for each frame, and every 10 ms while one is waited for; on the thread
  ///     of the caller.
  ///   - progress: Told how many of how many frames are done, first of none; on the thread of the
  ///     caller.
  /// - Returns: What was done.
  /// - Throws: `MediaError`; nothing is then left behind.
  @discardableResult
  public func export(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool = { false },
    progress: (_ done: Int64, _ total: Int64) -> Void = { _, _ in }
  ) throws(MediaError) -> ExportReport {
    do {
      return try write(settings, isCancelled: isCancelled, progress)
    } catch { throw MediaError(exporting: error) }
  }

  /// Writes the movie on a thread of its own, and suspends the task until it is done.
  ///
  /// Cancelling the task cancels the export.
  ///
  /// - Parameters:
  ///   - settings: What to make.
  ///   - progress: Tells how far the export is.
  /// - Returns: What was done.
  /// - Throws: `MediaError`, with `.cancelled` where the task was; nothing is then left behind.
  @discardableResult
  public func export(
    _ settings: ExportSettings, progress: ExportProgress = ExportProgress()
  ) async throws(MediaError) -> ExportReport {
    defer { progress.finish() }
    let result: Result<ExportReport, MediaError>
    do throws(SystemError) {
      result = try await BlockingThread.run { isCancelled throws(MediaError) in
        try self.export(settings, isCancelled: isCancelled) { done, total in
          progress.send(done: done, of: total)
        }
      }
    } catch { throw MediaError(.outOfMemory, error.description) }
    return try result.get()
  }

  private func write(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool,
    _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport {
    let started = ContinuousClock.now
    let plan = try ExportPlan(self, settings)
    progress(0, plan.frameCount)
    var file = try WholeFile(creating: settings.path, overwrites: settings.overwrites)
    let audio = try plan.audio.map { try AudioExport($0, isCancelled) }
    defer { audio?.stop() }
    var report: ExportReport
    do {
      report = try write(
        plan, audio, to: file.writtenPath, settings, isCancelled: isCancelled, progress)
    } catch let error as LibAVError { throw file.told(error) }
    try file.finish()
    report.audio = audio?.report
    report.elapsed = ContinuousClock.now - started
    report.log(to: logger)
    return report
  }

  private func write(
    _ plan: ExportPlan, _ audio: AudioExport?, to path: String, _ settings: ExportSettings,
    isCancelled: @escaping () -> Bool, _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport {
    var output = ExportOutput(
      path: path, plan: plan, asset: asset, properties: composition.track(.video),
      captureFrameRate: settings.captureFrameRate, audio: audio, isCancelled: isCancelled)
    var report = plan.report
    switch plan.pictures {
    case .copied(let frames, let crf):
      report.undecodable = try PassthroughExport(
        plan: frames, assets: plan.assets, track: plan.track, crf: crf,
        undecodable: settings.undecodableFrames
      )
      .write(to: &output, progress)
    case .rendered(let frames, let geometry, let rendering):
      let written = try ConstantRateExport(
        plan: frames, assets: plan.assets, track: plan.track, settings: rendering,
        undecodable: settings.undecodableFrames, geometry: geometry
      )
      .write(to: &output, progress)
      report.undecodable = written.undecodable
      report.framesEncoded -= written.leftOut
    }
    try output.checkCancelled()
    try output.finish()
    return report
  }
}

extension Composition {
  /// Makes a composition that plays an asset as it is.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an asset that lasts no time.
  public init(_ asset: Asset) throws(MediaError) {
    do throws(MediaError) { self.init(try asset.mediaSource()) } catch {
      throw MediaError(.emptyRange, error.message)
    }
  }

  /// Adds a range of an asset at its own speed behind what plays last.
  ///
  /// - Parameters:
  ///   - asset: What it is taken from.
  ///   - range: What to play, in the time of the asset; all of it where nil.
  /// - Throws: `MediaError` as ``append(_:range:)-(MediaSource,_)``.
  public mutating func append(_ asset: Asset, range: TimeRange? = nil) throws(MediaError) {
    try append(try asset.mediaSource(), range: range)
  }
}
