// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A failed system call: what was tried, on what, and why.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "could not … clip.mov".
  package let operation: String
  /// What it was tried on: a file's path, a thread.
  package let subject: String
  /// The errno.
  package let errorNumber: Int32

  package init(_ operation: String, _ subject: String, _ errorNumber: Int32) {
    self.operation = operation
    self.subject = subject
    self.errorNumber = errorNumber
  }

  /// Why, in the system's words.
  package var reason: String { String(cString: strerror(errorNumber)) }

  package var description: String { "could not \(operation) \(subject): \(reason)" }
}
