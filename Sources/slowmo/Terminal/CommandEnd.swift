// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The end of the command: by its verb, or by force after a signal.
///
/// A verb that only reads or exports notices a signal between two frames. Some steps take longer, such
/// as an analysis or one huge image. The process then ends while the verb is at work.
enum CommandEnd {
  private enum State {
    case working
    /// The verb has its result or its error.
    case byVerb
    /// A thread ends the process.
    case byForce(pthread_t)
  }

  private static let state = Mutex(State.working)
  /// The processor time that a verb may use after a signal, in nanoseconds.
  private static let longestTime: Int64 = 120_000_000

  /// Begins the end by the verb, before it prints its result.
  ///
  /// Does not return if another thread ends the process.
  static func begin() {
    let isTooLate = state.withLock { state in
      switch state {
      case .working:
        state = .byVerb
        return false
      case .byVerb: return false
      case .byForce(let thread): return pthread_equal(thread, pthread_self()) == 0
      }
    }
    while isTooLate { pause() }
  }

  /// Ends the process once it has used its processor time, unless the verb has ended.
  ///
  /// Called by the action for the first signal.
  static func limit(_ arguments: [String]) {
    let finishedCount = UnfinishedFiles.finishedCount
    Interrupt.afterProcessorTime(longestTime) {
      // The report may wait for its reader, and the thread of the signals must not.
      let thread = try? BlockingThread { force(arguments, finishedCount) }
      thread?.detach()
    }
  }

  private static func force(_ arguments: [String], _ finishedCount: Int) {
    // A file that has its name belongs to a verb that is done.
    UnfinishedFiles.end(ifFinished: finishedCount) {
      state.withLock { state in
        guard case .working = state else { return false }
        state = .byForce(pthread_self())
        return true
      }
    } _: {
      Interrupt.prepareForcedExit()
      let status = Slowmo.report(
        CommandError(
          Interrupt.status, code: "cancelled", "the command was cancelled", hint: "run it again"),
        arguments)
      Slowmo.end(status)
    }
  }
}
