// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Failed writes to standard output are errors, except for writes to a closed pipe.
struct StandardOutputTests {
  private static let lines = [
    "--help", "--version", "info --help", "help retime", "devices", "devices --json",
    "modes synthetic", "modes synthetic --json", "controls synthetic --json",
    "info TAKE", "info TAKE --json", "info missing.mov --json",
    "retime TAKE -o no.mov --speed 1/2 --copy --dry-run",
    "retime TAKE -o no.mov --speed 1/2 --copy --dry-run --json", "retime TAKE -o - --speed 1/2",
    "check TAKE --times-only", "check TAKE --times-only --json", "frames TAKE --csv -",
    "frames TAKE --at 1 -o -", "frames TAKE --range 1..2 --raw gray8 -o -",
    "frames TAKE --csv no.csv --dry-run",
    "record synthetic -o no.mov --dry-run", "record synthetic -o no.mov --dry-run --json",
    "recover TAKE", "recover TAKE --json", "bench diff BENCH BENCH",
    "bench diff BENCH BENCH --json",
  ]

  @Test func `A full or closed standard output is reported as an I/O error`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    for line in Self.lines {
      let words = line.replacing("TAKE", with: "'\(take)'")
        .replacing("BENCH", with: "'\(checkout)/Tests/Fixtures/inputs/bench.json'")
      for target in ["/dev/full", "&-"] {
        let finished = try await bash("\"$1\" \(words) >\(target)", in: scratch.path)
        // An earlier error determines the exit code.
        let status: Int32 = line.contains("missing") ? 66 : 74
        #expect(finished.status == status, "\(line) >\(target): \(finished.errors)")
        #expect(finished.errors.split(separator: "\n").count == 1, "\(line): \(finished.errors)")
        #expect(finished.errors.contains("standard output"), "\(line): \(finished.errors)")
      }
    }
    #expect(try scratch.names().isEmpty)
  }

  @Test func `A closed output pipe ends each command without a message`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    for line in Self.lines where !line.contains("missing") {
      let words = line.replacing("TAKE", with: "'\(take)'")
        .replacing("BENCH", with: "'\(checkout)/Tests/Fixtures/inputs/bench.json'")
      // The pipe has no reader, right from the start.
      let finished = try await run(
        "python3",
        [
          "-c",
          """
          import os, subprocess, sys
          reader, writer = os.pipe()
          os.close(reader)
          sys.exit(subprocess.run(["bash", "-c", sys.argv[1]], stdout=writer).returncode)
          """, "'\(slowmoPath)' \(words)",
        ], in: scratch.path)
      #expect(finished.status == 0, "\(line): \(finished.errors)")
      #expect(finished.errors.isEmpty, "\(line): \(finished.errors)")
    }
  }

  @Test func `A take is kept if its report cannot be written to stdout`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      "$1" record 'synthetic:320x240@240?pace=max' -o a.mov --frames 24 --json --progress none \
        >/dev/full
      """, in: scratch.path)
    #expect(finished.status == 74 && finished.errors.contains("standard output"))
    // A new file must not get the file descriptor of a closed standard stream.
    let closed = try await bash(
      """
      "$1" record 'synthetic:320x240@240?pace=max' -o b.mov --frames 24 --progress none >&- 2>&- <&-
      """, in: scratch.path)
    #expect(closed.status == 74)
    for name in ["a.mov", "b.mov"] {
      let info = try await slowmo("info", scratch.file(name), "--json").document()
      #expect((info["video"] as? [String: Any])?["frame_count"] as? Int == 24, "\(name)")
    }
  }

  @Test(arguments: ["drops>NaN", "drops>inf", "drops>-inf", "drops>1e999", "drops>", ">0", "", "0"])
  func `The option --fail-on of bench diff requires a number`(limit: String) async throws {
    let bench = "\(checkout)/Tests/Fixtures/inputs/bench.json"
    let finished = try await slowmo("bench", "diff", bench, bench, "--fail-on", limit)
    #expect(finished.status == 64, "\(finished.errors)")
    #expect(finished.errors.contains("is not a limit"))
  }

  @Test func `Help on an unknown command is a usage error`() async throws {
    for line in [["help", "nosuch"], ["help", "bench", "nosuch"]] {
      let finished = try await run(slowmoPath, line)
      #expect(finished.status == 64 && finished.output.isEmpty, "\(line)")
      #expect(finished.errors.contains("nosuch"))
    }
    for line in [["help"], ["help", "retime"], ["help", "bench", "diff"]] {
      #expect(try await run(slowmoPath, line).status == 0, "\(line)")
    }
  }
}
