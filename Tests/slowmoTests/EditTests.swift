// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects as inputs of the command, also compared with OpenTimelineIO's own library.
struct EditTests {
  /// The Python interpreter that may have OpenTimelineIO.
  private static let python =
    ProcessInfo.processInfo.environment["OTIO_PYTHON"] ?? "python3"

  @Test func `Exporting a saved project equals exporting without a project`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let direct = scratch.file("direct.mov")
    for output in ["direct.mov", "project.otio"] {
      let finished = try await slowmo(
        "retime", take, "-o", output, "--preset", "impact", "--at", "2", "--copy", "--pitch",
        "mute", in: scratch.path)
      try #require(finished.status == 0, "\(finished.errors)")
    }
    let finished = try await slowmo(
      "edit", "project.otio", "-o", "edited.mov", "--copy", "--pitch", "mute", "--json",
      in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["schema"] as? String == "slowmo.edit/1")
    #expect(report["frames_copied"] as? Int == 960)
    let (one, other) = (try Asset(path: direct), try Asset(path: scratch.file("edited.mov")))
    #expect(try table(one) == table(other))
    #expect(try paintedNumbers(other).compactMap { $0 } == Array(0..<960))
    #expect(report["max_time_error_ns"] as? Int ?? .max <= 2_100)
    // Reading a project and writing it again gives an equal project.
    let again = try await slowmo("edit", "project.otio", "-o", "again.otio", in: scratch.path)
    try #require(again.status == 0, "\(again.errors)")
    let texts = try ["project.otio", "again.otio"].map {
      try String(contentsOfFile: scratch.file($0), encoding: .utf8)
        .replacingOccurrences(of: "again.otio", with: "project.otio")
    }
    #expect(texts[0] == texts[1])
  }

  private func table(_ asset: Asset) throws -> [String] {
    let frames = try #require(asset.videoTrack).frames
    return frames.entries.map { "\($0.ticks) \($0.duration)" }
  }

  @Test func `A missing project exits with 66 and an empty project with 65`() async throws {
    let scratch = try Scratch()
    _ = try scratch.write(Array("{}".utf8), as: "empty.otio")
    let missing = try await slowmo("edit", "no.otio", "-o", "a.mov", "--copy", in: scratch.path)
    #expect(missing.status == 66)
    let empty = try await slowmo(
      "edit", "empty.otio", "-o", "a.mov", "--copy", "--json", in: scratch.path)
    #expect(empty.status == 65)
    #expect(
      (try empty.document()["error"] as? [String: Any])?["code"] as? String == "invalid_project")
    let undecided = try await slowmo("edit", "empty.otio", "-o", "a.mov", in: scratch.path)
    #expect(undecided.status == 64)
  }

  @Test func `A clip conformed to 30 fps keeps its 240 fps capture rate`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let finished = try await slowmo(
      "retime", take, "-o", "slow.mov", "--playback-fps", "30", "--copy", "--pitch", "mute",
      "--json", in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(try finished.document()["duration_ns"] as? Int == 32_000_000_000)
    let slow = try Asset(path: scratch.file("slow.mov"))
    #expect(slow.duration == MediaTime(seconds: 32))
    #expect(slow.videoTrack?.nominalFrameRate == FrameRate(30))
    #expect(slow.captureFrameRate?.rate == FrameRate(240))
  }

  @Test(
    .enabled("OpenTimelineIO is not installed (Tests/run.sh does that)") {
      try await run(python, ["-c", "import opentimelineio"]).status == 0
    })
  func `A project rewritten by OpenTimelineIO exports the same movie`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let made = try await slowmo(
      "retime", take, "-o", "project.otio", "--ramp", "0.5=1 1=1/8 2=1/8 2=2", "--easing", "eased",
      in: scratch.path)
    try #require(made.status == 0, "\(made.errors)")
    // The script reads the project, prints its duration and number of clips, and writes it again.
    let script = """
      import opentimelineio as otio
      timeline = otio.adapters.read_from_file("project.otio")
      print(timeline.duration().to_seconds())
      print(sum(1 for _ in timeline.find_clips()))
      otio.adapters.write_to_file(timeline, "rewritten.otio")
      """
    let reader = try await run(Self.python, ["-c", script], in: scratch.path)
    try #require(reader.status == 0, "\(reader.errors)")
    let said = reader.output.split(separator: "\n").compactMap { Double($0) }
    let plan = try await slowmo(
      "edit", "rewritten.otio", "-o", "a.mov", "--copy", "--dry-run", "--json", in: scratch.path)
    try #require(plan.status == 0 && plan.errors.isEmpty, "\(plan.errors)")
    let first = try await slowmo(
      "edit", "project.otio", "-o", "a.mov", "--copy", "--dry-run", "--json", in: scratch.path)
    let (one, other) = (try first.document(), try plan.document())
    #expect(one["plan"] as? NSArray == other["plan"] as? NSArray)
    let nanoseconds = try #require(other["duration_ns"] as? Int)
    #expect(abs((said.first ?? 0) - Double(nanoseconds) / 1e9) < 1e-6)
    #expect((said.last ?? 0) > 20)
  }
}
