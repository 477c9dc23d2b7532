// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankRetiming
import Synchronization

/// Exports finished clips in slow motion while a capture continues.
///
/// One clip is exported at a time, on threads that run only when the machine has nothing else to do. So a
/// capture does not lose frames, but replays may fall behind. The newest clip is exported first.
///
/// ```swift
/// let replays = ReplayExporter(speed: Speed(1, over: 8)) { print($0.path, $0.result) }
/// replays.add("swing.mov", to: "swing.replay.mp4")
/// replays.finish()
/// ```
///
/// May be used from any thread.
public final class ReplayExporter: Sendable {
  /// A replay that was exported, or could not be.
  public struct Replay: Sendable {
    /// The path of the clip.
    public let clip: String
    /// The path of the replay.
    public let path: String
    /// The report of the export, or its error.
    public let result: Result<ExportReport, MediaError>
  }

  private struct Item {
    let clip: String
    let path: String
  }

  private struct State {
    /// The clips that wait, the newest at the end.
    var waiting: [Item] = []
    var isRunning = false
    var thread: BlockingThread?
  }

  private let state = Mutex(State())
  private let isCancelled: CancellationFlag
  private let export: @Sendable (_ clip: String, _ path: String) throws(MediaError) -> ExportReport
  private let handler: @Sendable (Replay) -> Void

  /// Creates an exporter.
  ///
  /// - Parameters:
  ///   - speed: The speed of the replays: source seconds per output second.
  ///   - frameRate: Their constant frame rate.
  ///   - overwrites: Whether existing files are replaced.
  ///   - handler: Called with each replay, on a thread of the exporter.
  public convenience init(
    speed: Speed, frameRate: FrameRate = 30, overwrites: Bool = false,
    handler: @escaping @Sendable (Replay) -> Void
  ) {
    let isCancelled = CancellationFlag()
    self.init(isCancelled: isCancelled, handler: handler) { (clip, path) throws(MediaError) in
      let asset = try Asset(path: clip)
      let whole = try TimeRange(duration: asset.duration)
      let composition = try Composition.retimed(
        asset.mediaSource(), changes: [Composition.SpeedChange(speed, in: whole)])
      var settings = ExportSettings(path: path, mode: .constant(frameRate))
      settings.audioTimePitchAlgorithm = .mute
      settings.overwrites = overwrites
      return try ExportSession(composition, of: asset)
        .export(settings, isCancelled: { isCancelled.isSet }) { _, _ in }
    }
  }

  /// Creates an exporter with another way to export.
  init(
    isCancelled: CancellationFlag = CancellationFlag(),
    handler: @escaping @Sendable (Replay) -> Void,
    export: @escaping @Sendable (_ clip: String, _ path: String) throws(MediaError) -> ExportReport
  ) {
    (self.isCancelled, self.export, self.handler) = (isCancelled, export, handler)
  }

  /// The number of clips that wait for their replay.
  public var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Adds a finished clip.
  ///
  /// - Parameters:
  ///   - clip: The path of the clip.
  ///   - path: The path of its replay; the extension is `.mov`, `.mp4` or `.m4v`.
  public func add(_ clip: String, to path: String) {
    let failure = state.withLock { state -> CallFailure? in
      state.waiting.append(Item(clip: clip, path: path))
      guard !state.isRunning else { return nil }
      // The last thread has nothing more to do.
      state.thread?.join()
      state.thread = nil
      do throws(CallFailure) {
        state.thread = try BlockingThread { self.work() }
        state.isRunning = true
        return nil
      } catch {
        state.waiting.removeLast()
        return error
      }
    }
    guard let failure else { return }
    handler(Replay(clip: clip, path: path, result: .failure(Self.error(clip, failure))))
  }

  /// Waits until all replays are exported.
  ///
  /// No clip may be added meanwhile.
  public func finish() {
    let thread = state.withLock { state in
      defer { state.thread = nil }
      return state.thread
    }
    thread?.join()
  }

  /// Ends the export that is running, and discards the clips that wait.
  public func cancel() {
    isCancelled.set()
    state.withLock { $0.waiting = [] }
  }

  /// Exports the waiting clips, each on an idle thread, and reports them on this ordinary one.
  ///
  /// The handler may start threads, which would inherit the priority of an idle one.
  private func work() {
    while let item = next() {
      let box = ResultBox()
      do throws(CallFailure) {
        try BlockingThread(urgency: .idle) { [export] in
          box.set(Result { () throws(MediaError) in try export(item.clip, item.path) })
        }.join()
      } catch { box.set(.failure(Self.error(item.clip, error))) }
      guard let result = box.value else { continue }
      handler(Replay(clip: item.clip, path: item.path, result: result))
    }
  }

  private static func error(_ clip: String, _ failure: CallFailure) -> MediaError {
    MediaError(
      failure, at: CallStage(other: .init(.outOfMemory, "export it later")),
      message: "the replay of \(clip) cannot be exported: \(failure)")
  }

  private func next() -> Item? {
    state.withLock { state in
      let item = state.waiting.popLast()
      state.isRunning = item != nil
      return item
    }
  }
}

/// The result of an export that another thread makes.
private final class ResultBox: Sendable {
  private let result = Mutex<Result<ExportReport, MediaError>?>(nil)
  var value: Result<ExportReport, MediaError>? { result.withLock { $0 } }
  func set(_ value: Result<ExportReport, MediaError>) { result.withLock { $0 = value } }
}
