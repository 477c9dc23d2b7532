// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// A state change of a session.
public enum SessionEvent: Hashable, Sendable {
  /// The session started, and frames flow.
  case didStartRunning
  /// The session stopped, and no input is running.
  case didStopRunning
  /// The input of this device was interrupted for a reason that may be temporary.
  ///
  /// `CaptureDevice.media` is the media type that is no longer captured. The other inputs continue.
  case wasInterrupted(CaptureDevice, InterruptionReason)
  /// The interruption ended, and the input of this device runs again.
  case interruptionEnded(CaptureDevice, InterruptionReason)
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
  }
}
