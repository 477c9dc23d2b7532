// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankSimulatedCameras
import TestSupport
import Testing

/// Speed ranges and marks that keys set, and the file that the key `w` writes.
struct PlayEditTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The keys slow down the second from 1 to 2 to 1/8, set a mark at its start, and write the file.
  private static let keys = """
    0 space
    0.05 home
    0.1 right
    0.15 i
    0.15 m
    0.2 right
    0.25 o
    0.3 8
    0.35 w
    """

  private func play(_ keys: String, _ arguments: String...) async throws -> Finished {
    try await play(keys, arguments)
  }

  private func play(_ keys: String, _ arguments: [String]) async throws -> Finished {
    _ = try scratch.write(Array(keys.utf8), as: "keys.txt")
    return try await run(
      slowmoPath,
      ["play", try await Takes.plain(), "--script", "keys.txt", "--audio", "none", "--json"]
        + arguments, in: scratch.path)
  }

  private func document(_ arguments: String...) async throws -> [String: Any] {
    let finished = try await run(slowmoPath, arguments + ["--json"], in: scratch.path)
    try #require(finished.status == 0, "\(arguments): \(finished.errors)")
    return try finished.document()
  }

  private func speeds(_ document: [String: Any]) -> [String] {
    (document["plan"] as? [[String: Any]] ?? []).compactMap { $0["speed"] as? String }
  }

  private func marks(_ document: [String: Any]) throws -> [String] {
    try #require(document["marks"] as? [[String: Any]]).map { mark in
      "\(mark["name"] ?? "") \(mark["at_ns"] ?? "") \(mark["frame_index"] ?? "")"
    }
  }

  private static let annotations = """
    {"schema": "slowmo.annotations/1", "file": "take.mov", "annotations": [
    {"kind": "point", "frame_index": 1, "capture_ns": null, "points": [{"x": 1, "y": 2}]},
    {"kind": "distance", "frame_index": 48, "capture_ns": 7,
     "points": [{"x": 10, "y": 20}, {"x": 13, "y": 24}]},
    {"kind": "box", "frame_index": 48, "capture_ns": null,
     "points": [{"x": 176.2, "y": 103}, {"x": 207.5, "y": 135}]}]}
    """

  @Test func `The commands measure and track read annotations of play`() async throws {
    _ = try scratch.write(Array(Self.annotations.utf8), as: "marks.json")
    let take = try await Takes.plain()
    let played = try await play("0 e\n", "--annotations", "marks.json")
    try #require(played.status == 0, "\(played.errors)")
    // The file was read, and replaced as a whole.
    let written = try String(contentsOfFile: scratch.file("marks.json"), encoding: .utf8)
    #expect(written != Self.annotations && written.contains("\"frame_index\" : 48"))
    #expect(try await DocumentTests().misfit(written, verb: "annotations", scratch) == nil)
    let measured = try await document("measure", take, "--annotations", "marks.json")
    let found = try #require(measured["measurements"] as? [[String: Any]])
    #expect(found.count == 1)
    #expect(found[0]["index"] as? Int == 48 && found[0]["pixels"] as? Double == 5)
    let tracked = try await run(
      slowmoPath, ["track", take, "--annotations", "marks.json", "--until", "0.25", "--json"],
      in: scratch.path)
    let objects = try #require(try tracked.document()["objects"] as? [[String: Any]])
    #expect(objects.count == 1)
    // Another schema is refused, and so is a file without a box.
    for text in [Self.annotations.replacingOccurrences(of: "annotations/1", with: "other/1"), "{}"]
    {
      _ = try scratch.write(Array(text.utf8), as: "marks.json")
      for arguments in [
        ["measure", take, "--annotations", "marks.json"],
        ["track", take, "--annotations", "marks.json"],
        ["play", take, "--annotations", "marks.json", "--terminal", "--audio", "none"],
      ] {
        let refused = try await run(slowmoPath, arguments, in: scratch.path)
        #expect(refused.status == 65, "\(arguments): \(refused.errors)")
      }
    }
  }

  @Test func `Undo and redo go through marks and ranges and speeds`() async throws {
    let finished = try await play(
      Self.keys.replacingOccurrences(of: "0.35 w", with: ""), "-o", "unused.otio")
    #expect(try speeds(finished.document()) == ["1/1", "1/8", "1/1"])
    func after(_ keys: String...) async throws -> [String: Any] {
      let lines = keys.map { "0.35 \($0)" }.joined(separator: "\n")
      let finished = try await play(Self.keys.replacingOccurrences(of: "0.35 w", with: lines))
      try #require(finished.status == 0, "\(finished.errors)")
      return try finished.document()
    }
    let undone = try await after("ctrl+z")
    #expect(try speeds(undone) == ["1/1"] && marks(undone).count == 1)
    // The range and the mark go too. A further undo has no effect.
    let empty = try await after("ctrl+z", "ctrl+z", "ctrl+z", "ctrl+z", "ctrl+z")
    #expect(try speeds(empty) == ["1/1"] && marks(empty).isEmpty)
    let redone = try await after("ctrl+z", "ctrl+z", "ctrl+y", "ctrl+y", "ctrl+y")
    #expect(speeds(redone) == ["1/1", "1/8", "1/1"])
    // An edit after undo ends what could be redone.
    let changed = try await after("ctrl+z", "4", "ctrl+y")
    #expect(speeds(changed) == ["1/1", "1/4", "1/1"])
  }

  @Test(arguments: [["edited.otio"], ["edited.mov"], ["edited.mp4", "--fps", "30"]])
  func `A slow range and a mark set by player keys are exported`(_ output: [String]) async throws {
    let finished = try await play(
      Self.keys, ["--progress", "none", "-o"] + output)
    try #require(finished.status == 0, "\(finished.errors)")
    let played = try finished.document()
    #expect(try marks(played) == ["mark1 1000000000 240"])
    #expect(speeds(played) == ["1/1", "1/8", "1/1"])
    #expect(played["duration_ns"] as? Int == 11_000_000_000)
    #expect(played["written"] as? Bool == true && played["output"] as? String == output[0])
    var movie = output[0]
    if movie == "edited.otio" {
      let project = try String(contentsOfFile: scratch.file(movie), encoding: .utf8)
      #expect(project.contains("captured at"))
      let edited = try await document("edit", movie, "-o", "edited-again.mov", "--copy")
      #expect(speeds(edited) == ["1/1", "1/8", "1/1"])
      movie = "edited-again.mov"
    }
    let info = try await document("info", movie)
    #expect(info["duration_ns"] as? Int == 11_000_000_000)
    // The second before the mark is unchanged. It has 240 frames, or 30 after an export at 30 fps.
    let frame = output.count > 1 ? 30 : 240
    #expect(try marks(info) == ["mark1 1000000000 \(frame)"])
  }

  @Test func `Time options accept marks and marks move with their frames`() async throws {
    let made = try await play(Self.keys, "-o", "marked.mov", "--progress", "none")
    try #require(made.status == 0, "\(made.errors)")
    let frame = try await document("frames", "marked.mov", "--at", "@mark1", "-o", "mark.png")
    let frames = try #require(frame["frames"] as? [[String: Any]])
    #expect(frames.compactMap { $0["index"] as? Int } == [240])
    let gray = try await FFmpeg.converted(
      scratch.file("mark.png"), ["-pix_fmt", "gray", "-f", "rawvideo"])
    try #require(gray.count == 320 * 240)
    #expect(FrameNumberPattern.read(width: 320, height: 240) { gray[$1 * 320 + $0] } == 240)
    // Everything before the mark plays at half speed, so the mark moves from 1 s to 2 s.
    for (name, way, index) in [("b.mov", ["--copy"], 240), ("b.mp4", ["--fps", "30"], 60)] {
      let retimed = try await run(
        slowmoPath,
        ["retime", "marked.mov", "-o", name, "--range", "0..@mark1", "--speed", "1/2"] + way,
        in: scratch.path)
      #expect(retimed.status == 0, "\(retimed.errors)")
      #expect(try marks(try await document("info", name)) == ["mark1 2000000000 \(index)"])
    }
    let ramp = try await document(
      "retime", "marked.mov", "-o", "c.mov", "--ramp", "@mark1=1 2=1/2", "--copy", "--dry-run")
    let plan = try #require(ramp["plan"] as? [[String: Any]])
    #expect((plan.first?["source"] as? [String: String])?["end"] == "1/1")
    let preset = try await document(
      "retime", "marked.mov", "-o", "d.mov", "--preset", "impact", "--at", "@mark1", "--copy",
      "--dry-run")
    #expect(preset["plan"] != nil)
    let part = try await run(
      slowmoPath,
      ["play", "marked.mov", "--terminal", "--audio", "none", "--range", "@mark1+0.1", "--json"],
      in: scratch.path)
    #expect(try part.document()["duration_ns"] as? Int == 100_000_000)
    let unknown = try await run(
      slowmoPath, ["frames", "marked.mov", "--at", "@hit", "-o", "hit.png"], in: scratch.path)
    #expect(unknown.status == 64)
    #expect(unknown.errors.contains("no mark named hit") && unknown.errors.contains("@mark1"))
  }

  @Test func `A new speed range replaces the ranges that it covers`() async throws {
    let keys = """
      0 space
      0 home
      0 4
      0.1 right
      0.1 i
      0.1 right
      0.1 o
      0.1 1
      0.2 home
      0.2 m
      """
    let finished = try await play(keys)
    try #require(finished.status == 0, "\(finished.errors)")
    let played = try finished.document()
    // At a quarter of the speed, one second of playback is a quarter of a second of the clip.
    #expect(speeds(played) == ["1/4", "1/1", "1/4"])
    #expect(played["duration_ns"] as? Int == 16_000_000_000 - 750_000_000)
    #expect(try marks(played) == ["mark1 0 0"])
    #expect(played["written"] as? Bool == false && played["output"] is NSNull)
  }

  @Test func `Invalid output files of play are rejected before playback`() async throws {
    let nameless = try await play("0 w")
    #expect(nameless.status == 64 && nameless.output.contains("the key w has no file"))
    _ = try scratch.write([1], as: "taken.otio")
    #expect(try await play("0 w", "-o", "taken.otio").status == 73)
    #expect(try await play("0 w", "-o", "taken.otio", "-y").status == 0)
    #expect(try await play("0 w", "-o", try await Takes.plain(), "-y").status == 73)
    #expect(try await play("0 q", "--fps", "30").status == 64)
    #expect(try await play("0 q", "-o", "edited.avi").status == 64)
    let planned = try await play(Self.keys, "-o", "planned.mov", "--dry-run")
    #expect(planned.status == 0)
    #expect(speeds(try planned.document()) == ["1/1", "1/8", "1/1"])
    #expect(try planned.document()["written"] as? Bool == false)
    #expect(!FileManager.default.fileExists(atPath: scratch.file("planned.mov")))
  }
}
