// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What gives triggers during a capture; it ends with this value.
final class TriggerSources {
  private var listeners: [DatagramListener] = []

  /// Begins to listen.
  ///
  /// - Throws: `CommandError` where that is not possible.
  init(_ kinds: [TriggerKind], of movie: MovieFileOutput) throws {
    // Lines have no other use than to give triggers: where they can be the only ones, their end
    // is the end of the capture.
    let endsWithLines = kinds.allSatisfy { $0 == .key }
    for kind in kinds {
      switch kind {
      case .signal: Interrupt.onUserSignal { movie.trigger(.signal) }
      case .key:
        LineInput.read {
          movie.trigger(.key)
        } atEnd: {
          if endsWithLines { movie.endTriggers(.signal) }
        }
      case .udp(let host, let port):
        listeners.append(try DatagramListener(host: host, port: port) { movie.trigger(.udp) })
      case .audio, .motion: break  // The session's own, which the recording looks after.
      }
    }
  }

  deinit {
    Interrupt.onUserSignal {}
    for listener in listeners { listener.stop() }
  }
}
