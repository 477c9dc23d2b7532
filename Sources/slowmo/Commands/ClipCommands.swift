// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Overcrank
import OvercrankLinuxSystem
import Subprocess
import Synchronization

/// Runs a user's shell command for each finished clip while recording goes on.
final class ClipCommands: Sendable {
  /// The script for sh(1), which receives the clip's path as its first parameter.
  private let command: String
  private let running = DispatchGroup()
  private let failures = Mutex<[String]>([])
  /// The paths of the clips whose commands are still running.
  private let paths = Mutex<[String]>([])

  /// The number of seconds for which commands may still run after a signal has ended the capture.
  private static let secondsAfterSignal = 10

  /// Prepares a command for sh(1).
  ///
  /// `{path}` stands for the path of the clip, `{trigger}` for the time of its trigger in the clip in
  /// seconds, and `{replay}` for the path of its replay. The last two are empty without one. The user
  /// may put them in quotes or not.
  init(_ command: String) { self.command = Self.script(command) }

  /// The placeholders, and the parameters of the script that replace them.
  private static let placeholders = ["{path}": "$1", "{trigger}": "$2", "{replay}": "$3"]

  /// Replaces each placeholder with a shell parameter.
  ///
  /// The shell does not parse the value of a parameter, so special characters in the file name are
  /// safe.
  static func script(_ command: String) -> String {
    var script = ""
    var quote: Character?
    var rest = Substring(command)
    while let next = rest.first {
      if let (name, value) = placeholders.first(where: { rest.hasPrefix($0.key) }) {
        script += quote == "\"" ? value : quote == "'" ? "'\"\(value)\"'" : "\"\(value)\""
        rest = rest.dropFirst(name.count)
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

  /// Starts the command for a clip; its output goes to standard error.
  ///
  /// The variable `SLOWMO_FILE` contains the path too, for places where `{path}` cannot be quoted
  /// safely, such as inside `"$(…)"`. `SLOWMO_TRIGGER_NS` is the time of the trigger in
  /// nanoseconds; it is empty without a trigger.
  func run(for path: String, trigger: TriggerMark? = nil, replay: String? = nil) {
    let time = trigger.map { String($0.captureTime.wholeNanoseconds) } ?? ""
    // A time before the first frame is not an instant of the clip.
    let instant = trigger.flatMap { $0.time < .zero ? nil : $0.time.secondsText } ?? ""
    // The path may contain bytes that are not valid UTF-8, which an argument can hold. So the
    // script itself sets the variable for the path, from its argument.
    let script =
      "SLOWMO_FILE=$1 SLOWMO_TRIGGER_NS=\(time); export SLOWMO_FILE SLOWMO_TRIGGER_NS\n" + command
    running.enter()
    paths.withLock { $0.append(path) }
    Task.detached { [self] in
      defer {
        paths.withLock { paths in
          if let index = paths.firstIndex(of: path) { paths.remove(at: index) }
        }
        running.leave()
      }
      do {
        // Ctrl-C is meant to end the capture and not the command. The terminal signals a whole
        // process group, so the command runs in a separate group.
        var options = PlatformOptions()
        options.processGroupID = 0
        let result = try await Subprocess.run(
          .name("sh"),
          // Subprocess copies each argument up to its terminating zero (strdup(3)), so a zero is
          // appended.
          arguments: Arguments(
            ["-c", script, "sh", path, instant, replay ?? ""].map { $0.systemBytes + [0] }),
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

  /// Waits for all started commands and returns a message for each failed one.
  ///
  /// After a signal, the wait is limited, because a command may be waiting for input that never
  /// comes.
  func wait() -> [String] {
    var secondsLeft = Self.secondsAfterSignal
    while running.wait(timeout: .now() + .seconds(1)) == .timedOut {
      guard Interrupt.isRequested else { continue }
      secondsLeft -= 1
      guard secondsLeft > 0 else { break }
    }
    return failures.withLock { $0 }
      + paths.withLock { $0 }.map { "the command for \($0) is still running" }
  }
}
