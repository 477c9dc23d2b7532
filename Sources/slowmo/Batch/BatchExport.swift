// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// Exports several files, some of them at the same time, and reports on each.
struct BatchExport: Sendable {
  /// Opens an input file and prepares its export to an output file.
  typealias Prepare = @Sendable (_ input: String, _ output: String) throws -> PreparedExport
  /// Adds details about an input file to an error.
  typealias Refine = @Sendable (_ input: String, _ error: any Error) -> any Error

  private let verb: String
  private let files: [(input: String, output: String)]
  private let jobCount: Int
  private let exporting: ExportOptions
  private let writing: WritingOptions
  private let prepare: Prepare
  private let refine: Refine

  /// Derives the output names from the inputs.
  ///
  /// - Throws: `CommandError` as ``BatchOptions/outputs(of:_:)``.
  init(
    _ verb: String, _ inputs: [String], _ output: String, _ batch: BatchOptions,
    _ exporting: ExportOptions, _ writing: WritingOptions, prepare: @escaping Prepare,
    refine: @escaping Refine = { $1 }
  ) throws {
    self.verb = verb
    files = Array(zip(inputs, try BatchOptions.outputs(of: inputs, output)))
    jobCount = min(batch.jobs ?? 1, inputs.count)
    (self.exporting, self.writing, self.prepare) = (exporting, writing, prepare)
    self.refine = refine
  }

  /// Exports all files and prints the summary.
  func perform(_ common: CommonOptions) throws -> ExitStatus {
    let started = ContinuousClock.now
    // Removes the temporary files of exports that were killed, so that their space is free again.
    let abandoned =
      writing.dryRun ? [] : TemporaryName.removeAbandoned(of: files.map(\.output))
    let progress = BatchProgress(writing.progress, fileCount: files.count)
    let next = Atomic<Int>(0)
    let results = Mutex<[Int: BatchDocument.File]>([:])
    let work: @Sendable () -> Void = {
      while !Interrupt.isRequested {
        let index = next.add(1, ordering: .relaxed).oldValue
        guard index < files.count else { return }
        let result = export(index, abandoned, progress)
        results.withLock { $0[index] = result }
        progress.finish(index, result)
      }
    }
    // The exports run on separate threads: work that blocks on a dispatch queue would take a thread
    // from the pool that the exports themselves use. If a thread cannot be created, the remaining
    // threads do all the work.
    let threads = (0..<jobCount).dropFirst().compactMap { _ in try? BlockingThread(work) }
    work()
    for thread in threads { thread.join() }
    let known = results.withLock { $0 }
    var document = BatchDocument(
      verb: verb, isDryRun: writing.dryRun, jobs: jobCount,
      files: files.indices.map {
        known[$0] ?? BatchDocument.File(source: files[$0].input, file: files[$0].output)
      })
    document.elapsed = ContinuousClock.now - started
    progress.end(document)
    _ = try exporting.emit(document, common)
    return Interrupt.isRequested ? Interrupt.status : document.worstStatus
  }

  /// Exports one file, unless its output is already finished.
  private func export(
    _ index: Int, _ abandoned: Set<String>, _ progress: BatchProgress
  ) -> BatchDocument.File {
    let (input, output) = files[index]
    var result = BatchDocument.File(source: input, file: output)
    let started = ContinuousClock.now
    if abandoned.contains(output) { result.earlier = .unfinished }
    do {
      let prepared = try prepare(input, output)
      let session = try prepared.session()
      var settings = try exporting.settings(
        for: prepared, to: output, overwrites: writing.overwrite)
      settings.processorCount = max(1, Processors.count / jobCount)
      settings.digest = try session.digest(settings, version: OvercrankVersion.number)
      if SystemFiles.isEntry(output) {
        if session.isFinished(settings) {
          result.status = .kept
          return result
        }
        guard writing.overwrite else { throw Self.isTaken(output) }
        result.earlier = .outdated
      }
      if writing.dryRun {
        let plan = try session.plan(settings)
        result.frames = plan.framesCopied + plan.framesEncoded
        result.status = .planned
        return result
      }
      progress.start(index, input, output)
      let report: ExportReport
      do throws(MediaError) {
        report = try session.export(settings, isCancelled: { Interrupt.isRequested }) {
          progress.update(index, done: $0, of: $1)
        }
      } catch {
        // Another process may have finished the same output in the meantime.
        guard error.code == .outputExists, session.isFinished(settings) else { throw error }
        result.status = .kept
        return result
      }
      for warning in report.warnings { Output.warning("\(output): \(warning)") }
      exporting.note(report.sparse, output)
      for frame in report.undecodable {
        noteUndecodable(frame.path, frame.index, frame.time, exporting.onError)
      }
      result.frames = report.framesCopied + report.framesEncoded
      result.status = .made
    } catch {
      if Interrupt.isRequested {
        result.status = .interrupted
      } else {
        result.fail(CommandError(refine(input, error)))
      }
    }
    result.elapsed = ContinuousClock.now - started
    return result
  }

  private static func isTaken(_ output: String) -> CommandError {
    CommandError(
      .cannotCreate, code: "output_exists",
      "\(output) already exists, and is not the result of this source, plan and version",
      hint: "choose another name, or replace the file with --overwrite")
  }
}

/// Writes the progress of a batch to standard error; safe to use from any thread.
final class BatchProgress: Sendable {
  /// An event of `--progress json`.
  private struct Event: Encodable {
    var event: String
    var source: String?
    var file: String?
    var status: String?
    var message: String?
    /// The numbers of finished frames and of all frames in the files being exported.
    var frame: Int64
    var totalFrames: Int64
    var filesDone: Int
    var filesTotal: Int
  }

  private struct State {
    var working: [Int: (done: Int64, total: Int64)] = [:]
    var filesDone = 0
    var lastShown: ContinuousClock.Instant?
    var hasBar = false

    var frames: (done: Int64, total: Int64) {
      working.values.reduce((0, 0)) { ($0.0 + $1.done, $0.1 + $1.total) }
    }
  }

  private let style: ProgressStyle
  private let fileCount: Int
  private let started = ContinuousClock.now
  private let state = Mutex(State())

  init(_ style: ProgressStyle, fileCount: Int) {
    self.style = style.resolved
    self.fileCount = fileCount
    state.withLock { emit("start", $0) }
  }

  /// Reports that work on a file starts.
  func start(_ index: Int, _ source: String, _ file: String) {
    state.withLock { state in
      state.working[index] = (0, 0)
      emit("start", state, source: source, file: file)
    }
  }

  /// Reports the progress of a file, at most once per interval of the chosen style.
  func update(_ index: Int, done: Int64, of total: Int64) {
    state.withLock { state in
      state.working[index] = (done, total)
      let now = ContinuousClock.now
      guard style != .none, now - (state.lastShown ?? started) >= style.interval else { return }
      state.lastShown = now
      switch style {
      case .json: emit("progress", state, isProgress: true)
      case .plain: Output.notice(text(state), isProgress: true)
      default:
        state.hasBar = true
        Output.status(text(state))
      }
    }
  }

  /// Reports the result of a file.
  func finish(_ index: Int, _ file: BatchDocument.File) {
    state.withLock { state in
      endBar(&state)
      state.working[index] = nil
      state.filesDone += 1
      emit(
        "file", state, source: file.source, file: file.file, status: file.status.rawValue,
        message: file.error?.message)
      guard style != .json, style != .none else { return }
      Output.notice(file.line)
    }
  }

  /// Reports the end of the batch; the `end` event follows when the command exits.
  func end(_ document: BatchDocument) {
    state.withLock { endBar(&$0) }
    ProgressEvents.prepareEnd(ProgressEvents.Event(event: "end", message: document.summary))
  }

  private func endBar(_ state: inout State) {
    guard state.hasBar else { return }
    state.hasBar = false
    Output.status("")
  }

  private func emit(
    _ name: String, _ state: State, source: String? = nil, file: String? = nil,
    status: String? = nil, message: String? = nil, isProgress: Bool = false
  ) {
    guard style == .json else { return }
    let frames = state.frames
    ProgressEvents.emit(
      Event(
        event: name, source: source, file: file, status: status, message: message,
        frame: frames.done, totalFrames: frames.total, filesDone: state.filesDone,
        filesTotal: fileCount), isProgress: isProgress)
  }

  private func text(_ state: State) -> String {
    let frames = state.frames
    return "\(state.filesDone)/\(fileCount) files, \(state.working.count) in work with "
      + "\(frames.done)/\(frames.total) frames"
  }
}
