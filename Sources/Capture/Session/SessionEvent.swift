// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

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
  /// An input stopped because of an error; `CaptureSession.startRunning()` starts it again.
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
