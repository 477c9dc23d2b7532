// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import TestSupport
import Testing

/// The examples in the help, which must run.
struct HelpTests {
  private static let verbs = [
    "devices", "modes", "controls", "record", "photo", "info", "check", "retime", "edit", "frames",
    "still", "compare", "sync", "track", "measure", "recover", "play", "preview", "scan", "bench",
    "doctor",
  ]

  @Test(arguments: [""] + verbs)
  func `Each example in the help runs`(verb: String) async throws {
    let scratch = try Scratch()
    let arguments = verb.isEmpty ? ["--help"] : [verb, "--help"]
    let help = try await run(slowmoPath, arguments)
    #expect(help.status == 0)
    #expect(help.errors.isEmpty)
    let lines = help.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    let examples = lines.filter {
      ["slowmo ", "timeout "].contains(where: $0.hasPrefix) && !$0.contains("<")
    }
    #expect(!examples.isEmpty)
    // The take that most examples read.
    let take = try await Takes.plain()
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
      // Batches take all files of a directory.
      let name = verb == "edit" ? "project.otio" : "take.mov"
      try FileManager.default.createDirectory(
        atPath: scratch.file("a"), withIntermediateDirectories: false)
      for copy in ["1", "2"] {
        try FileManager.default.createSymbolicLink(
          atPath: scratch.file("a/\(copy)_\(name)"), withDestinationPath: "../\(name)")
      }
    }
    for example in examples {
      // Examples may share an output, which each must find missing.
      if verb == "record" || verb == "retime" {
        for name in ["take.mov", "slow.mov"] where verb == "record" || name != "take.mov" {
          try? FileManager.default.removeItem(atPath: scratch.file(name))
        }
      }
      // On a busy machine a start may take seconds, so this waits for the first output instead.
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
      // Windows use SDL's dummy driver, and end with the keys of a script.
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
      // On a busy machine a camera in real time may lose more frames than the example allows.
      let isTooLossy = example.contains("--max-drops") && finished.status == 10
      #expect(finished.status == 0 || isTooLossy, "\(example): \(finished.errors)")
    }
  }

  @Test func `The version lists the linked libraries`() async throws {
    let version = try await slowmo("--version")
    #expect(version.status == 0)
    for name in ["slowmo ", "libavformat 59.", "libavcodec ", "librubberband 3."] {
      #expect(version.output.contains(name), "\(version.output)")
    }
  }
}
