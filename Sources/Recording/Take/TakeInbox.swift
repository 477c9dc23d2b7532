// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Synchronization

/// Requests from other threads to a running take: further files, and metadata values.
///
/// Only the thread that writes the take reads them.
final class TakeInbox: Sendable {
  private struct State {
    var paths: [String] = []
    var values: [PendingValue] = []
  }

  /// The greatest number of metadata values that wait for the writer.
  private static let capacity = 65_536

  private let state = Mutex(State())
  private let pathCount = Atomic<Int>(0)
  private let valueCount = Atomic<Int>(0)

  /// Whether a further file of the take is requested.
  ///
  /// Takes no lock.
  var hasPaths: Bool { pathCount.load(ordering: .relaxed) > 0 }
  /// Whether new metadata values arrived.
  ///
  /// Takes no lock.
  var hasValues: Bool { valueCount.load(ordering: .relaxed) > 0 }

  func append(path: String) {
    state.withLock { state in
      state.paths.append(path)
      pathCount.store(state.paths.count, ordering: .relaxed)
    }
  }

  /// Removes and returns the first requested path of a further file.
  func takePath() -> String? {
    state.withLock { state in
      guard !state.paths.isEmpty else { return nil }
      pathCount.store(state.paths.count - 1, ordering: .relaxed)
      return state.paths.removeFirst()
    }
  }

  /// Adds a metadata value.
  ///
  /// Returns false if too many metadata values already wait.
  func append(_ value: PendingValue) -> Bool {
    state.withLock { state in
      guard state.values.count < Self.capacity else { return false }
      state.values.append(value)
      valueCount.store(state.values.count, ordering: .relaxed)
      return true
    }
  }

  /// Removes and returns the new metadata values.
  func takeValues() -> [PendingValue] {
    state.withLock { state in
      defer { state.values = [] }
      valueCount.store(0, ordering: .relaxed)
      return state.values
    }
  }
}
