// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// A failed call to a sound card: the operation, the device and the errno.
package struct ALSAError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The operation, as a phrase that completes "could not … hw:0,0".
  package enum Operation: String, Sendable {
    case open
    case describe = "describe"
    case listFormats = "list the formats of"
    case setFormat = "set the format of"
    case start
    case wait = "wait for audio from"
    case read = "read audio from"
    case write = "write audio to"
    case recover = "restart"
  }

  /// The meaning of the errno for the user.
  package enum Reason: Sendable {
    /// The user has no permission to open the device: `EACCES`, `EPERM`.
    case noPermission
    /// The device does not exist: `ENOENT`; `ENODEV` or `ENXIO` from open.
    case notFound
    /// Another program uses the device: `EBUSY`.
    case busy
    /// The device was unplugged: `ENODEV`, `ENXIO`, `ESHUTDOWN` of an open device.
    case unplugged
    /// The device does not support the request: `EINVAL`.
    case notSupported
    /// No memory: `ENOMEM`.
    case outOfMemory
    /// Too many open files in this process or in the system: `EMFILE`, `ENFILE`.
    case tooManyFiles
    /// A driver or device failure: `EIO` and all other errors.
    case other
  }

  package let operation: Operation
  /// The ALSA name of the device.
  package let device: String
  /// The errno of the failed call, above zero.
  ///
  /// See errno(3).
  package let code: Int32

  package init(_ operation: Operation, _ device: String, code: Int32) {
    self.operation = operation
    self.device = device
    self.code = code
  }

  package var reason: Reason {
    switch (code, operation) {
    case (EACCES, _), (EPERM, _): .noPermission
    case (ENOENT, _), (ENODEV, .open), (ENXIO, .open), (ENODEV, .describe), (ENXIO, .describe):
      .notFound
    case (EBUSY, _), (EAGAIN, .open): .busy
    case (ENODEV, _), (ENXIO, _), (ESHUTDOWN, _): .unplugged
    case (EINVAL, _), (ENOTSUP, _), (ENOTTY, _): .notSupported
    case (ENOMEM, _): .outOfMemory
    case (EMFILE, _), (ENFILE, _): .tooManyFiles
    default: .other
    }
  }

  /// The error in one line: `could not open hw:0,0: Device or resource busy`.
  package var description: String {
    "could not \(operation.rawValue) \(device): \(String(cString: strerror(code)))"
  }

  /// The failed call, as the cause of a `MediaError`.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation.rawValue, on: device, errorNumber: code)
  }

  /// Advice on the next step to try after this error.
  package var recovery: Recovery {
    switch reason {
    case .noPermission:
      Recovery(
        "add yourself to the group audio (sudo usermod -aG audio $USER) and log in again",
        .diagnose(device: nil))
    case .notFound: Recovery("choose a device that is listed", .listDevices)
    case .busy:
      Recovery(
        "close the program that records from it; sudo fuser -v /dev/snd/* shows which one",
        .diagnose(device: nil))
    case .unplugged: "plug the device in again; it was unplugged, or its driver was unloaded"
    case .notSupported: "choose another format for the microphone"
    case .outOfMemory, .tooManyFiles: "close other programs and try again"
    case .other: "unplug the device and plug it in again; sudo dmesg shows the kernel's messages"
    }
  }

  static func check(
    _ result: CInt, _ operation: Operation, _ device: String
  ) throws(ALSAError) {
    guard result < 0 else { return }
    throw ALSAError(operation, device, code: -result)
  }
}
