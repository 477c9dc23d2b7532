// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The command: one verb a file, and no media logic.
struct Slowmo: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slowmo",
    abstract: "High-frame-rate capture and exact slow motion.",
    discussion: """
      EXAMPLES
        slowmo devices
        slowmo modes synthetic
        slowmo record synthetic:640x480@240 -o take.mov -t 2
        slowmo info take.mov
        slowmo retime take.mov -o slow.mov --range 0.5..1 --speed 1/8 --copy
        slowmo retime take.mov -o slow.mp4 --range 0.5..1 --speed 1/8 --fps 30
        slowmo frames take.mov --at 1 -o 'frame_{index:06}.png'

      TIMES are seconds (1.25), or 250ms, 40us, 1h30m, 1:02.5, 120f (a frame from 0), end, -2s
      (from the end); a RANGE is half-open: 1.2..1.5, 2..end, 0.5+1.25. A RATE is 240, 59.94 or
      60000/1001; a SPEED is source seconds per output second: 1/8, 0.125 or 12.5%.

      EXIT CODES 0 done, 10 a stated limit was broken, 64 usage, 65 bad input data, 66 no such
      input, 69 device unavailable, 70 internal error, 73 cannot create the output, 74 I/O error,
      75 gave up waiting, 77 no permission, 130 and 143 interrupted.
      """,
    version: VersionText.text,
    subcommands: [
      DevicesCommand.self, ModesCommand.self, ControlsCommand.self, RecordCommand.self,
      InfoCommand.self, RetimeCommand.self, EditCommand.self, FramesCommand.self,
      RecoverCommand.self, BenchCommand.self,
    ])

  static func main() {
    Output.fillStandardDescriptors()
    let shortage = memoryShortage()
    if shortage == nil { Interrupt.install() }
    RecordingMemory.retainLargeAllocations()
    // Where no terminal says how wide it is, examples must not be broken in two.
    setenv("COLUMNS", "100", 0)
    let arguments = Self.arguments()
    ProgressEvents.turnOn(by: arguments)
    var status = shortage.map { report($0, arguments) } ?? run(arguments)
    // Who prints what nobody can read has not done what was asked.
    if let problem = Output.problem {
      Output.error(problem)
      if status == .done || status == .limitBroken { status = problem.status }
    }
    ProgressEvents.end(status)
    Glibc.exit(status.rawValue)
  }

  /// The arguments byte by byte: names of files need not be text.
  private static func arguments() -> [String] {
    (1..<max(1, CommandLine.argc)).compactMap { position in
      CommandLine.unsafeArgv[Int(position)].map { String(systemPath: $0) }
    }
  }

  /// Runs a verb; whatever goes wrong becomes one line, or one document, and an exit code.
  private static func run(_ arguments: [String]) -> ExitStatus {
    do {
      try checkHelp(arguments)
      var command = try parseAsRoot(arguments)
      if let verb = command as? any Verb {
        if verb.endsReading { Interrupt.onFirst { Asset.cancelReading() } }
        return try verb.perform()
      }
      try command.run()
      return .done
    } catch is Output.ReaderIsGone {
      return .done
    } catch {
      return report(error, arguments)
    }
  }

  /// Why there is too little memory to begin: threads might not get their stacks, and what waits for
  /// one would wait for ever.
  private static func memoryShortage() -> CommandError? {
    guard let left = AddressSpace.bytesLeft, left < 80 << 20 else { return nil }
    return CommandError(
      .unavailable, code: "out_of_memory",
      "only \(left >> 20) MiB of memory are left below the limit that is set",
      hint: "raise the limit: ulimit -v")
  }

  /// Refuses help on a verb that is none, for which the parser shows that of all.
  private static func checkHelp(_ arguments: [String]) throws {
    guard arguments.first == "help" else { return }
    var command: any ParsableCommand.Type = Self.self
    for name in arguments.dropFirst() where !name.hasPrefix("-") && name != "help" {
      guard let found = command.configuration.subcommands.first(where: { $0._commandName == name })
      else {
        throw CommandError.usage("\(name) is no verb", hint: "slowmo --help lists them")
      }
      command = found
    }
  }

  private static func report(_ error: any Error, _ arguments: [String]) -> ExitStatus {
    let code = exitCode(for: error)
    if code == .success {  // --help and --version end as "errors" too.
      Output.line(fullMessage(for: error))
      return .done
    }
    let failure: CommandError
    if code == .validationFailure, !(error is CommandError) {
      failure = .usage(
        message(for: error), hint: "see slowmo \(verbName(arguments).map { "\($0) " } ?? "")--help")
    } else {
      failure = CommandError(error)
    }
    if arguments.contains("--json") {
      let document = ErrorDocument(verb: verbName(arguments) ?? "error", failure)
      do { try Output.document(document) } catch { Output.notice("\(error)") }
      ProgressEvents.fail(failure)
    } else {
      Output.error(failure)
    }
    return failure.status
  }

  /// The verb that the arguments name, for the document's schema.
  private static func verbName(_ arguments: [String]) -> String? {
    guard let first = arguments.first,
      configuration.subcommands.contains(where: { $0._commandName == first })
    else { return nil }
    return first
  }
}

/// A subcommand that says by an exit status how it ended.
protocol Verb {
  /// Whether the first signal ends what is being read of movies; not where a file is finished first.
  var endsReading: Bool { get }

  func perform() throws -> ExitStatus
}

extension Verb {
  var endsReading: Bool { true }
}
