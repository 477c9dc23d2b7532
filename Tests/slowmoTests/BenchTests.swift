// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Benchmark reports and their comparison.
struct BenchTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A report in the form that `bench capture --json` prints, shortened.
  private func report(
    _ name: String, drops: Int = 0, p99: Int = 1_000, mode: String = "640x480@240/mjpg",
    kind: String? = "synthetic", benchmark: String? = "capture"
  ) throws -> String {
    var report: [String: Any] = [
      "schema": "slowmo.bench/1", "mode": mode, "drops": drops, "limit_fps": NSNull(),
      "latency": ["p50_ns": 10, "p99_ns": p99, "max_ns": p99], "kernel": "Linux 6.1",
      "ledger": ["expected": 100, "stored": 100 - drops], "deep": ["a": ["b": 1.5, "p50_ns": 7]],
      "measured_fps": "240/1", "measured_fps_value": 240,
    ]
    report["device_kind"] = kind
    report["benchmark"] = benchmark
    let data = try JSONSerialization.data(withJSONObject: report)
    return try scratch.write(Array(data), as: name)
  }

  @Test func `A benchmark report names its machine and versions and date`() async throws {
    let uname = try await run("uname", ["-srm"]).output
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let began = Date.now.addingTimeInterval(-1)
    let finished = try await slowmo(
      "bench", "capture", "synthetic:128x96@60?pace=max", "-t", "0.1", "--json")
    let report = try finished.document()
    #expect(report["kernel"] as? String == uname)
    let cpuinfo = try String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
    let model = cpuinfo.split(separator: "\n").first { $0.hasPrefix("model name") }
    let name = model?.split(separator: ":").last?.split(separator: " ").joined(separator: " ")
    #expect(report["processor"] as? String == name)
    let count = try await run("getconf", ["_NPROCESSORS_ONLN"]).output
    #expect(report["processor_count"] as? Int == Int(count.split(separator: "\n")[0]))
    #expect(report["benchmark"] as? String == "capture")
    #expect(report["device_kind"] as? String == "synthetic")
    let date = try #require(report["date"] as? String)
    let made = try #require(ISO8601DateFormatter().date(from: date))
    #expect(date.hasSuffix("Z") && made >= began && made <= .now)
    // Each version is printed as by `--version`.
    let versions = try await slowmo("--version").output.split(separator: "\n").map(String.init)
    let libraries = try #require(report["libraries"] as? [String: String])
    let reported = ["slowmo \(report["version"] ?? "")"] + libraries.map { "\($0.key) \($0.value)" }
    #expect(reported.sorted() == versions.sorted())
    #expect(libraries.count >= 5)
    let text = try await slowmo("bench", "capture", "synthetic:128x96@60?pace=max", "-t", "0.1")
    for words in [uname, name ?? "unknown", versions[0]] + libraries.keys {
      #expect(text.output.contains(words), "\(text.output)")
    }
  }

  @Test func `The option --fail-on of bench diff tests a number by its key`() async throws {
    let (old, new) = (try report("old.json"), try report("new.json", drops: 2, p99: 2_000_000))
    for (limit, status) in [
      ("drops>0", 10), ("drops>2", 0), ("latency.p99_ns>1e6", 10), ("p99_ns > 1e6", 10),
      ("p99_ns>2e6", 0), ("ledger.stored<100", 10), ("stored=98", 10), ("deep.a.b!=1.5", 0),
      ("b>=1.5", 10), ("measured_fps_value<240", 0),
    ] as [(String, Int32)] {
      let finished = try await slowmo("bench", "diff", old, new, "--fail-on", limit)
      #expect(finished.status == status, "\(limit): \(finished.errors)")
    }
    for (limit, words) in [
      (
        "nosuch>0",
        "has no number nosuch; choose one of deep.a.b, deep.a.p50_ns, drops, latency.max_ns"
      ),
      ("p50_ns>0", "has several numbers p50_ns; choose one of deep.a.p50_ns, latency.p50_ns"),
      ("latency>0", "has no number latency"), ("limit_fps>0", "has no number limit_fps"),
      ("measured_fps>0", "has no number measured_fps"), ("9_ns>0", "has no number 9_ns"),
      ("drops>NaN", "not a limit"), ("drops<inf", "not a limit"), ("drops<1e999", "not a limit"),
      ("drops>-nan", "not a limit"), ("drops>infinity", "not a limit"), ("drops>", "not a limit"),
    ] {
      let finished = try await slowmo("bench", "diff", old, new, "--fail-on", limit)
      #expect(finished.status == 64, "\(limit)")
      #expect(finished.errors.contains(words), "\(finished.errors)")
      #expect(finished.output.isEmpty)
    }
    let changes = try await slowmo("bench", "diff", old, new, "--json").document()["changes"]
    let keys = try #require(changes as? [[String: Any]]).map { $0["key"] as? String ?? "" }
    #expect(
      keys == [
        "deep.a.b", "deep.a.p50_ns", "drops", "latency.max_ns", "latency.p50_ns", "latency.p99_ns",
        "ledger.expected", "ledger.stored", "measured_fps_value",
      ])
  }

  @Test func `Bench diff reads reports from files and pipes`() async throws {
    let (old, new) = (try report("old.json"), try report("new.json", drops: 1))
    let whole = try await slowmo("bench", "diff", old, new, "--json")
    #expect(whole.status == 0)
    for script in [
      "\"$1\" bench diff <(cat \"$2\") <(cat \"$3\") --json",
      "cat \"$2\" | \"$1\" bench diff - \"$3\" --json",
      "\"$1\" bench diff \"$2\" - --json <\"$3\"",
      "mkfifo pipe; cat \"$3\" >pipe & \"$1\" bench diff \"$2\" pipe --json",
      // The pipe's writer writes byte by byte.
      "\"$1\" bench diff \"$2\" <(while IFS= read -rN1 c; do printf %s \"$c\"; done <\"$3\") --json",
    ] {
      let finished = try await bash(script, old, new, in: scratch.path)
      #expect(finished.output == whole.output, "\(script): \(finished.errors)")
    }
    let twice = try await slowmo("bench", "diff", "-", "-")
    #expect(twice.status == 64)
    let missing = try await slowmo("bench", "diff", old, scratch.file("missing.json"))
    #expect(missing.status == 66)
    // Reports of a failed measurement or of a comparison have no numbers to compare.
    _ = try scratch.write(
      Array(#"{"schema":"slowmo.bench/1","error":{"code":"device_busy"}}"#.utf8), as: "failed.json")
    _ = try scratch.write(Array(whole.output.utf8), as: "diff.json")
    for script in [
      "\"$1\" bench diff \"$2\" failed.json", "\"$1\" bench diff diff.json \"$2\"",
      "\"$1\" bench diff \"$2\" - </dev/null", "\"$1\" bench diff \"$2\" <(head -c 40 \"$2\")",
    ] {
      let finished = try await bash(script, old, in: scratch.path)
      #expect(finished.status == 65, "\(finished.errors)")
    }
    // Nothing is written into the pipe, and the first signal ends the wait.
    let waiting = try await bash(
      """
      mkfifo silent
      "$1" bench diff "$2" silent &
      command=$!
      exec 3>silent
      kill -TERM $command
      wait $command
      """, old, in: scratch.path)
    #expect(waiting.status == 143, "\(waiting.errors)")
  }

  @Test func `Bench diff rejects reports of different modes or devices`() async throws {
    let old = try report("old.json")
    for (other, words) in [
      (try report("size.json", mode: "320x240@240/mjpg"), "320x240@240/mjpg"),
      (try report("rate.json", mode: "640x480@120/mjpg"), "640x480@120/mjpg"),
      (try report("format.json", mode: "640x480@240/grey"), "640x480@240/grey"),
      (try report("kind.json", kind: "v4l2"), "v4l2"),
      (try report("benchmark.json", benchmark: "writer"), "writer"),
    ] {
      let finished = try await slowmo("bench", "diff", old, other, "--fail-on", "drops>0", "--json")
      #expect(finished.status == 65)
      let error = try finished.document()["error"] as? [String: String]
      #expect(error?["code"] == "not_comparable")
      #expect(error?["message"]?.contains(words) == true, "\(error ?? [:])")
    }
    // Reports of earlier versions have no keys `device_kind` and `benchmark`. They can be compared
    // with any report.
    let earlier = try report("earlier.json", kind: nil, benchmark: nil)
    #expect(try await slowmo("bench", "diff", earlier, old).status == 0)
    #expect(try await slowmo("bench", "diff", old, earlier).status == 0)
  }
}
