// SPDX-License-Identifier: Apache-2.0

/// The entry point of the command.
package enum SlowmoProgram {
  /// Runs the command with the arguments of the process, then exits the process.
  ///
  /// - Parameter components: The optional parts that the program links.
  package static func main(with components: OptionalComponents = OptionalComponents()) {
    components.register()
    Slowmo.main()
  }
}
