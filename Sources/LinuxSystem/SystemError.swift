// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A failed system call: the operation, its subject and the errno.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The operation, as a phrase that completes "could not … clip.mov".
  package let operation: String
  /// The subject: a file path, or a description such as "a thread".
  package let subject: String
  /// The errno of the failed call.
  package let errorNumber: Int32

  package init(_ operation: String, _ subject: String, _ errorNumber: Int32) {
    self.operation = operation
    self.subject = subject
    self.errorNumber = errorNumber
  }

  /// The reason in the system's own text (strerror).
  package var reason: String { String(cString: strerror(errorNumber)) }

  package var description: String { "could not \(operation) \(subject): \(reason)" }
}
