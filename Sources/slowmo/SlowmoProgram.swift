// SPDX-License-Identifier: Apache-2.0

/// The entry point of the `slowmo` program.
package enum SlowmoProgram {
  /// Runs the program with the arguments of the process, then exits.
  ///
  /// - Parameter components: The optional components that this program links.
  package static func main(with components: OptionalComponents = OptionalComponents()) {
    components.register()
    Slowmo.main()
  }
}
