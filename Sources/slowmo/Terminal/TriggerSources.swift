// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The external trigger sources of a capture.
///
/// The sources stop when this object is released.
final class TriggerSources {
  private var listeners: [DatagramListener] = []

  /// Starts listening for triggers, which start clips of a movie output.
  ///
  /// - Throws: `CommandError` if a source cannot be opened.
  convenience init(_ kinds: [TriggerKind], of movie: MovieFileOutput) throws {
    try self.init(kinds) {
      movie.trigger($0)
    } atEnd: {
      movie.endTriggers(.signal)
    }
  }

  /// Starts listening for triggers, which are passed to a closure.
  ///
  /// - Parameters:
  ///   - kinds: The sources. Audio and motion are ignored here, because outputs of the session
  ///     detect them.
  ///   - handler: Called with each trigger, on any thread.
  ///   - atEnd: Called when no more triggers can come.
  /// - Throws: `CommandError` if a source cannot be opened.
  init(
    _ kinds: [TriggerKind], handler: @escaping @Sendable (CaptureTrigger.Source) -> Void,
    atEnd: @escaping @Sendable () -> Void
  ) throws {
    // If standard input is the only trigger source, the capture ends at the end of the input,
    // because no further trigger can arrive.
    let endsWithLines = kinds.allSatisfy { $0 == .key }
    for kind in kinds {
      switch kind {
      case .signal: Interrupt.onUserSignal { handler(.signal) }
      case .key:
        LineInput.read {
          handler(.key)
        } atEnd: {
          if endsWithLines { atEnd() }
        }
      case .udp(let host, let port):
        listeners.append(try DatagramListener(host: host, port: port) { handler(.udp) })
      case .audio, .motion: break  // Outputs of the session detect these triggers.
      }
    }
  }

  deinit {
    Interrupt.onUserSignal {}
    for listener in listeners { listener.stop() }
  }
}
