// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import Synchronization

/// What happens to a session.
public enum SessionEvent: Hashable, Sendable {
  /// Frames flow.
  case didStartRunning
  /// Frames flow no more; nobody has to do anything about it.
  case didStopRunning
  /// Frames of an input or to an output flow no more, for a reason that may pass.
  case wasInterrupted(InterruptionReason)
  /// The reason has passed, and frames flow again.
  case interruptionEnded(InterruptionReason)
  /// An input stopped because of an error; ``CaptureSession/startRunning()`` starts it again.
  case runtimeError(MediaError)

  /// Why a session does not run although it was told to.
  public enum InterruptionReason: String, Hashable, Sendable {
    /// Another program has the device.
    case deviceInUse = "device_in_use"
    /// The device was unplugged.
    case deviceGone = "device_gone"
    /// A movie's writer did not follow, and its queue is full: frames are missing in the movie.
    case systemPressure = "system_pressure"
  }
}

/// Tells several listeners of the same events.
package final class EventHub<Event: Sendable>: Sendable {
  private struct State {
    var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    var next = 0
  }
  private let state = Mutex(State())

  package init() {}

  deinit { for listener in state.withLock({ $0.listeners.values }) { listener.finish() } }

  /// The events from now on; of those that nobody takes, the newest 256 are kept.
  package func events() -> AsyncStream<Event> {
    let (stream, continuation) = AsyncStream<Event>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    let number = state.withLock { state in
      state.next += 1
      state.listeners[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
    }
    return stream
  }

  package func send(_ event: Event) {
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { listener.yield(event) }
  }
}
