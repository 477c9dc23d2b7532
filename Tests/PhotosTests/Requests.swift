// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankPhotos
import Synchronization
import TestSupport

/// The photo requests that a script makes, with their captures and errors.
final class Requests: Sendable {
  struct State {
    var output: PhotoOutput?
    var captures: [PhotoCapture] = []
    var errors: [MediaError] = []
  }
  let state = Mutex(State())

  func join(_ output: PhotoOutput) { state.withLock { $0.output = output } }
  var captures: [PhotoCapture] { state.withLock { $0.captures } }
  var errors: [MediaError] { state.withLock { $0.errors } }

  /// A script step that requests photos.
  func step(
    _ settings: PhotoSettings = PhotoSettings(), at time: Int64? = nil
  ) -> ScriptedDriver.Step {
    .action { [self] in request(settings, at: time) }
  }

  /// Requests photos, and keeps the capture or the error.
  func request(_ settings: PhotoSettings, at time: Int64? = nil) {
    guard let output = state.withLock({ $0.output }) else { return }
    do throws(MediaError) {
      let capture = try output.capturePhoto(
        with: settings, at: time.map { MediaTime(microseconds: $0) })
      state.withLock { $0.captures.append(capture) }
    } catch {
      let problem = error
      state.withLock { $0.errors.append(problem) }
    }
  }

  /// A script step that stops the last capture.
  var stop: ScriptedDriver.Step { .action { [self] in captures.last?.stop() } }
}
