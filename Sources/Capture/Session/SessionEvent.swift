// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A state change of a session.
public enum SessionEvent: Hashable, Sendable {
  /// The session started, and frames flow.
  case didStartRunning
  /// The session stopped, and no input is running.
  case didStopRunning
  /// The session was interrupted for a reason that may be temporary.
  case wasInterrupted(InterruptionReason)
  /// The interruption ended, and frames flow again.
  case interruptionEnded(InterruptionReason)
  /// An input stopped with an error.
  ///
  /// `CaptureSession.startRunning()` restarts it.
  case runtimeError(MediaError)

  /// The reason for an interruption.
  public enum InterruptionReason: String, Hashable, Sendable {
    /// Another program uses the device.
    case deviceInUse = "device_in_use"
    /// The device was unplugged.
    case deviceGone = "device_gone"
    /// A movie writer is too slow and its queue is full.
    ///
    /// Frames are missing in the movie.
    case systemPressure = "system_pressure"
  }
}
