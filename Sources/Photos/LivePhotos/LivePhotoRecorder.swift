// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

/// Records the movies of Live Photos from a ring of frames.
///
/// It uses a movie output of its own, which keeps the latest frames while the session runs, and
/// writes a clip around each photo.
final class LivePhotoRecorder: Sendable {
  /// A movie that was requested and has not ended.
  struct Request: Sendable {
    /// The number of the capture.
    let id: Int64
    /// The capture time of the photo's frame, in microseconds.
    let time: Int64
    let contentIdentifier: String
    let moviePath: String
    let overwrites: Bool
    let embedsMovie: Bool
    /// The XMP values of the photo.
    let xmp: [String: String]
  }

  private struct State {
    var requests: [Int64: Request] = [:]
    var hasThread = false
    /// Whether the thread has to record another stream.
    var isWanted = false
    var isEnded = false
    /// Whether frames flow into the ring.
    var isReady = false
    /// The number of movies that were begun.
    var startedCount = 0
  }

  /// The duration of a movie before and after its photo.
  static let halfDuration = MediaTime(3, over: 2)
  /// The number of movies that can be recorded at a time.
  static let maximumCount = 16

  /// The output that the session feeds.
  let output: MovieFileOutput
  private let state = Mutex(State())
  private let didEnd: @Sendable (Request, Result<RecordingReport, MediaError>) -> Void
  private let didBecomeReady: @Sendable (Bool) -> Void

  /// Creates a recorder.
  ///
  /// - Parameters:
  ///   - didBecomeReady: Called with true when frames flow into the ring, and with false at the end.
  ///   - didEnd: Called with the end of each movie. Both are called on a thread of the recorder.
  init(
    didBecomeReady: @escaping @Sendable (Bool) -> Void,
    didEnd: @escaping @Sendable (Request, Result<RecordingReport, MediaError>) -> Void
  ) {
    // Each clip has a path of its own. The container is the same.
    var settings = RecordingSettings(path: "live.mov")
    // A full disk ends the movie with its own error.
    settings.minFreeDiskSpaceLimit = 0
    settings.verifiesFrameRate = false
    output = MovieFileOutput(settings: settings)
    self.didEnd = didEnd
    self.didBecomeReady = didBecomeReady
  }

  /// Records the stream that is about to start, or that runs.
  func begin() {
    let startsThread = state.withLock { state in
      state.isWanted = !state.isEnded
      defer { state.hasThread = state.hasThread || state.isWanted }
      return state.isWanted && !state.hasThread
    }
    guard startsThread else { return }
    do throws(MediaError) { try BlockingThread.started { [self] in run() }.detach() } catch {
      state.withLock { $0.hasThread = false }
    }
  }

  /// Ends the movies in progress early, and records no more.
  func end() {
    state.withLock { $0.isEnded = true }
    output.stop()
  }

  /// Records the movie around a frame.
  func record(_ request: Request) {
    let error = state.withLock { state -> MediaError? in
      guard state.hasThread, !state.isEnded else { return Self.streamEnded }
      state.requests[request.id] = request
      return nil
    }
    if let error { return didEnd(request, .failure(error)) }
    output.trigger(CaptureTrigger(source: .call, microseconds: request.time, tag: request.id))
    state.withLock { $0.startedCount += 1 }
  }

  /// The number of movies in progress.
  var count: Int { state.withLock { $0.requests.count } }

  /// The number of movies that were begun.
  var startedCount: Int { state.withLock { $0.startedCount } }

  /// Whether frames flow into the ring.
  var isReady: Bool { state.withLock { $0.isReady } }

  private static let streamEnded = MediaError(
    .notConnected, "the movie of the Live Photo ended, because the camera stopped",
    recovery: "start the session again")

  private func run() {
    var triggers = TriggerSettings(preDuration: Self.halfDuration, postDuration: Self.halfDuration)
    triggers.repeats = true
    triggers.quietPeriod = .zero
    triggers.requiresRunningSession = true
    triggers.clipDetails = { [self] trigger in details(of: trigger) }
    triggers.clipDidEnd = { [self] trigger, result in
      guard let request = state.withLock({ $0.requests.removeValue(forKey: trigger.tag) }) else {
        return
      }
      didEnd(request, result)
    }
    var error: MediaError?
    while proceeds() {
      do throws(MediaError) {
        let report = try output.record(on: triggers) { [self] event in
          guard case .waiting = event else { return }
          state.withLock { $0.isReady = true }
          didBecomeReady(true)
        }
        error = report.problem
        // If the disk was full, later movies may succeed in the same stream.
        if report.stoppedBy == .diskFull || report.stoppedBy == .error {
          state.withLock { $0.isWanted = !$0.isEnded }
        }
      } catch let problem { error = problem }
      didBecomeReady(false)
      // Their triggers came too late for this stream.
      let rest = state.withLock { state in
        defer { (state.requests, state.isReady) = ([:], false) }
        return state.requests.values.sorted { $0.time < $1.time }
      }
      for request in rest { didEnd(request, .failure(error ?? Self.streamEnded)) }
    }
  }

  /// Whether the thread has another stream to record.
  private func proceeds() -> Bool {
    state.withLock { state in
      guard state.isWanted, !state.isEnded else {
        state.hasThread = false
        return false
      }
      state.isWanted = false
      return true
    }
  }

  private func details(of trigger: CaptureTrigger) -> TriggerSettings.ClipDetails? {
    guard let request = state.withLock({ $0.requests[trigger.tag] }),
      let identifier = try? MetadataItem(
        MetadataItem.Key(rawValue: LivePhoto.contentIdentifierKey),
        .text(request.contentIdentifier))
    else { return nil }
    return TriggerSettings.ClipDetails(
      path: request.moviePath, overwrites: request.overwrites, metadata: [identifier],
      markKey: LivePhoto.stillImageTimeKey)
  }
}
