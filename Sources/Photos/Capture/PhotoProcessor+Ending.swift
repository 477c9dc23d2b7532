// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore
import Synchronization

extension PhotoProcessor {
  /// Ends a capture early, unless all its photos have already ended.
  func end(_ id: Int64, takenCount: Int, _ end: PhotoEnd) {
    guard let record = state.withLock({ $0.records[id] }), record.photosEnded == nil else { return }
    let settings = record.settings
    let isEndless = settings.photoCount == .max && takenCount > 0
    let total = settings.photoCount == .max ? "" : "of \(settings.expectedPhotoCount) "
    let taken = "photo \(id): \(takenCount) \(total)taken"
    let error: MediaError?
    switch end {
    case .stopped:
      error = takenCount > 0 ? nil : MediaError(.cancelled, "photo \(id) was cancelled")
    case .failed(let problem): error = problem
    case .memoryFull:
      error = MediaError(
        .outOfMemory, "\(taken), because the memory for frames is full",
        recovery: Recovery("take fewer photos, or choose a smaller format", .change(.format)))
    case .streamEnded(let reason, let cause):
      error =
        cause.map {
          MediaError($0.code, "\(taken): \($0.message)", recovery: $0.recovery, cause: $0.cause)
        }
        ?? (isEndless
          ? nil
          : MediaError(
            .notConnected, "\(taken), because the camera stopped (\(reason.rawValue))",
            recovery: "start the session again"))
    }
    if error == nil { send(.didCapturePhoto(id: id)) }
    endPhotos(id, error)
  }

  /// Ends the photos of a capture, and the capture itself if nothing else remains.
  func endPhotos(_ id: Int64, _ error: MediaError?) {
    let open = state.withLock { state -> Record? in
      guard let record = state.records[id], !record.openEnds.isEmpty else { return nil }
      guard record.photosEnded == nil else { return record }
      state.records[id]?.photosEnded = error.map { .failure($0) } ?? .success(())
      // Only the first error of a capture is reported.
      if record.error == nil { state.records[id]?.error = error }
      return record
    }
    guard let open else { return finish(id, error) }
    // Wakes the thread of the capture, which then restores the camera's settings.
    open.controlled?.noteProgress()
  }

  /// Records the end of a part of a capture that may end after the photos, such as a movie.
  func endWait(for id: Int64, _ end: LateEnd) {
    let ended = state.withLock { state -> Result<Void, MediaError>? in
      state.records[id]?.openEnds.remove(end)
      guard let record = state.records[id], record.openEnds.isEmpty else { return nil }
      return record.photosEnded
    }
    switch ended {
    case .success: finish(id, nil)
    case .failure(let error): finish(id, error)
    case nil: break
    }
  }

  /// Ends a capture, and sends its last event.
  func finish(_ id: Int64, _ error: MediaError?) {
    let record = state.withLock { $0.records.removeValue(forKey: id) }
    guard let record else { return }
    record.controlled?.noteProgress()
    let event = PhotoEvent.didFinishCapture(id: id, error: record.error ?? error)
    // The record of the capture is already removed, so that a program that waits for this event can
    // request the next capture at once.
    record.listener(event)
    events.send(event)
    updateReadiness()
  }
}
