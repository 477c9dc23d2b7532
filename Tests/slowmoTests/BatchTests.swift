// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// One command that exports several files, also after failures and interruptions.
struct BatchTests {
  private let scratch: Scratch

  init() async throws {
    scratch = try Scratch()
    let take = try await Takes.plain()
    for name in ["a.mov", "b.mov"] {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.file(name), withDestinationPath: take)
    }
  }

  /// The JSON results of the exported files, by source name.
  private func files(_ document: [String: Any]) throws -> [String: [String: Any]] {
    let files = try #require(document["files"] as? [[String: Any]])
    return Dictionary(uniqueKeysWithValues: files.map { ($0["source"] as? String ?? "", $0) })
  }

  private func retime(_ arguments: String) async throws -> Finished {
    try await bash(
      "exec \"$1\" retime \(arguments) --copy --pitch mute --json --progress none",
      in: scratch.path)
  }

  @Test func `A batch continues after a failure and skips finished files`() async throws {
    _ = try scratch.write(Array("no movie".utf8), as: "bad.mov")
    let line = "a.mov bad.mov b.mov gone.mov -o 'o_{n:03}_{name}.mov' --speed 1/2 --jobs 2"
    let first = try await retime(line)
    // Invalid data is more serious than a missing file, so it determines the exit code.
    #expect(first.status == 65, "\(first.errors)")
    let document = try first.document()
    #expect(document["made"] as? Int == 2 && document["failed"] as? Int == 2)
    let known = try files(document)
    #expect(known["a.mov"]?["status"] as? String == "made")
    #expect(known["a.mov"]?["frames"] as? Int == 960)
    #expect((known["bad.mov"]?["error"] as? [String: Any])?["code"] as? String == "invalid_data")
    #expect(known["bad.mov"]?["exit_code"] as? Int == 65)
    #expect(known["gone.mov"]?["exit_code"] as? Int == 66)
    let outputs = ["o_001_a.mov", "o_003_b.mov"]
    #expect(try scratch.names() == ["a.mov", "b.mov", "bad.mov"] + outputs)
    #expect(try paintedNumbers(Asset(path: scratch.file(outputs[1]))).count == 960)
    let before = try outputs.map { try bytes(of: scratch.file($0)) }
    let second = try files(try await retime(line).document())
    #expect(second["a.mov"]?["status"] as? String == "kept")
    #expect(second["b.mov"]?["status"] as? String == "kept")
    #expect(try outputs.map { try bytes(of: scratch.file($0)) } == before)
    let misfit = try await DocumentTests().misfit(first.output, verb: "retime", scratch)
    #expect(misfit == nil)
  }

  @Test func `A batch replaces an outdated output only with --overwrite`() async throws {
    #expect(try await retime("a.mov -o '{name}_slow.mov' --speed 1/2").status == 0)
    let refused = try await retime("a.mov -o '{name}_slow.mov' --speed 1/4")
    #expect(refused.status == 73)
    let error = try files(refused.document())["a.mov"]?["error"] as? [String: Any]
    #expect(error?["code"] as? String == "output_exists")
    let replaced = try await retime("a.mov -o '{name}_slow.mov' --speed 1/4 -y")
    #expect(replaced.status == 0)
    let file = try files(replaced.document())["a.mov"]
    #expect(file?["status"] as? String == "made" && file?["earlier"] as? String == "outdated")
    let output = try Asset(path: scratch.file("a_slow.mov"))
    #expect(output.duration.wholeNanoseconds == 16_000_000_000)
    // A finished output can be the source of another batch.
    let again = try await retime("a_slow.mov -o '{name}_2.mov' --speed 1/2")
    #expect(again.status == 0)
    #expect(try Asset(path: scratch.file("a_slow_2.mov")).exportDigest != output.exportDigest)
  }

  @Test func `A dry run of a batch lists its files and writes none`() async throws {
    let planned = try await retime("a.mov b.mov -o '{name}_slow.mov' --speed 1/2 --dry-run")
    let document = try planned.document()
    #expect(planned.status == 0 && document["dry_run"] as? Bool == true)
    #expect(document["remaining"] as? Int == 2)
    #expect(try files(document)["b.mov"]?["frames"] as? Int == 960)
    #expect(try scratch.names() == ["a.mov", "b.mov"])
  }

  @Test(arguments: [
    ("a.mov b.mov -o out.mov", 64), ("a.mov ./a.mov -o '{name}_s.mov'", 64),
    ("a.mov b.mov -o '{name}.otio'", 64), ("a.mov b.mov -o '{what}.mov'", 64),
    ("a.mov b.mov -o '{name}_s.mov' --jobs 33", 64), ("a.mov b.mov -o 'missing/{name}.mov'", 73),
    ("a.mov b.mov -o '{name}.mov'", 73),
  ])
  func `Invalid output patterns are rejected before any export`(line: String, status: Int32)
    async throws
  {
    let finished = try await retime("\(line) --speed 1/2")
    #expect(finished.status == status, "\(finished.output)")
    #expect(try scratch.names() == ["a.mov", "b.mov"])
  }

  /// A slow export, so that a signal arrives while it runs.
  private static let slow = """
    retime a.mov b.mov -o 'out/{name}.mp4' --speed 1/8 --fps 240 --encoder-preset placebo
    """

  @Test func `A repeated batch removes temporary files of a killed batch`() async throws {
    let script = """
      mkdir out
      "$1" \(Self.slow) --progress none &
      await 'ls out/.*.part.* >/dev/null 2>&1' $!
      kill -KILL $!
      wait $!
      ls -A out >left
      exec "$1" retime a.mov b.mov -o 'out/{name}.mp4' --speed 1/2 --copy --json --progress none
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(
      try String(contentsOfFile: scratch.file("left"), encoding: .utf8).hasSuffix("part.a.mp4\n"))
    let known = try files(try finished.document())
    #expect(known["a.mov"]?["earlier"] as? String == "unfinished")
    #expect(known["b.mov"]?["earlier"] is NSNull)
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.file("out"))
    #expect(names.sorted() == ["a.mp4", "b.mp4"])
  }

  @Test func `Ctrl-C ends a batch without partial files`() async throws {
    let script = """
      mkdir out
      "$1" \(Self.slow) --progress json --json 2>events &
      await 'ls out/.*.part.* >/dev/null 2>&1' $!
      kill -INT $!
      wait $!
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.status == 130)
    let known = try files(try finished.document())
    #expect(known["a.mov"]?["status"] as? String == "interrupted")
    #expect(known["b.mov"]?["status"] as? String == "not_started")
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.file("out")) == [])
    let lines = try String(contentsOfFile: scratch.file("events"), encoding: .utf8)
      .split(separator: "\n")
    let events = try lines.map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
    #expect(events.first?["event"] as? String == "start")
    #expect(events.first?["files_total"] as? Int == 2)
    let file = events.first { $0["event"] as? String == "file" }
    #expect(file?["status"] as? String == "interrupted" && file?["source"] as? String == "a.mov")
    #expect(events.last?["event"] as? String == "end" && events.last?["status"] as? Int == 130)
  }
}
