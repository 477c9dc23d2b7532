// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A failed call of a lower layer: the operation, its subject and the error number.
///
/// The bridges to the kernel, FFmpeg and ALSA throw it. A ``CallStage`` converts it to a `MediaError`.
package struct CallFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The meaning of an error number, for the operation that failed.
  package enum Kind: Sendable {
    /// The user has no permission: `EACCES`, `EPERM`, `EROFS`.
    case noPermission
    /// The file or device does not exist: `ENOENT`, `ENOTDIR`.
    case notFound
    /// Another program uses the device, locked the control, or is writing the file.
    case busy
    /// A file that must not be replaced has this name.
    case nameTaken
    /// The path names a device, pipe or socket instead of a regular file.
    case notRegularFile
    /// The device was unplugged: `ENODEV`, `ENXIO`, `ESHUTDOWN` of an open device.
    case unplugged
    /// The node is not a video device.
    case notVideoDevice
    /// The bus lacks bandwidth for the stream.
    case noBandwidth
    /// The control does not accept the value.
    case outOfRange
    /// The control is read-only or overridden by an automatic mode.
    case readOnly
    /// The request is not supported: `EINVAL`, `ENOTSUP`, `ENOSYS`, `ERANGE`.
    case notSupported
    /// The input has no signal.
    case noSignal
    /// The input signal is unstable.
    case unstableSignal
    /// The input signal is outside the device's limits.
    case signalOutOfRange
    /// The camera does not respond, or responds with garbage.
    case busFailure
    /// Memory or threads are exhausted: `ENOMEM`, and `EAGAIN` from creating a thread.
    case outOfMemory
    /// Too many open files in this process or in the system: `EMFILE`, `ENFILE`.
    case tooManyFiles
    /// The disk or the user's quota is full, or the file is too large: `ENOSPC`, `EDQUOT`, `EFBIG`.
    case diskFull
    /// The disk or the device failed: `EIO`.
    case transferFailed
    /// The data is damaged, or is not in the expected format.
    case invalidData
    /// The program cancelled the call.
    case cancelled
    /// All other errors.
    case other
  }

  /// The operation, as a phrase that completes "could not … clip.mov".
  package let operation: String
  /// The subject: the path of a file or device, or a description such as "a thread".
  package let subject: String
  /// The number of errno(3), above zero; or a negative error code of the library's own.
  package let number: Int32
  /// The meaning of the number.
  package let kind: Kind
  /// The reason, in the text of the system or library.
  package let reason: String
  /// A remedy, if one is known without knowing what the call was made for.
  package let recovery: Recovery?
  /// The last line that the library logged during the call.
  ///
  /// This line often explains the failure better than the number does.
  package let logLine: String?
  /// The failed operation, its subject and the reason, in one line.
  package let description: String

  /// Creates the failure of a call to a library that has error numbers and texts of its own.
  ///
  /// Without a message, the description is "could not" with the operation, the subject and the
  /// reason.
  package init(
    _ operation: String, _ subject: String, _ number: Int32, _ kind: Kind, reason: String,
    recovery: Recovery? = nil, logLine: String? = nil, message: String? = nil
  ) {
    (self.operation, self.subject, self.number) = (operation, subject, number)
    (self.kind, self.reason, self.recovery, self.logLine) = (kind, reason, recovery, logLine)
    description = message ?? "could not \(operation) \(subject): \(reason)"
  }

  /// Creates the failure of a system call from its errno.
  package init(_ operation: String, _ subject: String, _ number: Int32) {
    self.init(
      operation, subject, number, Self.kind(ofSystemNumber: number),
      reason: Self.text(ofSystemNumber: number))
  }

  /// Returns the same failure, attributed to another operation and subject.
  package func attributed(to operation: String, _ subject: String) -> CallFailure {
    CallFailure(
      operation, subject, number, kind, reason: reason, recovery: recovery, logLine: logLine)
  }

  /// The meaning of an errno without knowing the operation.
  package static func kind(ofSystemNumber number: Int32) -> Kind {
    switch number {
    case EACCES, EPERM, EROFS: .noPermission
    case ENOENT, ENOTDIR: .notFound
    case EBUSY: .busy
    case ENOMEM, EAGAIN: .outOfMemory
    case EMFILE, ENFILE: .tooManyFiles
    case ENOSPC, EDQUOT, EFBIG: .diskFull
    case EIO: .transferFailed
    case EINVAL, ERANGE, ENOSYS: .notSupported
    case ECANCELED: .cancelled
    default: .other
    }
  }

  /// The system's text for an errno.
  ///
  /// The call is thread-safe, because glibc's strerror(3) uses a buffer per thread.
  package static func text(ofSystemNumber number: Int32) -> String {
    String(cString: strerror(number))
  }

  /// The number of errno(3); nil for a library's own error code.
  package var systemNumber: Int32? { number > 0 ? number : nil }

  /// The failure and its remedy in one line.
  package var advice: String { recovery.map { "\(description); \($0)" } ?? description }

  /// The failed call, as the cause of a `MediaError`.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation, on: subject, errorNumber: systemNumber)
  }
}
