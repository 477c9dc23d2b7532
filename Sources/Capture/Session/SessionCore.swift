// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankMediaCore
import Synchronization

/// The part of a session that its outputs keep alive.
///
/// ```
///   CaptureSession ──▶ outputs ──▶ SessionCore ──▶ inputs
///          └───────────────────────────▲
/// ```
///
/// The core refers to the outputs weakly. Otherwise, an output and its session would keep each other
/// alive, and a camera open.
package final class SessionCore: Sendable {
  let state = Mutex(CaptureSession.State())
  /// Serializes starts, stops and changes of inputs.
  ///
  /// A thread that holds the lock of `state` must not acquire this lock.
  let work = Mutex(())
  let hub = EventHub<SessionEvent>()
  let journal = Mutex(Logger.quiet)
  /// The interval between restart attempts of an interrupted input, in milliseconds.
  let retryMilliseconds: Int

  init(retryMilliseconds: Int) { self.retryMilliseconds = retryMilliseconds }

  deinit { for interruption in state.withLock({ $0.interruptions }) { interruption.end() } }

  /// The session of the core.
  ///
  /// If the program has released the session object, a new one is created.
  package var session: CaptureSession {
    state.withLock { state in
      if let session = state.session { return session }
      let session = CaptureSession(self, holding: state.graph.outputs)
      state.session = session
      return session
    }
  }
}
