// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import OvercrankCapture
import TestSupport
import Testing

@testable import SlowmoCommands

/// The examples in the help and the manual pages, which must run.
struct HelpTests {
  /// The names of all commands; empty for the program itself.
  private static let commands = [""] + names(below: Slowmo.self, "")

  private static func names(below command: any ParsableCommand.Type, _ path: String) -> [String] {
    command.configuration.subcommands.flatMap { verb in
      let name = path.isEmpty ? verb._commandName : "\(path) \(verb._commandName)"
      return [name] + names(below: verb, name)
    }
  }

  private static func command(_ name: String) throws -> any ParsableCommand.Type {
    try name.split(separator: " ").reduce(Slowmo.self) { command, verb in
      try #require(command.configuration.subcommands.first { $0._commandName == verb })
    }
  }

  private static func page(_ arguments: [String], width: Int) -> String {
    HelpPage(requestedBy: arguments, root: Slowmo.self, width: width).rendered
  }

  /// The three help levels of a command: brief, full and complete.
  private static func requests(_ command: String) -> [[String]] {
    let path = command.split(separator: " ").map(String.init)
    return [path + ["-h"], path + ["--help"], ["help"] + path]
  }

  @Test(arguments: commands)
  func `Help text fits the terminal width and breaks no word`(command: String) {
    for request in Self.requests(command) {
      func tokens(_ width: Int) -> [Substring] {
        let page = Self.page(request, width: width).replacing(" \\\n", with: "\n")
        return page.split(whereSeparator: \.isWhitespace)
      }
      for width in [40, 66, 80, 100] {
        #expect(tokens(width) == tokens(1_000), "\(request)")
        for line in Self.page(request, width: width).split(separator: "\n") {
          let isWord = line.split(separator: " ").count == 1
          #expect(line.count <= width || isWord, "\(request): \(line)")
        }
      }
    }
  }

  @Test(arguments: commands)
  func `The brief help of each command fits 24 lines`(command: String) throws {
    let page = Self.page(Self.requests(command)[0], width: 80)
    let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 24, "\(page)")
    #expect(page.contains("\nUSAGE: slowmo"))
    let examples = lines.filter { $0.hasPrefix("  slowmo ") }
    let hasOptions = try Self.command(command).configuration.subcommands.isEmpty
    #expect(examples.count == 2, "\(page)")
    #expect(!hasOptions || page.contains("OPTIONS:\n"))
  }

  @Test func `The help layout names only existing commands and options`() throws {
    let leaves = try Self.commands.filter {
      try Self.command($0).configuration.subcommands.isEmpty
    }
    #expect(Set(HelpLayout.mostUsed.keys) == Set(leaves))
    for command in leaves {
      let shown = CommandDescription(try Self.command(command)).shownArguments
      let options = Set(shown.compactMap(\.longName))
      let mostUsed = HelpLayout.mostUsed[command] ?? []
      #expect(mostUsed.count <= 10 && options.isSuperset(of: mostUsed), "\(command)")
      let grouped = (HelpLayout.groups[command] ?? []).flatMap(\.options)
      #expect(Set(grouped).count == grouped.count, "\(command)")
      #expect(options.isSuperset(of: grouped), "\(command)")
    }
    let verbs = Slowmo.configuration.subcommands
    let groups = HelpLayout.verbGroups(of: verbs, isRoot: true).flatMap(\.verbs)
    #expect(groups.map { $0._commandName }.sorted() == verbs.map { $0._commandName }.sorted())
  }

  @Test func `Help text has the width of COLUMNS or of the terminal`() async throws {
    func longest(_ command: String) async throws -> Int {
      let finished = try await run("script", ["-qec", command, "/dev/null"])
      #expect(finished.status == 0)
      return finished.output.split(whereSeparator: \.isNewline).map(\.count).max() ?? 0
    }
    let help = "\(slowmoPath) modes --help"
    #expect((45...60).contains(try await longest("stty cols 60; unset COLUMNS; \(help)")))
    #expect((85...100).contains(try await longest("stty cols 60; COLUMNS=100 \(help)")))
    // If standard output is a pipe, the width of the terminal on standard error counts.
    #expect((45...60).contains(try await longest("stty cols 60; unset COLUMNS; \(help) | cat")))
    let piped = try await run("env", ["-u", "COLUMNS", slowmoPath, "modes", "--help"])
    let widths = piped.output.split(separator: "\n").map(\.count)
    #expect((66...80).contains(widths.max() ?? 0))
  }

  @Test(arguments: [
    ("record --fast", "--fast", "--fastest"), ("retime x --rang 1..2 --copy", "--rang", "--range"),
    ("retime x -o y -fps 30", "-fps", "--fps"), ("check x --duration=3", "--duration", nil),
    ("frames x --at -2s --nothing", "--nothing", nil), ("still x --tile 3", "--tile", "--tiles"),
    ("--json info x", "--json", "slowmo VERB --json"), ("bench captur", "captur", "capture"),
    ("infos", "infos", "info"), ("record x -t --frame 3", "--frame", nil),
  ])
  func `An unknown command or option is reported before other errors`(
    line: String, unknown: String, hint: String?
  ) throws {
    let arguments = line.split(separator: " ").map(String.init)
    let found = UnknownName.error(in: arguments, of: Slowmo.self)
    // The value of -t can be any word, such as --frame.
    guard line != "record x -t --frame 3" else { return #expect(found == nil) }
    let error = try #require(found)
    #expect(error.message.hasSuffix(" \(unknown)"))
    if let hint {
      #expect(error.hint.contains(hint), "\(error.hint)")
    } else {
      #expect(error.hint == "see slowmo \(arguments[0]) --help")
    }
  }

  @Test func `An error of the argument parser is worded like other errors`() {
    let list = CommandError.usage(
      parserMessage: """
        The value 'vp9' is invalid for '--codec <codec>'. Please provide one of the following:
          - auto
          - copy
          - raw
        """, page: "slowmo record --help")
    #expect(list.message == "the value 'vp9' is invalid for '--codec <codec>'")
    #expect(list.hint == "choose auto, copy or raw")
    let few = CommandError.usage(
      parserMessage: "The value 'x' is invalid for '--by'. Please provide one of 'a' and 'b'.",
      page: "")
    #expect(few.hint == "choose a or b")
    let other = CommandError.usage(parserMessage: "Missing value", page: "slowmo info --help")
    #expect(other.message == "missing value" && other.hint == "see slowmo info --help")
  }

  @Test(arguments: commands)
  func `Each example in the help runs`(verb: String) async throws {
    let scratch = try Scratch()
    let text = HelpText(try Self.command(verb).configuration.discussion)
    let examples = (text.examples + text.furtherExamples)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.contains("<DEVICE>") }
    #expect(!examples.isEmpty)
    // The take that most examples read.
    let take = try await Takes.short()
    try FileManager.default.createSymbolicLink(
      atPath: scratch.file("slowmo"), withDestinationPath: slowmoPath)
    if !["", "record"].contains(verb) {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.file("take.mov"), withDestinationPath: take)
    }
    if ["compare", "sync"].contains(verb) {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.file("second.mov"), withDestinationPath: take)
    }
    if verb == "recover" {
      let front = scratch.file("front.mp4")
      let made = try await slowmo(
        "retime", take, "-o", front, "--speed", "1", "--copy", "--pitch", "mute")
      #expect(made.status == 0, "\(made.errors)")
      let movie = try bytes(of: front)
      _ = try scratch.write(Array(movie.prefix(movie.count / 2)), as: "half-copied.mp4")
    }
    if ["", "play"].contains(verb) {
      _ = try scratch.write(Array("0.1 space\n0.2 .\n".utf8), as: "keys.txt")
      _ = try scratch.write(Array("0.1 i\n0.2 o\n0.2 8\n0.2 w\n".utf8), as: "edits.txt")
    }
    if verb == "record" {
      let speed = #"{"key": "com.example.speed", "value": 41.5, "frame": 1}"#
      _ = try scratch.write(Array("\(speed)\n".utf8), as: "speeds.json")
    }
    if verb == "bench diff" {
      for name in ["old.json", "new.json"] {
        try FileManager.default.copyItem(
          atPath: "\(checkout)/Tests/Fixtures/inputs/bench.json", toPath: scratch.file(name))
      }
    }
    if verb == "scan" {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.file("heads.svm"), withDestinationPath: FaceImages.model)
    }
    if verb == "edit" {
      let made = try await slowmo(
        "retime", take, "-o", scratch.file("project.otio"), "--preset", "impact", "--at", "1")
      #expect(made.status == 0, "\(made.errors)")
    }
    if ["edit", "retime"].contains(verb) {
      // Examples of batches read all movies of a directory.
      let name = verb == "edit" ? "project.otio" : "take.mov"
      try FileManager.default.createDirectory(
        atPath: scratch.file("a"), withIntermediateDirectories: false)
      for copy in ["1", "2"] {
        try FileManager.default.createSymbolicLink(
          atPath: scratch.file("a/\(copy)_\(name)"), withDestinationPath: "../\(name)")
      }
    }
    for example in examples {
      // Examples may use the same output file, which must not exist when an example starts.
      if verb == "record" || verb == "retime" {
        for name in ["take.mov", "slow.mov"] where verb == "record" || name != "take.mov" {
          try? FileManager.default.removeItem(atPath: scratch.file(name))
        }
      }
      // On a busy machine a start may take seconds, so this waits for the first output and not for
      // a fixed time.
      let timeout = """
        PATH=.:$PATH
        timeout() {
          while [ "$1" != slowmo ]; do shift; done
          "$@" >said &
          await '[ -s said ]' $!
          kill -INT $!
          wait $!
        }

        """
      // Examples with a window use SDL's dummy video driver, and a key script closes the window.
      let window = """
        slowmo() {
          case "$*" in
            play*--terminal* | play*--script*) command slowmo "$@" ;;
            play*) SDL_VIDEODRIVER=dummy command slowmo "$@" --window --script keys.txt ;;
            preview*--terminal*) script -qec "slowmo $*" /dev/null ;;
            preview* | record*--preview*) SDL_VIDEODRIVER=dummy command slowmo "$@" ;;
            *) command slowmo "$@" ;;
          esac
        }

        """
      let functions = timeout + (["", "play", "preview", "record"].contains(verb) ? window : "")
      let finished = try await bash(functions + example, in: scratch.path)
      // On a busy machine, a camera in real time may lose more frames than the example tolerates.
      let isTooLossy = example.contains("--max-drops") && finished.status == 10
      #expect(finished.status == 0 || isTooLossy, "\(example): \(finished.errors)")
    }
  }

  @Test func `The option --version lists the linked libraries`() async throws {
    let version = try await slowmo("--version")
    #expect(version.status == 0)
    for name in ["slowmo ", "libavformat 59.", "libavcodec ", "librubberband 3."] {
      #expect(version.output.contains(name), "\(version.output)")
    }
  }
}
