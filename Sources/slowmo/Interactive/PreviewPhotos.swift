// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// The photos that are taken during a preview.
final class PreviewPhotos {
  private let session: CaptureSession
  private var output: PhotoOutput?
  private let inbox = Inbox()
  private(set) var pendingCount = 0

  /// The finished photos, for the thread that shows the preview.
  private final class Inbox: Sendable {
    let results = Mutex<[Result<[UInt8], MediaError>]>([])
  }

  init(_ session: CaptureSession) { self.session = session }

  /// Starts taking a photo in the background.
  ///
  /// - Throws: `MediaError` if the camera's frames cannot be stored as photos.
  func take() throws(MediaError) {
    let output = try connected()
    let capture = try output.capturePhoto(with: PhotoSettings())
    pendingCount += 1
    Task { [inbox] in
      var result = Result<[UInt8], MediaError>.failure(
        MediaError(.notReady, "the photo was not taken"))
      for await event in capture.events {
        switch event {
        case .didFinishProcessingPhoto(_, .success(let photo)): result = .success(photo.data ?? [])
        case .didFinishProcessingPhoto(_, .failure(let error)): result = .failure(error)
        case .didFinishCapture(_, let error?): result = .failure(error)
        default: break
        }
      }
      let final = result
      inbox.results.withLock { $0.append(final) }
    }
  }

  private func connected() throws(MediaError) -> PhotoOutput {
    if let output { return output }
    let made = PhotoOutput()
    try session.addOutput(made)
    output = made
    return made
  }

  /// Returns the photos that were finished since the last call, as JPEG files.
  func finished() -> [Result<[UInt8], MediaError>] {
    let finished = inbox.results.withLock { results in
      defer { results = [] }
      return results
    }
    pendingCount -= finished.count
    return finished
  }
}
