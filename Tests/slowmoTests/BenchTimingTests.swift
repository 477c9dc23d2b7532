// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Benchmarks that time whole commands: their reported counts and their temporary files.
struct BenchTimingTests {
  private let scratch: Scratch
  private let directory: String

  init() throws {
    scratch = try Scratch()
    directory = scratch.file("directory")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
  }

  /// Runs a benchmark with a clip of 30 frames, and with temporary files in ``directory``.
  private func bench(_ arguments: String...) async throws -> [String: Any] {
    let finished = try await run(
      slowmoPath, ["bench"] + arguments + ["--folder", directory, "--json"], in: scratch.path)
    #expect(finished.status == 0, "\(finished.output)\(finished.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    return try finished.document()
  }

  /// Expects that the minimum, median and maximum of the measured times are above zero and in
  /// ascending order.
  private func expectTimes(_ report: [String: Any]) throws {
    for key in ["wall", "cpu"] {
      let spread = try #require(report[key] as? [String: Int])
      let (low, middle, high) = (spread["min_ns"], spread["median_ns"], spread["max_ns"])
      let times = try [low, middle, high].map { try #require($0) }
      #expect(times == times.sorted() && times[0] > 0, "\(key): \(times)")
    }
  }

  @Test func `The writer benchmark and its ffmpeg baseline keep all frames`() async throws {
    let report = try await bench(
      "writer", "--mode", "320x240@60/mjpg", "-t", "0.5", "--runs", "2", "--baseline", "ffmpeg")
    #expect(report["benchmark"] as? String == "writer")
    #expect(report["mode"] as? String == "320x240@60/mjpeg, 0.5 s")
    #expect(report["frames"] as? Int == 30)
    #expect(report["drops"] as? Int == 0)
    #expect(report["runs"] as? Int == 2)
    #expect(try #require(report["bytes"] as? Int) > 30 * 1_000)
    try expectTimes(report)
    let baseline = try #require(report["baseline"] as? [String: Any])
    #expect(baseline["frames"] as? Int == 30)
    try expectTimes(baseline)
    let version = try await run("ffmpeg", ["-version"]).output.split(separator: " ")[2]
    #expect(baseline["version"] as? String == String(version))
    for (ratio, key) in [("wall_ratio", "wall"), ("cpu_ratio", "cpu")] {
      let own = try #require((report[key] as? [String: Int])?["median_ns"])
      let other = try #require((baseline[key] as? [String: Int])?["median_ns"])
      // JSON rounds the last digit.
      let reported = try #require(baseline[ratio] as? Double)
      #expect(abs(reported - Double(own) / Double(other)) < 1e-9)
    }
  }

  @Test(arguments: [("copied", [], 30), ("@25", ["--fps", "25"], 100)])
  func `The retime benchmark reports how many frames it exported`(
    kind: String, options: [String], frames: Int
  ) async throws {
    let clip = scratch.file("clip.mov")
    _ = try await slowmo("record", "synthetic:320x240@60?pace=max", "-t", "0.5", "-o", clip)
    let line = [
      "bench", "retime", clip, "--runs", "1", "--folder", directory, "--json", "--baseline",
      "ffmpeg",
    ]
    let finished = try await run(slowmoPath, line + options)
    let report = try finished.document()
    #expect(report["mode"] as? String == "320x240@60/mjpeg, 0.5 s, speed 1/8, \(kind)")
    #expect(report["frames"] as? Int == frames)
    #expect((report["baseline"] as? [String: Any])?["frames"] as? Int == frames)
    #expect(report["samples"] as? Int == 192_000)
    #expect(report["drops"] is NSNull)
  }

  @Test func `The pitch benchmark reports the number of stretched samples`() async throws {
    for algorithm in ["spectral", "time-domain", "varispeed", "low-quality"] {
      let report = try await bench(
        "pitch", "-t", "0.2", "--speed", "1/2", "--runs", "1", "--pitch", algorithm, "--baseline",
        "ffmpeg")
      #expect(report["samples"] as? Int == 19_200)
      let baseline = try #require(report["baseline"] as? [String: Any])
      #expect(baseline["frames"] is NSNull)
      try expectTimes(baseline)
    }
  }

  @Test func `Bench diff compares reports and applies --fail-on limits`() async throws {
    let report = try await bench("retime", "-t", "0.1", "--runs", "1")
    let data = try JSONSerialization.data(withJSONObject: report)
    let path = try scratch.write(Array(data), as: "report.json")
    for (limit, status) in [("frames<24", 0), ("frames=24", 10), ("wall.median_ns>0", 10)] {
      let finished = try await slowmo("bench", "diff", path, path, "--fail-on", limit)
      #expect(finished.status == Int32(status), "\(limit): \(finished.errors)")
    }
    let other = try await bench("retime", "-t", "0.1", "--runs", "1", "--speed", "1/4")
    let otherData = try JSONSerialization.data(withJSONObject: other)
    let otherPath = try scratch.write(Array(otherData), as: "other.json")
    #expect(try await slowmo("bench", "diff", path, otherPath).status == 65)
  }

  @Test func `A failed benchmark reports its error code and leaves no file`() async throws {
    let silent = scratch.file("silent.mov")
    _ = try await run(
      "ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "testsrc=d=0.2", "-c:v", "mjpeg", silent])
    for (line, status, code) in [
      ("retime missing.mov", 66, "file_not_found"), ("retime /dev/null", 65, "invalid_data"),
      ("retime silent.mov -t 1", 64, "usage"), ("pitch silent.mov", 65, "unsupported_source"),
      ("writer --folder nowhere", 73, "cannot_create"),
      ("writer --mode 1x1", 64, "no_matching_format"),
    ] {
      let chosen = line.contains("--folder") ? [] : ["--folder", directory]
      let words = ["bench"] + line.split(separator: " ").map(String.init) + chosen
      let finished = try await run(slowmoPath, words + ["--json"], in: scratch.path)
      #expect(finished.status == Int32(status), "\(line): \(finished.output)")
      let error = try finished.document()["error"] as? [String: String]
      #expect(error?["code"] == code, "\(line): \(finished.output)")
      #expect(error?["message"]?.contains("slowmo-bench") == false)
    }
    // The command runs without ffmpeg in PATH.
    let finished = try await bash(
      "PATH=/nowhere \"$1\" bench retime -t 0.1 --runs 1 --baseline ffmpeg --folder directory",
      in: scratch.path)
    #expect(finished.status == 69)
    #expect(finished.errors.contains("omit --baseline"), "\(finished.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
  }

  @Test func `SIGTERM ends a benchmark and removes its temporary files`() async throws {
    let finished = try await bash(
      """
      "$1" bench writer --mode 128x96@60/mjpg -t 10 --runs 100 --folder directory &
      bench=$!
      until compgen -G 'directory/*/slowmo*' >/dev/null || ! kill -0 $bench; do sleep 0.02; done
      kill -TERM $bench
      wait $bench
      """, in: scratch.path)
    #expect(finished.status == 143, "\(finished.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
  }
}
