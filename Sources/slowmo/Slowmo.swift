// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CLibraryGuard
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The root command.
///
/// Each subcommand has its own file. The libraries contain all processing of media.
struct Slowmo: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slowmo",
    abstract: "High-frame-rate capture and exact slow motion.",
    discussion: """
      EXAMPLES
        slowmo record synthetic:640x480@240 -o take.mov -t 2
        slowmo retime take.mov -o slow.mov --range 0.5..1 --speed 1/8 --copy
        slowmo retime take.mov -o slow.mp4 --range 0.5..1 --speed 1/8 --fps 30
        slowmo play take.mov
        slowmo info take.mov
        slowmo frames take.mov --at 1 -o 'frame_{index:06}.png'
        slowmo devices
        slowmo modes synthetic
        slowmo doctor

        TIME   seconds (1.25), 250ms, 40us, 1h30m, 1:02.5, 120f (frame index from 0), end, or \
      -2s (before the end)
        RANGE  1.2..1.5, 2..end, or 0.5+1.25 (start and duration); the end is not included
        RATE   240, 59.94 or 60000/1001 frames per second
        SPEED  source seconds per output second: 1/8, 0.125 or 12.5% is slow motion

      EXIT CODES: 0 done, 10 a stated limit was exceeded, 64 usage, 65 bad input data, 66 no such
      input, 69 device unavailable, 70 internal error, 73 cannot create the output, 74 I/O error, 75
      timed out waiting, 77 no permission, 130 and 143 interrupted.
      """,
    version: VersionText.text,
    subcommands: [
      DevicesCommand.self, ModesCommand.self, ControlsCommand.self, RecordCommand.self,
      PhotoCommand.self, InfoCommand.self, CheckCommand.self, RetimeCommand.self,
      EditCommand.self, FramesCommand.self, StillCommand.self, CompareCommand.self,
      SyncCommand.self, TrackCommand.self, MeasureCommand.self, RecoverCommand.self,
      PlayCommand.self, PreviewCommand.self, ScanCommand.self, DoctorCommand.self,
      BenchCommand.self,
    ])

  static func main() {
    Output.fillStandardDescriptors()
    lg_silence_libraries()
    if AddressSpace.bytesLeft != nil { MallocTuning.shareOneHeap() }
    let shortage = ResourceShortage.found() ?? Interrupt.install()
    if shortage == nil {
      ResourceShortage.reportMissingThreads()
      ResourceShortage.reserveDescriptors()
      ResourceShortage.reportCrashes()
    } else {
      Output.writeErrorsDirectly()
    }
    RecordingMemory.retainLargeAllocations()
    let arguments = Self.arguments()
    ProgressEvents.enable(by: arguments)
    var status = shortage.map { report($0, arguments) } ?? run(arguments)
    CommandEnd.begin()
    // If output could not be written, the program fails, even if the command itself succeeded.
    if let problem = Output.problem {
      Output.error(problem)
      if status == .done || status == .limitBroken { status = problem.status }
    }
    end(status)
  }

  /// Writes the remaining messages and ends the process.
  static func end(_ status: ExitStatus) -> Never {
    Output.noteDroppedLines()
    ProgressEvents.end(status)
    Output.drainErrors()
    Glibc.exit(status.rawValue)
  }

  /// Returns the arguments with all their bytes, because file names need not be valid UTF-8.
  private static func arguments() -> [String] {
    (1..<max(1, CommandLine.argc)).compactMap { position in
      CommandLine.unsafeArgv[Int(position)].map { String(systemPath: $0) }
    }
  }

  /// Runs a command.
  ///
  /// An error is reported as one line or one JSON document, and as an exit code.
  private static func run(_ arguments: [String]) -> ExitStatus {
    do {
      try checkHelp(arguments)
      guard let verb = try command(arguments) as? any Verb else {
        // The arguments request help instead of a command that does work.
        Output.verbatim(HelpPage(requestedBy: arguments, root: Self.self).rendered)
        return .done
      }
      if verb.endsReading {
        let endsAtOnce = verb.endsAtOnce
        Interrupt.onFirst {
          Asset.cancelReading()
          if endsAtOnce { CommandEnd.limit(arguments) }
        }
      }
      return try verb.perform()
    } catch is Output.ReaderIsGone {
      return .done
    } catch {
      return report(error, arguments)
    }
  }

  /// Parses the arguments.
  ///
  /// An unknown name is reported before any other error, because it may be the cause of the other
  /// error.
  private static func command(_ arguments: [String]) throws -> any ParsableCommand {
    do {
      return try parseAsRoot(arguments)
    } catch  where exitCode(for: error) != .success {
      throw UnknownName.error(in: arguments, of: Self.self) ?? error
    }
  }

  /// Rejects `help` followed by an unknown command, for which ArgumentParser would print the root
  /// help.
  private static func checkHelp(_ arguments: [String]) throws {
    guard arguments.first == "help" else { return }
    var command: any ParsableCommand.Type = Self.self
    for name in arguments.dropFirst() where !name.hasPrefix("-") && name != "help" {
      guard let found = command.configuration.subcommands.first(where: { $0._commandName == name })
      else {
        throw UnknownName.verb(name, among: command.configuration.subcommands)
      }
      command = found
    }
  }

  static func report(_ error: any Error, _ arguments: [String]) -> ExitStatus {
    let code = exitCode(for: error)
    if code == .success {  // ArgumentParser also reports --version as an error.
      let text = fullMessage(for: error)
      Output.verbatim(
        arguments.first == CompletionScript.request ? CompletionScript.safe(text) : text)
      return .done
    }
    CommandEnd.begin()
    let failure: CommandError
    if code == .validationFailure, !(error is CommandError) {
      failure = .usage(
        parserMessage: message(for: error),
        page: "slowmo \(verbName(arguments).map { "\($0) " } ?? "")--help")
    } else {
      failure = CommandError(error, in: verbName(arguments))
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

  /// Returns true if a command has an option, given without its dashes, and false otherwise.
  static func takes(_ option: String, in verb: String) -> Bool {
    configuration.subcommands.contains { command in
      command._commandName == verb
        && CommandDescription(command).shownArguments.contains { $0.longName == option }
    }
  }

  /// Returns the command that the arguments name, for hints and for the schema of an error
  /// document.
  private static func verbName(_ arguments: [String]) -> String? {
    guard let first = arguments.first,
      configuration.subcommands.contains(where: { $0._commandName == first })
    else { return nil }
    return first
  }
}

/// A subcommand that reports its result as an exit status.
protocol Verb {
  /// Whether the first signal cancels the reading of movies.
  ///
  /// False for a command that must finish its output file first.
  var endsReading: Bool { get }
  /// Whether the command is ended by force if it continues for too long after the first signal.
  ///
  /// False for a command that must first stop a camera.
  var endsAtOnce: Bool { get }

  func perform() throws -> ExitStatus
}

extension Verb {
  var endsReading: Bool { true }
  var endsAtOnce: Bool { endsReading }
}

/// The text of `--version`: the version of the command and the versions of the linked libraries.
enum VersionText {
  static var text: String {
    let libraries = LinkedLibraries.versions.map { "\($0.name) \($0.version)" }
    return (["slowmo \(OvercrankVersion.number)"] + libraries).joined(separator: "\n")
  }
}

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
