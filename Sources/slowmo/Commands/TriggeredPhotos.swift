// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Overcrank
import Synchronization

/// Takes the photos of `photo --trigger`.
final class TriggeredPhotos: Sendable {
  private enum Event: Sendable {
    case photo(Photo)
    /// All photos of a trigger were taken, or an error prevented them.
    case done(MediaError?)
    /// No more triggers will come.
    case ended
  }

  private struct State {
    var events: [Event] = []
    var triggerCount = 0
    var isEnded = false
  }

  private let output: PhotoOutput
  private let settings: PhotoSettings
  private let maximumCount: Int
  private let quietPeriod: MediaTime
  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)
  // A thread for each trigger waits for its photos, so that triggers may overlap.
  private let queue = DispatchQueue(label: "photos", attributes: .concurrent)

  init(
    _ output: PhotoOutput, _ settings: PhotoSettings, maximumCount: Int, quietPeriod: MediaTime
  ) {
    (self.output, self.settings, self.maximumCount) = (output, settings, maximumCount)
    self.quietPeriod = quietPeriod
  }

  /// Takes photos at each trigger, until the maximum number is taken or the user stops.
  ///
  /// - Parameters:
  ///   - kinds: The trigger sources.
  ///   - session: The session of the camera.
  ///   - progress: Reports that the command is waiting for a trigger.
  ///   - note: Called with each photo.
  /// - Returns: The first error, if any.
  /// - Throws: `CommandError` or `MediaError` if a trigger source cannot be opened.
  func take(
    _ kinds: [TriggerKind], in session: CaptureSession, _ progress: ProgressReporter,
    _ note: (Photo) -> Void
  ) throws -> CommandError? {
    for kind in kinds {
      switch kind {
      case .audio(let threshold):
        let trigger = AudioTrigger(threshold: threshold, quietPeriod: quietPeriod)
        _ = try session.addTrigger(trigger) { self.fire(at: $0.time) }
      case .motion(let share):
        let trigger = MotionTrigger(share: share, quietPeriod: quietPeriod)
        _ = try session.addTrigger(trigger) { self.fire(at: $0.time) }
      case .signal, .key, .udp: break
      }
    }
    let sources = try TriggerSources(kinds) { _ in
      self.fire(at: nil)
    } atEnd: {
      self.end()
    }
    Interrupt.onFirst {
      self.output.stopAll()
      self.end()
    }
    progress.note("waiting for \(kinds.map(\.summary).joined(separator: " or "))")
    var (problem, doneCount, isEnded): (MediaError?, Int, Bool) = (nil, 0, false)
    withExtendedLifetime(sources) {
      while doneCount < maximumCount, !isEnded || doneCount < state.withLock({ $0.triggerCount }) {
        arrived.wait()
        switch state.withLock({ $0.events.removeFirst() }) {
        case .photo(let photo): note(photo)
        case .done(let error):
          doneCount += 1
          problem = problem ?? error
          // After the camera is lost, no more photos can be taken.
          if error?.code == .deviceLost { isEnded = true }
        case .ended: isEnded = true
        }
      }
    }
    end()
    if doneCount == 0, problem == nil {
      problem = MediaError(
        .cancelled, "no trigger arrived", recovery: "trigger the camera before it is stopped")
    }
    return problem.map { CommandError($0) }
  }

  private func fire(at time: MediaTime?) {
    let isAccepted = state.withLock { state in
      guard !state.isEnded, state.triggerCount < maximumCount else { return false }
      state.triggerCount += 1
      return true
    }
    guard isAccepted else { return }
    queue.async { [self] in
      do throws(MediaError) {
        _ = try output.photos(with: PhotoSettings(from: settings), at: time) { send(.photo($0)) }
        send(.done(nil))
      } catch { send(.done(error)) }
    }
  }

  /// Accepts no more triggers.
  private func end() {
    state.withLock { $0.isEnded = true }
    send(.ended)
  }

  private func send(_ event: Event) {
    state.withLock { $0.events.append(event) }
    arrived.signal()
  }
}
