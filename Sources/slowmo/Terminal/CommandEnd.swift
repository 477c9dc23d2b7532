// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The end of the process: by the command itself, or by force after a signal.
///
/// A command that only reads or exports checks for signals between two frames. Some steps take
/// longer, such as an analysis or one huge image. The process is then ended while the command is
/// still working.
enum CommandEnd {
  private enum State {
    case working
    /// The command has its result or its error, and ends the process itself.
    case byVerb
    /// This thread ends the process by force.
    case byForce(pthread_t)
  }

  private static let state = Mutex(State.working)
  /// The processor time that a command may use after a signal, in nanoseconds.
  private static let longestTime: Int64 = 120_000_000

  /// Records that the command itself ends the process.
  ///
  /// Called before the command prints its result.
  ///
  /// Does not return if another thread is ending the process by force.
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

  /// Ends the process by force when the command has used ``longestTime`` of processor time, unless
  /// the command has ended.
  ///
  /// The action for the first signal calls this.
  static func limit(_ arguments: [String]) {
    let finishedCount = UnfinishedFiles.finishedCount
    Interrupt.afterProcessorTime(longestTime) {
      // The error report may wait for its reader. The thread that handles signals must not wait, so
      // another thread reports.
      let thread = try? BlockingThread { force(arguments, finishedCount) }
      thread?.detach()
    }
  }

  private static func force(_ arguments: [String], _ finishedCount: Int) {
    // If an output file got its final name in the meantime, the command is done and is not ended by
    // force.
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
