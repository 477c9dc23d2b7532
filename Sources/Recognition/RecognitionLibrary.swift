// SPDX-License-Identifier: Apache-2.0

import CCodeReader
import CFaceDetector
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The functions of a recognition library, which is loaded at its first use.
///
/// No distribution packages such a library, so the project is built without it. It exports one
/// symbol: a function that returns a table of functions. The name of the symbol contains the
/// version of the table.
struct RecognitionLibrary<Functions>: @unchecked Sendable {
  /// The table of functions.
  ///
  /// It is a constant in the library, which is never unloaded.
  let functions: Functions

  /// Loads a library.
  ///
  /// - Parameters:
  ///   - component: The optional component that the library provides.
  ///   - file: The file name of the library.
  ///   - symbol: The name of the symbol that the library exports.
  /// - Throws: `MediaError` with `.missingComponent` if the library is not installed or has another
  ///   version.
  init(
    _ component: Recovery.Component, file: String, symbol: String
  ) throws(MediaError) {
    typealias Table = @convention(c) () -> UnsafeRawPointer?
    let address: UnsafeMutableRawPointer
    do throws(SharedLibrary.Failure) {
      address = try SharedLibrary(file).symbol(symbol)
    } catch {
      throw Self.missing(component, file, error.description)
    }
    guard let table = unsafeBitCast(address, to: Table.self)() else {
      throw Self.missing(component, file, "it returned no functions")
    }
    functions = table.load(as: Functions.self)
  }

  private static func missing(
    _ component: Recovery.Component, _ file: String, _ why: String
  ) -> MediaError {
    MediaError(
      .missingComponent, "the \(component.name) \(file) cannot be loaded: \(why)",
      recovery: Recovery("install the \(component.name)", .install(component)))
  }
}
