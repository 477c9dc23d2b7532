// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A shared library that is loaded at run time with `dlopen(3)`.
///
/// It stays loaded until the process ends, so the addresses of its symbols stay valid. Any thread may
/// use it.
package struct SharedLibrary: Sendable {
  /// The reason why a library or one of its symbols cannot be used, as `dlerror(3)` words it.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// Takes the message of `dlerror(3)` for the last failed call on this thread.
    fileprivate init() {
      description = dlerror().map { String(cString: $0) } ?? "unknown error"
    }
  }

  private let handle: UInt

  /// Loads a library.
  ///
  /// - Parameter name: The library's file name, which is searched for in the run path of this
  ///   program, in `LD_LIBRARY_PATH` and in the system's directories; a path with a slash is used
  ///   as it is.
  /// - Throws: The reason why it cannot be loaded.
  package init(_ name: String) throws(Failure) {
    guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { throw Failure() }
    self.handle = UInt(bitPattern: handle)
  }

  /// Returns the address of a function or variable.
  ///
  /// - Throws: The reason why it is not in the library.
  package func symbol(_ name: String) throws(Failure) -> UnsafeMutableRawPointer {
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: handle), name) else {
      throw Failure()
    }
    return address
  }
}
