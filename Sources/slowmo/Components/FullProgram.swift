// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// The program with the optional libraries, `slowmo-full`.
enum FullProgram {
  static let name = "slowmo-full"

  /// Returns the path of `slowmo-full` in a program's directory, or in `../libexec/overcrank` from
  /// there.
  ///
  /// Nil if `slowmo-full` is not installed.
  static func path(besides program: String) -> String? {
    let directory = program.parentDirectory
    return [directory, "\(directory)/../libexec/overcrank"].map { "\($0)/\(name)" }
      .first { SystemFiles.kind(of: $0) == .regular }
  }

  /// Replaces this program by `slowmo-full`, with the same arguments.
  ///
  /// - Parameters:
  ///   - use: The feature that needs `slowmo-full`, such as `a window`.
  ///   - alternative: An instruction for doing without this feature.
  /// - Throws: `CommandError` with `missing_component` if `slowmo-full` is not installed.
  static func replaceThisProgram(for use: String, alternative: String) throws -> Never {
    if let program = path(besides: SystemFiles.linkTarget("/proc/self/exe") ?? "") {
      // Text in a buffer would be lost when this program is replaced.
      fflush(nil)
      Output.drainErrors()
      Interrupt.passOn()
      _ = execv(program.systemPath, CommandLine.unsafeArgv)
    }
    throw CommandError(
      .unavailable, code: "missing_component", "\(use) needs \(name), which is not installed",
      hint: "install it with sudo apt install ./overcrank-full_*_amd64.deb, or \(alternative)")
  }
}
