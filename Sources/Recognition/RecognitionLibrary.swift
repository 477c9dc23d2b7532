// SPDX-License-Identifier: Apache-2.0

import CCodeReader
import CFaceDetector
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The functions of a library that recognition loads when they are first used.
///
/// Such a library is in no distribution, so the package is built without it. It exports one symbol, a
/// function that returns a table of functions; the symbol's name contains the version of that table.
struct RecognitionLibrary<Functions>: @unchecked Sendable {
  /// The table, a constant of the library, which stays loaded.
  let functions: Functions

  /// Loads a library.
  ///
  /// - Parameters:
  ///   - component: The library.
  ///   - file: Its file name.
  ///   - symbol: The name of its one symbol.
  /// - Throws: `MediaError` with `.missingComponent` if it is not installed, or has another version.
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
