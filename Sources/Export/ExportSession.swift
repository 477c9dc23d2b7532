// SPDX-License-Identifier: Apache-2.0

public import Logging
public import OvercrankAssets
public import OvercrankEditing
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankRaster

/// Exports a composition of one or more assets as a movie file.
///
/// The file appears under its name only when it is complete. A failed or cancelled export leaves no
/// file behind.
///
/// ```swift
/// var slow = try Composition(asset)
/// try slow.scaleTimeRange(range, toDuration: MediaTime(seconds: 8))
/// let session = ExportSession(slow, of: asset)
/// let report = try session.export(ExportSettings(path: "slow.mov", mode: .passthrough()))
/// ```
public struct ExportSession: Sendable {
  /// The composition to export.
  public let composition: Composition
  /// The asset whose metadata the output gets.
  public let asset: Asset
  /// The assets that the composition uses.
  public let assets: [Asset]
  /// The logger for finished exports, lost metadata and undecodable frames; silent by default.
  ///
  /// Thrown errors are not logged.
  public var logger = Logger.quiet
  /// Whether a passthrough export lets the kernel copy packets from file to file where possible.
  ///
  /// Tests compare the files that are made with and without such copies.
  package var copiesRanges = true

  /// Creates a session for a composition of a single asset.
  public init(_ composition: Composition, of asset: Asset) {
    self.composition = Self.naming([asset], in: composition)
    self.asset = asset
    assets = [asset]
  }

  /// Creates a session for a composition, and opens the files that it uses.
  ///
  /// - Throws: `MediaError` as ``Asset/init(path:allowsTruncation:keepsIndex:)`` does for an
  ///   unreadable file, or with `.emptyRange` for a composition without sources.
  public init(_ composition: Composition) throws(MediaError) {
    guard !composition.sources.isEmpty else {
      throw MediaError(
        .emptyRange, "the composition is empty", recovery: "append a range of a movie")
    }
    let assets = try composition.sources.map { (source) throws(MediaError) in
      try Asset(path: source.path)
    }
    try self.init(composition, of: assets)
  }

  /// Creates a session for a composition of several assets.
  ///
  /// - Parameters:
  ///   - composition: The composition to export.
  ///   - assets: All assets of the composition. Their paths may differ from those in the
  ///     composition if both lead to the same file.
  /// - Throws: `MediaError` with `.unsupportedSource` if the composition uses another file.
  public init(_ composition: Composition, of assets: [Asset]) throws(MediaError) {
    let composition = Self.naming(assets, in: composition)
    guard let path = (composition.sources.first?.path) ?? assets.first?.path else {
      throw MediaError(
        .unsupportedSource,
        "the composition has no media: it consists of gaps, titles or generated clips",
        recovery: "choose a composition with a clip of a movie")
    }
    guard let first = assets.first(where: { $0.path == path }) else { throw Self.missing(path) }
    self.composition = composition
    asset = first
    self.assets = assets
    for source in composition.sources { _ = try self.asset(for: source) }
  }

  /// Returns the composition with the paths that the assets have for the same files, for example
  /// `a.mov` in place of `./a.mov`.
  private static func naming(_ assets: [Asset], in composition: Composition) -> Composition {
    let known = Set(assets.map(\.path))
    guard !composition.sources.allSatisfy({ known.contains($0.path) }) else { return composition }
    func name(_ path: String) -> String {
      guard !known.contains(path), let file = FileIdentity(at: path) else { return path }
      return assets.first { FileIdentity(at: $0.path) == file }?.path ?? path
    }
    // Replacing paths cannot make a valid composition invalid, so this does not fail.
    return (try? composition.replacingSourcePaths(name)) ?? composition
  }

  /// Returns the session's asset that has the path of a source of the composition.
  func asset(for source: MediaSource) throws(MediaError) -> Asset {
    guard let asset = assets.first(where: { $0.path == source.path }) else {
      throw Self.missing(source.path)
    }
    return asset
  }

  private static func missing(_ path: String) -> MediaError {
    MediaError(
      .unsupportedSource, "the composition uses \(path), which is not among the assets",
      recovery: "pass all assets of the composition")
  }

  /// Returns the report of an export without writing a file.
  ///
  /// - Parameter settings: The settings of the export.
  /// - Returns: The report that ``export(_:isCancelled:progress:)`` would return, without elapsed
  ///   time.
  /// - Throws: `MediaError` if the export is not possible: `.cutNotOnKeyFrame` (the message names
  ///   the nearest positions at which a cut needs no extra frames), `.unsupportedContainer`,
  ///   `.unsupportedSource`, or `.audioRefused`.
  public func plan(_ settings: ExportSettings) throws(MediaError) -> ExportReport {
    do { return try ExportPlan(self, settings).report } catch { throw MediaError(exporting: error) }
  }

  /// Checks that an export is possible, without writing a file.
  ///
  /// - Throws: `MediaError` as ``plan(_:)`` does.
  public func check(_ settings: ExportSettings) throws(MediaError) { _ = try plan(settings) }

  /// Writes the movie; blocks until it is complete.
  ///
  /// - Parameters:
  ///   - settings: The settings of the export.
  ///   - isCancelled: Returns true to cancel the export, false to continue. Called on the caller's
  ///     thread, for each frame and every 10 ms while waiting.
  ///   - progress: Called on the caller's thread with the number of finished frames and the total
  ///     number. If the movie is encoded several times for ``ExportSettings/fileLengthLimit``, each
  ///     attempt counts from 0.
  /// - Returns: The report of the export.
  /// - Throws: `MediaError`; no file is left behind.
  @discardableResult
  public func export(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool = { false },
    progress: (_ done: Int64, _ total: Int64) -> Void = { _, _ in }
  ) throws(MediaError) -> ExportReport {
    do {
      return try write(settings, isCancelled: isCancelled, progress)
    } catch { throw MediaError(exporting: error) }
  }

  /// Writes the movie on a separate thread, and suspends the task until it is complete.
  ///
  /// Cancelling the task cancels the export.
  ///
  /// - Parameters:
  ///   - settings: The settings of the export.
  ///   - progress: Receives the progress of the export.
  /// - Returns: The report of the export.
  /// - Throws: `MediaError`, with the code `.cancelled` if the task was cancelled; no file is left
  ///   behind.
  @discardableResult
  public func export(
    _ settings: ExportSettings, progress: ExportProgress = ExportProgress()
  ) async throws(MediaError) -> ExportReport {
    defer { progress.finish() }
    return try await BlockingThread.run { isCancelled throws(MediaError) in
      try self.export(settings, isCancelled: isCancelled) { done, total in
        progress.send(done: done, of: total)
      }
    }
  }

  private func write(
    _ settings: ExportSettings, isCancelled: @escaping () -> Bool,
    _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport {
    let started = ContinuousClock.now
    var plan = try ExportPlan(self, settings)
    var search = plan.search
    var imageSearch = plan.imageSearch
    while true {
      progress(0, plan.frameCount)
      do {
        guard
          var report = try attempt(
            plan, &search, &imageSearch, settings, isCancelled: isCancelled, progress)
        else { continue }
        report.elapsed = ContinuousClock.now - started
        report.log(to: logger)
        return report
      } catch let failure as BoundaryRenderer.EncoderFailure {
        guard case .passthrough(.auto, _) = settings.mode else { throw failure.cause }
        // The next plan encodes no frame, so that this happens once.
        plan = try ExportPlan(self, settings, hidingBecause: "the encoder fails")
      }
    }
  }

  /// Writes the movie in one attempt.
  ///
  /// - Returns: The report; nil if the file was removed because the search for a file size tries
  ///   another quality.
  private func attempt(
    _ plan: ExportPlan, _ search: inout FileLengthSearch?,
    _ imageSearch: inout AnimatedImageSearch?, _ settings: ExportSettings,
    isCancelled: @escaping () -> Bool, _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport? {
    let overwrites = settings.overwrites || plan.shard?.file.mayBeReplaced ?? false
    var file: WholeFile
    do throws(CallFailure) {
      file = try WholeFile(creating: plan.report.path, overwrites: overwrites)
    } catch { throw MediaError(creating: error) }
    let audio = try plan.audio.map { try AudioExport($0, isCancelled) }
    defer { audio?.stop() }
    var report: ExportReport
    do {
      report = try write(
        plan, audio, to: file.writtenPath, settings, crf: search?.crf, image: imageSearch,
        isCancelled: isCancelled, progress)
      if plan.shard != nil { try FileSeal.seal(file.writtenPath) }
    } catch let error as CallFailure { throw file.errorNamingTarget(error) }
    if search != nil || imageSearch != nil {
      let size = try RandomAccessFile(opening: file.writtenPath, forWriting: false).count()
      let frame = try plan.rendering(imageSearch)?.geometry.encoded
      report.fileLength =
        try search?.kept(size, path: plan.report.path)
        ?? imageSearch?.kept(
          size, frame: frame ?? VideoSize(width: 0, height: 0), path: plan.report.path)
      guard report.fileLength != nil else { return nil }
    }
    do throws(CallFailure) { try file.finish() } catch { throw MediaError(creating: error) }
    report.audio = audio?.report
    return report
  }

  private func write(
    _ plan: ExportPlan, _ audio: AudioExport?, to path: String, _ settings: ExportSettings,
    crf: Double?, image: AnimatedImageSearch?, isCancelled: @escaping () -> Bool,
    _ progress: (_ done: Int64, _ total: Int64) -> Void
  ) throws -> ExportReport {
    var output = ExportOutput(
      path: path, plan: plan, asset: asset, properties: composition.track(.video),
      settings: settings, audio: audio, isCancelled: isCancelled)
    var report = plan.report
    var rendered = OutputTimeMap.Rendered()
    switch plan.frames {
    case .copied(let frames, let crf):
      report.undecodable = try PassthroughExport(
        plan: frames, assets: plan.assets, track: plan.track, crf: crf,
        undecodable: settings.undecodableFrames, copiesRanges: copiesRanges
      )
      .write(to: &output, progress)
    case .joined(let shards): try shards.write(to: &output, progress)
    case .rendered(let frames, var geometry, var rendering):
      if let chosen = try plan.rendering(image) {
        (geometry, rendering) = (chosen.geometry, chosen.settings)
      }
      let written = try ConstantRateExport(
        plan: frames, assets: plan.assets, track: plan.track, settings: rendering,
        undecodable: settings.undecodableFrames, geometry: geometry,
        processorCount: settings.processorCount, crf: crf, segments: plan.report.segments,
        colorCount: image?.step.colorCount
      )
      .write(to: &output, progress)
      report.undecodable = written.undecodable
      report.framesEncoded -= written.leftOut
      if let synthesized = written.synthesized {
        report.framesSynthesized = synthesized.count
        report.framesDuplicated = synthesized.duplicatedCount
        if let lowest = synthesized.lowestConfidence, let mean = synthesized.meanConfidence {
          report.synthesizedConfidence = ExportReport.Confidence(lowest: lowest, mean: mean)
        }
      }
      (rendered.slots, rendered.synthesized) = (written.slots, written.contents)
    }
    rendered.undecodable = plan.frames(report.undecodable)
    try output.checkCancelled()
    try output.finish(timeMap: try plan.timeMap(after: rendered), planned: plan.timeMap)
    return report
  }
}

extension Composition {
  /// Creates a composition that plays a whole asset at speed 1.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an asset of zero duration.
  public init(_ asset: Asset) throws(MediaError) {
    do throws(MediaError) { self.init(try asset.mediaSource()) } catch {
      throw MediaError(.emptyRange, error.message)
    }
  }

  /// Appends a range of an asset at speed 1 to the end of the composition.
  ///
  /// - Parameters:
  ///   - asset: The asset of the range.
  ///   - range: The range in asset time; nil for the whole asset.
  /// - Throws: `MediaError` as ``append(_:range:)-(MediaSource,_)`` does.
  public mutating func append(_ asset: Asset, range: TimeRange? = nil) throws(MediaError) {
    try append(try asset.mediaSource(), range: range)
  }
}

/// The progress of an export, for any number of observers.
///
/// ```swift
/// let progress = ExportProgress()
/// async let report = session.export(settings, progress: progress)
/// for await step in progress.steps { print("\(step.done) of \(step.total) frames") }
/// print(try await report.path)
/// ```
///
/// All calls may come from any thread.
public final class ExportProgress: Sendable {
  /// The state of an export's progress.
  public struct Step: Hashable, Sendable {
    /// The number of output frames written so far.
    public let done: Int64
    /// The number of frames in the finished movie.
    public let total: Int64
  }

  private let hub = EventHub<Step>(capacity: 1)

  /// Creates the progress of one export.
  public init() {}

  /// The progress from now until the export ends.
  ///
  /// A slow observer receives only the newest step.
  public var steps: some AsyncSequence<Step, Never> & Sendable { hub.events() }

  func send(done: Int64, of total: Int64) { hub.send(Step(done: done, total: total)) }

  func finish() { hub.finish() }
}
