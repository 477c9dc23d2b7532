// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// The window of `record --preview`.
///
/// Windows belong to the main thread, so the recording runs on another thread.
final class RecordPreview {
  private let movie: MovieFileOutput
  private let run: PreviewRun
  private let state: SharedState
  private var isClosed = false

  /// State that the recording's thread and the main thread share.
  private final class SharedState: Sendable {
    let recording = Mutex(PreviewStatus.Recording())
    let isOver = Atomic<Bool>(false)
  }

  /// Opens a preview window for a camera that is to be recorded.
  ///
  /// - Throws: `MediaError` if the camera's frames cannot be decoded without other frames, or if no
  ///   window can be opened.
  init(
    _ movie: MovieFileOutput, in session: CaptureSession, of input: DeviceInput,
    _ windows: any PreviewWindowProvider, triggers: TriggerOptions,
    script: [ScriptLine<PreviewAction>]? = nil
  ) throws(MediaError) {
    self.movie = movie
    let shared = SharedState()
    if triggers.isTriggered {
      let preRoll = PreviewStatus.PreRoll(
        wanted: triggers.pre ?? .zero, armsWhenFull: triggers.armWhenFull)
      shared.recording.withLock { $0.preRoll = preRoll }
    }
    state = shared
    let source = try PreviewSource(
      session, delay: .zero, speed: .normal, isMirrored: false, gravity: .resizeAspect)
    let view = try windows.open(
      title: input.device.name, width: input.format.width, height: input.format.height)
    var settings = PreviewRun.Settings()
    settings.script = script
    settings.levels = { movie.levels }
    settings.recording = { shared.recording.withLock { $0 } }
    settings.isOver = { shared.isOver.load(ordering: .acquiring) }
    settings.recognition = OptionalComponents.current.recognition
    if triggers.isTriggered { settings.trigger = { movie.trigger(.key) } }
    run = PreviewRun(source, in: session, of: input, view: view, settings: settings)
  }

  /// Whether the recording ended because the user closed the window.
  var wasClosed: Bool { isClosed }

  /// Updates the status line.
  ///
  /// Called on the thread of the recording.
  func note(_ progress: MovieFileOutput.Progress) {
    state.recording.withLock {
      $0 = PreviewStatus.Recording(
        stored: progress.stored, missing: progress.missing, bytes: progress.bytes,
        queueFill: progress.queueFill, preRoll: $0.preRoll)
    }
  }

  /// Updates the ring that shows the memory before a trigger.
  ///
  /// Called on the thread of the recording.
  func notePreRoll(_ duration: MediaTime, isFull: Bool) {
    state.recording.withLock {
      $0.preRoll?.held = duration
      $0.preRoll?.isFull = isFull
    }
  }

  /// Shows the camera while work is done on another thread.
  ///
  /// If the window is closed, the recording ends.
  ///
  /// - Returns: The result of the work.
  /// - Throws: The error of the work.
  func show<Result>(while work: () throws -> Result) throws -> Result {
    try withoutActuallyEscaping(work) { work in
      // This thread waits for the other thread, so only one thread uses `work` and `result` at a
      // time.
      nonisolated(unsafe) let work = work
      nonisolated(unsafe) var result: Swift.Result<Result, any Error>?
      let state = state
      let thread: BlockingThread
      do throws(CallFailure) {
        thread = try BlockingThread {
          result = Swift.Result { try work() }
          state.isOver.store(true, ordering: .releasing)
        }
      } catch { throw MediaError(error, at: .resources) }
      var failure: (any Error)?
      do {
        try run.show()
        if !state.isOver.load(ordering: .acquiring), !Interrupt.isRequested {
          isClosed = true
          movie.stop()
        }
      } catch let error where run.hasScript {
        // Only the script ends the recording.
        failure = error
        movie.stop()
      } catch {
        // A failed preview does not end the recording, which is more important.
        Output.warning("the preview ended: \(CommandError(error).message)")
      }
      thread.join()
      guard let result else { throw MediaError(.outOfMemory, "the recording did not run") }
      let value = try result.get()
      if let failure { throw failure }
      return value
    }
  }
}
