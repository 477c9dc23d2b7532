// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

/// Records the movies of Live Photos from a ring of frames.
///
/// The recorder has its own movie output. While the session runs, this output keeps the latest
/// frames, and writes a clip around each photo.
final class LivePhotoRecorder: Sendable {
  /// A requested movie that has not ended.
  struct Request: Sendable {
    /// The number that identifies the capture.
    let id: Int64
    /// The capture time of the frame in the photo, in microseconds.
    let time: Int64
    let contentIdentifier: String
    let moviePath: String
    let overwrites: Bool
    let embedsMovie: Bool
    /// The XMP values of the photo.
    let xmp: [String: String]
  }

  /// The state of the ring that holds the frames before a photo.
  enum Ring {
    /// No frame has been added to the ring yet, or the stream has ended.
    case empty
    /// Frames are being added to the ring.
    case filling
    /// The ring cannot be filled, so photos of this stream get no movies.
    case failed(MediaError)
  }

  private struct State {
    var requests: [Int64: Request] = [:]
    var hasThread = false
    /// Whether the recorder's thread must record another stream.
    var isWanted = false
    var isEnded = false
    var ring = Ring.empty
    /// The number of movies that have been started.
    var startedCount = 0
  }

  /// The duration of a movie before its photo, and the same duration after it.
  static let halfDuration = MediaTime(3, over: 2)
  /// The greatest number of movies that can be recorded at the same time.
  static let maximumCount = 16

  /// The movie output to which the session sends frames.
  let output: MovieFileOutput
  private let state = Mutex(State())
  private let didRecord: @Sendable (_ id: Int64) -> Void
  private let didEnd: @Sendable (Request, Result<RecordingReport, MediaError>) -> Void
  private let ringDidChange: @Sendable (Ring) -> Void

  /// Creates a recorder.
  ///
  /// - Parameters:
  ///   - ringDidChange: Called with each new state of the ring, on the recorder's thread or by
  ///     ``begin()``.
  ///   - didRecord: Called when the last frame of a movie was recorded, on the recorder's thread.
  ///   - didEnd: Called with the result of each movie, on the recorder's thread or by ``record(_:)``.
  init(
    ringDidChange: @escaping @Sendable (Ring) -> Void,
    didRecord: @escaping @Sendable (_ id: Int64) -> Void,
    didEnd: @escaping @Sendable (Request, Result<RecordingReport, MediaError>) -> Void
  ) {
    // Each clip gets its own path, so this path only selects the container.
    var settings = RecordingSettings(path: "live.mov")
    // There is no limit on free space. If the disk becomes full, the movie itself ends with an
    // error.
    settings.minFreeDiskSpaceLimit = 0
    settings.verifiesFrameRate = false
    output = MovieFileOutput(settings: settings)
    self.ringDidChange = ringDidChange
    self.didRecord = didRecord
    self.didEnd = didEnd
  }

  /// Starts to record the stream that is running or about to start.
  func begin() {
    let startsThread = state.withLock { state in
      state.isWanted = !state.isEnded
      defer { state.hasThread = state.hasThread || state.isWanted }
      return state.isWanted && !state.hasThread
    }
    guard startsThread else { return }
    setRing(.empty)
    do throws(MediaError) { try BlockingThread.started { [self] in run() }.detach() } catch {
      state.withLock { $0.hasThread = false }
      setRing(.failed(error))
    }
  }

  /// Ends the movies in progress early, and starts no further movies.
  func end() {
    state.withLock { $0.isEnded = true }
    output.stop()
  }

  /// Records the movie around the frame of a photo.
  func record(_ request: Request) {
    let error = state.withLock { state -> MediaError? in
      if case .failed(let error) = state.ring { return error }
      guard state.hasThread, !state.isEnded else { return Self.streamEnded }
      state.requests[request.id] = request
      return nil
    }
    if let error { return didEnd(request, .failure(error)) }
    output.trigger(CaptureTrigger(source: .call, microseconds: request.time, tag: request.id))
    state.withLock { $0.startedCount += 1 }
  }

  /// The number of movies that are in progress.
  var count: Int { state.withLock { $0.requests.count } }

  /// The number of movies that have been started.
  var startedCount: Int { state.withLock { $0.startedCount } }

  var ring: Ring { state.withLock { $0.ring } }

  private static let streamEnded = MediaError(
    .notConnected, "the movie of the Live Photo ended, because the camera stopped",
    recovery: "start the session again")

  private func setRing(_ ring: Ring) {
    state.withLock { $0.ring = ring }
    ringDidChange(ring)
  }

  private func run() {
    var triggers = TriggerSettings(preDuration: Self.halfDuration, postDuration: Self.halfDuration)
    triggers.repeats = true
    triggers.quietPeriod = .zero
    triggers.requiresRunningSession = true
    triggers.clipDetails = { [self] trigger in details(of: trigger) }
    triggers.clipDidRecord = { [didRecord] trigger in didRecord(trigger.tag) }
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
          if case .waiting = event { setRing(.filling) }
        }
        error = report.problem
        setRing(.empty)
        // If the disk was full, later movies may succeed, so the same stream is recorded again.
        if report.stoppedBy == .diskFull || report.stoppedBy == .error {
          state.withLock { $0.isWanted = !$0.isEnded }
        }
      } catch let problem {
        error = problem
        setRing(.failed(problem))
      }
      // The remaining requests for movies arrived too late for this stream.
      let rest = state.withLock { state in
        defer { state.requests = [:] }
        return state.requests.values.sorted { $0.time < $1.time }
      }
      for request in rest { didEnd(request, .failure(error ?? Self.streamEnded)) }
    }
  }

  /// Whether the thread must record another stream.
  ///
  /// If not, the thread ends.
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
