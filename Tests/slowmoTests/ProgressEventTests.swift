// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The events of `--progress json`.
///
/// The last one is `end`.
struct ProgressEventTests {
  /// The events on standard error, one per line.
  private func events(_ finished: Finished, _ line: [String]) throws -> [[String: Any]] {
    let events = try finished.errors.split(separator: "\n").map { text in
      try #require(
        (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any],
        "\(line) says: \(text)")
    }
    let names = events.compactMap { $0["event"] as? String }
    #expect(names.count == events.count)
    #expect(names.last == "end" && names.count { $0 == "end" } == 1, "\(line): \(names)")
    #expect(events.last?["status"] as? Int == Int(finished.status), "\(line)")
    return events
  }

  @Test func `JSON progress ends with one end event in success and failure`() async throws {
    let scratch = try Scratch()
    try FileManager.default.copyItem(
      atPath: try await Takes.lossy(), toPath: scratch.file("take.mov"))
    let made = try await slowmo(
      "retime", "take.mov", "-o", "front.mp4", "--speed", "1", "--copy", in: scratch.path)
    try #require(made.status == 0, "\(made.errors)")
    let front = try Data(contentsOf: URL(fileURLWithPath: scratch.file("front.mp4")))
    try front.prefix(front.count * 3 / 4).write(
      to: URL(fileURLWithPath: scratch.file("cut.mp4")))
    try Data(#"{"OTIO_SCHEMA": "Timeline.1"}"#.utf8).write(
      to: URL(fileURLWithPath: scratch.file("bad.otio")))
    let retime = ["retime", "take.mov", "--speed", "1/8"]
    let cases: [(line: [String], status: Int32)] = [
      (retime + ["-o", "a.mov", "--copy"], 0), (retime + ["-o", "a.mov", "--copy"], 73),
      (retime + ["-o", "a.otio"], 0), (retime + ["-o", "b.mov", "--copy", "--dry-run"], 0),
      (retime + ["-o", "a.mov"], 64), (retime + ["-o", "a.mkv", "--copy"], 64),
      (["retime", "missing.mov", "--speed", "1/8", "-o", "b.mov", "--copy"], 66),
      (["retime", "take.mov", "-o", "take.mov", "--speed", "1", "--copy"], 73),
      (["edit", "bad.otio", "-o", "b.mov", "--copy"], 65),
      (["edit", "a.otio", "-o", "c.mov", "--copy"], 0),
      (["frames", "take.mov", "--at", "1", "-o", "a.png"], 0),
      (["frames", "take.mov", "--csv", "a.csv"], 0),
      (["frames", "take.mov", "--at", "9", "-o", "b.png"], 64),
      (["frames", "cut.mp4", "--at", "0.1", "-o", "c.png", "--on-error", "hold"], 0),
      (["frames", "cut.mp4", "--csv", "c.csv"], 65),
      (["record", "synthetic:160x120@240?pace=max", "-o", "r.mov", "--frames", "24"], 0),
      (
        [
          "record", "synthetic:160x120@240?drop=50%&seed=7&pace=max", "-o", "d.mov", "--frames",
          "24", "--max-drops", "0",
        ], 10
      ),
      (["record", "nosuch", "-o", "e.mov"], 69), (["record", "synthetic", "-o", "e.avi"], 64),
      (
        [
          "record", "synthetic:160x120@240?pace=max", "-o", "f.mov", "--frames", "24", "--report",
          "no/where.json",
        ], 73
      ),
      (["record", "synthetic", "-o", "g.mov", "--dry-run"], 0),
    ]
    for (line, status) in cases {
      for json in [[], ["--json"]] {
        let finished = try await run(
          slowmoPath, line + ["--progress", "json"] + (json.isEmpty ? [] : json + ["-y"]),
          in: scratch.path)
        // The option -y replaces an existing output file.
        if json.isEmpty { #expect(finished.status == status, "\(line): \(finished.errors)") }
        let last = try #require(try events(finished, line).last)
        let error = last["error"] as? [String: String]
        #expect(
          (error == nil) == (finished.status == 0 || finished.status == 10), "\(line): \(last)")
        #expect(error.map { $0["message"] == last["message"] as? String } ?? true)
      }
    }
  }

  @Test func `Drop and trigger events of JSON progress have no null values`() async throws {
    let scratch = try Scratch()
    let lossy = [
      "record", "synthetic:160x120@240?drop=20%&seed=7&pace=max", "-o", "a.mov", "--frames", "48",
      "--progress=json",
    ]
    let drops = try events(try await run(slowmoPath, lossy, in: scratch.path), lossy)
      .filter { $0["event"] as? String == "drop" }
    #expect(!drops.isEmpty)
    for drop in drops {
      #expect(drop["file"] as? String == "a.mov")
      #expect((drop["message"] as? String)?.contains("lost") == true)
      #expect(!drop.contains { $0.value is NSNull }, "\(drop)")
    }
    let triggered = [
      "record", "synthetic:320x240@240?pace=max", "-o", "clap{n}.mov", "--pre", "100ms", "--post",
      "100ms", "--trigger", "audio:-6dBFS", "--repeat", "-t", "2.5", "--progress", "json",
    ]
    let reported = try events(try await run(slowmoPath, triggered, in: scratch.path), triggered)
    let triggers = reported.filter { $0["event"] as? String == "trigger" }
    #expect(!triggers.isEmpty)
    for (number, trigger) in triggers.enumerated() {
      #expect(trigger["file"] as? String == "clap\(number + 1).mov")
      for key in ["frame", "pts_ns", "fps", "speed", "drops", "bytes", "queue_fill", "message"] {
        #expect(!(trigger[key] is NSNull), "\(key) of \(trigger)")
      }
    }
    #expect(reported.contains { ($0["message"] as? String)?.contains("waiting for") == true })
  }
}
