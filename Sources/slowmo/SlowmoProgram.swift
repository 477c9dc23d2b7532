// SPDX-License-Identifier: Apache-2.0

/// The command as a program.
package enum SlowmoProgram {
  /// Runs the command with the arguments of the process, and ends the process.
  package static func main() { Slowmo.main() }
}
