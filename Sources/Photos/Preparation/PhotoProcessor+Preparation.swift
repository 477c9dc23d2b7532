// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension PhotoProcessor {
  /// Whether a capture must continue, because it has neither been stopped nor ended.
  func isWanted(_ id: Int64) -> Bool {
    state.withLock { state in
      state.records[id].map { !$0.isStopRequested && $0.photosEnded == nil } ?? false
    }
  }

  /// Stores the value of Exif's field `Flash` for the photos of a capture.
  func setFlash(_ id: Int64, _ value: Int) { state.withLock { $0.records[id]?.flash = value } }
}
