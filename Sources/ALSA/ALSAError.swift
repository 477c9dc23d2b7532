// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// A failed call to a sound card: what was tried, on which device, and why.
package struct ALSAError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "Could not … hw:0,0".
  package enum Operation: String, Sendable {
    case open
    case describe = "ask what it is:"
    case listFormats = "list the formats of"
    case setFormat = "set the format of"
    case start
    case wait = "wait for sound from"
    case read = "take sound from"
    case recover = "start again after a loss:"
  }

  /// What the code means for the user.
  package enum Reason: Sendable {
    /// This user may not open the device: `EACCES`, `EPERM`.
    case noPermission
    /// There is no such device: `ENOENT`, and `ENODEV`, `ENXIO` when it is opened.
    case notFound
    /// Another program has the device: `EBUSY`.
    case busy
    /// The device was there and is gone: `ENODEV`, `ENXIO`, `ESHUTDOWN`, `EBADFD` of a stream.
    case unplugged
    /// The device cannot do what was asked: `EINVAL`.
    case notSupported
    /// There is no memory: `ENOMEM`.
    case outOfMemory
    /// This program, or all together, have too many files open: `EMFILE`, `ENFILE`.
    case tooManyFiles
    /// The driver or the device gave up: `EIO`, and anything else.
    case other
  }

  package let operation: Operation
  /// The device it was tried on, as ALSA calls it.
  package let device: String
  /// The number of the error, above zero, as errno(3) lists them.
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

  /// One line: `Could not open hw:0,0: Device or resource busy`.
  package var description: String {
    "Could not \(operation.rawValue) \(device): \(String(cString: strerror(code)))"
  }

  /// The failed call.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation.rawValue, on: device, errorNumber: code)
  }

  /// What to try next.
  package var recovery: Recovery {
    switch reason {
    case .noPermission:
      "add yourself to the group audio (sudo usermod -aG audio $USER) and log in again"
    case .notFound: Recovery("choose a device that is listed", .listDevices)
    case .busy: "another program records from it; sudo fuser -v /dev/snd/* tells which"
    case .unplugged: "it was unplugged or its driver is gone; plug it in again"
    case .notSupported: "choose another format of the microphone"
    case .outOfMemory, .tooManyFiles: "close other programs and try again"
    case .other: "unplug it and plug it in again; the kernel's words are in: sudo dmesg"
    }
  }

  static func check(
    _ result: CInt, _ operation: Operation, _ device: String
  ) throws(ALSAError) {
    guard result < 0 else { return }
    throw ALSAError(operation, device, code: -result)
  }
}
