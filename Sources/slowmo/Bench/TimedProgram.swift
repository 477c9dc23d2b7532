// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Subprocess
import Synchronization
import SystemPackage

/// The time that a command takes from its start to its end.
struct CommandCost {
  let wallNanoseconds: Int64
  /// The CPU time of the command and its children, in user mode and in the kernel.
  let processorNanoseconds: Int64
}

/// The result of a finished command.
struct TimedResult {
  let cost: CommandCost
  /// The exit code; nil if a signal ended the command.
  let status: Int32?
  let output: String
  let errors: String
}

/// A program that benchmarks run and time.
struct TimedProgram: Sendable {
  /// This program, run in a separate process.
  static let slowmo = TimedProgram(
    executable: .path(
      FilePath(realpath("/proc/self/exe", nil).map { String(cString: $0) } ?? "slowmo")))
  /// The first `ffmpeg` in PATH.
  static let ffmpeg = TimedProgram(executable: .name("ffmpeg"))

  private let executable: Executable

  /// Runs a command and waits for its end.
  ///
  /// The first signal to this process kills the command.
  ///
  /// - Throws: The error that prevented the start; `CommandError` after a signal.
  func run(_ arguments: [String]) throws -> TimedResult {
    let finished = Mutex<Result<(status: Int32?, output: String, errors: String), any Error>>(
      .failure(CancellationError()))
    let isFinished = DispatchSemaphore(value: 0)
    let (start, before) = (ContinuousClock.now, Self.childrenProcessorTime())
    let task = Task.detached {
      do {
        let result = try await Subprocess.run(
          executable, arguments: Arguments(arguments.map { $0.systemBytes + [0] }),
          output: .string(limit: 16 << 20), error: .string(limit: 16 << 20))
        var status: Int32?
        if case .exited(let code) = result.terminationStatus { status = code }
        finished.withLock {
          $0 = .success((status, result.standardOutput, result.standardError))
        }
      } catch {
        finished.withLock { $0 = .failure(error) }
      }
      isFinished.signal()
    }
    Interrupt.onFirst { task.cancel() }
    isFinished.wait()
    // The command has ended. From now on, a signal cancels the reading of movies.
    Interrupt.onFirst { Asset.cancelReading() }
    let cost = CommandCost(
      wallNanoseconds: (ContinuousClock.now - start).wholeNanoseconds,
      processorNanoseconds: Self.childrenProcessorTime() - before)
    if Interrupt.isRequested {
      throw CommandError(
        Interrupt.status, code: "cancelled", "the benchmark was cancelled", hint: "")
    }
    let (status, output, errors) = try finished.withLock { try $0.get() }
    return TimedResult(cost: cost, status: status, output: output, errors: errors)
  }

  /// The CPU time of all ended children, in nanoseconds.
  private static func childrenProcessorTime() -> Int64 {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
      $0 + (Int64($1.tv_sec) * 1_000_000 + Int64($1.tv_usec)) * 1_000
    }
  }
}
