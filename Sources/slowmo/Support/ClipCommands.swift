// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Subprocess
import Synchronization

/// Runs a command of the user's for each finished clip, while the next ones are recorded.
final class ClipCommands: Sendable {
  private let command: String
  private let running = DispatchGroup()
  private let failures = Mutex<[String]>([])

  /// Reads a command for sh(1), in which `{path}` stands for the clip's file, quoted.
  init(_ command: String) { self.command = command }

  /// Starts the command for a clip; what it says goes to stderr.
  func run(for path: String) {
    let quoted =
      "'\(path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
    let text = command.split(separator: "{path}", omittingEmptySubsequences: false)
      .joined(separator: quoted)
    running.enter()
    Task.detached { [self] in
      defer { running.leave() }
      do {
        let result = try await Subprocess.run(
          .name("sh"), arguments: ["-c", text], output: .currentStandardError,
          error: .currentStandardError)
        guard !result.terminationStatus.isSuccess else { return }
        failures.withLock { $0.append("\(text) ended with \(result.terminationStatus)") }
      } catch {
        failures.withLock { $0.append("could not run \(text): \(error)") }
      }
    }
  }

  /// Waits for all that were started, and tells which failed.
  func wait() -> [String] {
    running.wait()
    return failures.withLock { $0 }
  }
}
