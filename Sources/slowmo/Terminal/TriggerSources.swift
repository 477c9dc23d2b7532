// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The external trigger sources of a capture.
///
/// They stop when this object is released.
final class TriggerSources {
  private var listeners: [DatagramListener] = []

  /// Starts listening.
  ///
  /// - Throws: `CommandError` if a source cannot be opened.
  init(_ kinds: [TriggerKind], of movie: MovieFileOutput) throws {
    // If standard input is the only trigger source, the capture ends at the end of the input,
    // because no further trigger can arrive.
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
      case .audio, .motion: break  // The recording detects these triggers itself.
      }
    }
  }

  deinit {
    Interrupt.onUserSignal {}
    for listener in listeners { listener.stop() }
  }
}
