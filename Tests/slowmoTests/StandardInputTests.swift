// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Commands with a closed or silent standard input, for which they must not wait.
struct StandardInputTests {
  private static let lines = [
    "--help", "devices", "modes synthetic", "controls synthetic", "info TAKE",
    "retime TAKE -o a.mov --speed 1/2 --copy --pitch mute",
    "retime TAKE -o a.mov --speed 1/2 --copy --pitch mute -y", "retime TAKE -o a.otio --speed 1/2",
    "edit a.otio -o b.mov --copy --pitch mute", "frames TAKE --at 1 -o f.png", "recover TAKE",
    "record 'synthetic:160x120@60?pace=max' -o c.mov -t 0.1",
    "record 'synthetic:160x120@60?pace=max' -o k.mov -t 0.1 --trigger key",
    "bench capture 'synthetic:160x120@60?pace=max' -t 0.1", "bench diff BENCH BENCH",
    "doctor --directory /dev/shm", "record nosuch -o a.mov", "nonsense",
  ]

  @Test func `Each command ends even if standard input is closed or silent`() async throws {
    let take = try await Takes.plain()
    for input in ["<&-", "<pipe"] {
      let scratch = try Scratch()
      for line in Self.lines {
        let words = line.replacing("TAKE", with: "'\(take)'")
          .replacing("BENCH", with: "'\(checkout)/Tests/Fixtures/inputs/bench.json'")
        // The shell holds the other end of the pipe open, and writes nothing.
        let finished = try await bash(
          """
          [ -p pipe ] || mkfifo pipe
          exec 3<>pipe
          "$1" \(words) \(input)
          """, in: scratch.path)
        let expected: Set<Int32> =
          switch line {
          case "nonsense": [64]
          case "record nosuch -o a.mov": [69]
          case let line where line.contains("--trigger"): [75]
          case let line where line.hasPrefix("doctor"): [0, 10]
          default: [0]
          }
        #expect(expected.contains(finished.status), "\(line) \(input): \(finished.errors)")
      }
    }
  }
}
