// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The action of a signal in this process.
package enum SignalAction {
  /// Whether the process ignores a signal.
  ///
  /// nohup(1) starts its command with SIGHUP ignored.
  package static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    return unsafeBitCast(action.__sigaction_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
