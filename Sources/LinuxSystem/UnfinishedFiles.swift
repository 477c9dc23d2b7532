// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The temporary files of this process that have not received their names yet (``WholeFile``).
///
/// May be used from any thread.
package enum UnfinishedFiles {
  private struct State {
    var paths: Set<String> = []
    var finishedCount = 0
  }

  private static let state = Mutex(State())

  /// The number of files that have received their names so far.
  package static var finishedCount: Int { state.withLock { $0.finishedCount } }

  static func add(_ path: String) { state.withLock { _ = $0.paths.insert(path) } }

  /// Removes an unfinished file of this process.
  static func remove(_ path: String) {
    state.withLock { state in
      unlink(path.systemPath)
      state.paths.remove(path)
    }
  }

  /// Calls a closure that renames a temporary file to its final name, and counts the file as
  /// finished if the closure succeeds.
  ///
  /// - Returns: The result of the closure: 0 or an errno.
  static func finish(_ path: String, _ rename: () -> Int32) -> Int32 {
    state.withLock { state in
      let failure = rename()
      if failure == 0 {
        state.paths.remove(path)
        state.finishedCount += 1
      }
      return failure
    }
  }

  /// Removes all unfinished files and ends the process, unless a file has received its name
  /// meanwhile.
  ///
  /// - Parameters:
  ///   - finishedCount: The value of ``finishedCount`` that the caller read earlier. A different
  ///     value prevents the end.
  ///   - mayEnd: Called first. It returns false to keep the process running. No other thread
  ///     renames a file during the call.
  ///   - end: Ends the process. Called after the files were removed.
  package static func end(
    ifFinished finishedCount: Int, _ mayEnd: () -> Bool, _ end: () -> Never
  ) {
    state.withLock { state in
      guard state.finishedCount == finishedCount, mayEnd() else { return }
      for path in state.paths { unlink(path.systemPath) }
      end()
    }
  }
}
