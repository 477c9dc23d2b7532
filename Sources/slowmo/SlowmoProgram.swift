// SPDX-License-Identifier: Apache-2.0

/// The entry point of the command.
package enum SlowmoProgram {
  /// Runs the command with the arguments of the process, then exits the process.
  package static func main() { Slowmo.main() }
}
