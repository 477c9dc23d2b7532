// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import Subprocess
import Synchronization

/// Runs a command of the user's for each finished clip, while the next ones are recorded.
final class ClipCommands: Sendable {
  /// What sh(1) is given; the clip's path is its first parameter.
  private let command: String
  private let running = DispatchGroup()
  private let failures = Mutex<[String]>([])

  /// Reads a command for sh(1), in which `{path}` stands for the clip's file, whether it is in
  /// quotation marks or not.
  init(_ command: String) { self.command = Self.script(command) }

  /// The command with the shell's own parameter in place of `{path}`: a name is never read as a
  /// part of a command, whatever is in it.
  static func script(_ command: String) -> String {
    var script = ""
    var quote: Character?
    var rest = Substring(command)
    while let next = rest.first {
      if rest.hasPrefix("{path}") {
        script += quote == "\"" ? "$1" : quote == "'" ? "'\"$1\"'" : "\"$1\""
        rest = rest.dropFirst(6)
        continue
      }
      rest = rest.dropFirst()
      script.append(next)
      if next == "\\", quote != "'", let escaped = rest.popFirst() {
        script.append(escaped)
      } else if next == quote {
        quote = nil
      } else if quote == nil, next == "'" || next == "\"" {
        quote = next
      }
    }
    return script
  }

  /// Starts the command for a clip; what it says goes to stderr.
  func run(for path: String) {
    running.enter()
    Task.detached { [self] in
      defer { running.leave() }
      do {
        // A group of its own: Ctrl-C ends the capture, not what is done with its clips.
        var options = PlatformOptions()
        options.processGroupID = 0
        let result = try await Subprocess.run(
          .name("sh"),
          // strdup(3) copies each up to its zero.
          arguments: Arguments(["-c", command, "sh", path].map { $0.systemBytes + [0] }),
          platformOptions: options,
          output: .currentStandardError, error: .currentStandardError)
        guard !result.terminationStatus.isSuccess else { return }
        failures.withLock {
          $0.append("the command for \(path) ended with \(result.terminationStatus)")
        }
      } catch {
        failures.withLock { $0.append("could not run the command for \(path): \(error)") }
      }
    }
  }

  /// Waits for all that were started, and tells which failed.
  func wait() -> [String] {
    running.wait()
    return failures.withLock { $0 }
  }
}
