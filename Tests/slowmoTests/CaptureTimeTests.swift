// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Verbs that measure in a movie which another verb has slowed down, cut or rendered.
struct CaptureTimeTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Makes a movie from the take of a ball, 240 frames per second.
  private func make(_ name: String, _ options: String...) async throws -> String {
    let path = scratch.file(name)
    let made = try await run(
      slowmoPath, ["retime", try await Takes.plain(), "-o", path, "--pitch", "mute"] + options)
    #expect(made.status == 0, "\(made.errors)")
    return path
  }

  /// Follows the ball, and returns the document.
  private func track(_ path: String, at time: String, _ options: String...) async throws
    -> [String: Any]
  {
    let finished = try await run(
      slowmoPath,
      ["track", path, "--at", time, "--box", "176,103,32,32", "--scale", "57.7±0.5=0.5m", "--json"]
        + options)
    #expect(finished.status == 0, "\(finished.errors)")
    return try finished.document()
  }

  /// The speed of the ball in a frame of the take.
  private func trueSpeed(_ frame: Int) -> Double {
    let time = Double(frame % 240) / 240
    return abs(1.226 * 4 * (1 - 2 * time))
  }

  private func speeds(_ document: [String: Any]) throws -> [(
    frame: Int, value: Double, error: Double
  )] {
    try #require(document["points"] as? [[String: Any]]).compactMap { point in
      guard let frame = point["index"] as? Int, let value = point["speed_mps"] as? Double,
        let error = point["speed_uncertainty_mps"] as? Double
      else { return nil }
      return (frame, value, error)
    }
  }

  @Test func `A slowed part has the speeds of the take`() async throws {
    let take = try await track(Takes.plain(), at: "0.2", "--until", "0.8")
    let part = try await make("part.mov", "--range", "0.3..0.5", "--speed", "1/8", "--copy")
    let slowed = try await track(part, at: "0.2", "--until", "2.2")
    #expect(slowed["time_source"] as? String == "map")
    #expect(slowed["time_scale"] is NSNull)
    #expect(take["time_source"] as? String == "recording")
    #expect(take["time_scale"] as? String == "1/1")
    let (known, found) = (try speeds(take), try speeds(slowed))
    #expect(found.count == known.count)
    for (one, other) in zip(known, found) {
      #expect(one.frame == other.frame)
      #expect(abs(one.value - other.value) < 1e-9)
      #expect(other.error <= 1.1 * one.error)
    }
  }

  @Test func `Chains of verbs cover the true speed`() async throws {
    let slow = try await make("slow.mov", "--trim", "0.2..0.8", "--speed", "1/8", "--copy")
    let again = scratch.file("again.mov")
    let rendered = scratch.file("rendered.mp4")
    for (path, options) in [
      (again, ["--range", "1..2", "--speed", "2", "--copy"]),
      (rendered, ["--speed", "1", "--fps", "30"]),
    ] {
      let made = try await run(
        slowmoPath, ["retime", slow, "-o", path, "--pitch", "mute"] + options)
      #expect(made.status == 0, "\(made.errors)")
    }
    for path in [slow, again, rendered] {
      let document = try await track(path, at: "0")
      let speeds = try speeds(document)
      // The trimmed part begins at frame 48 of the take.
      let covered = speeds.count { abs($0.value - trueSpeed($0.frame + 48)) <= $0.error }
      print("\(path): \(covered) of \(speeds.count) speeds in the interval")
      #expect(speeds.count > 100)
      #expect(covered * 100 >= speeds.count * 95)
      #expect(document["time_source"] as? String == "map")
    }
  }

  @Test func `Frames of an export have the capture times of the take`() async throws {
    let take = try await Takes.plain()
    let rendered = try await make(
      "slow.mp4", "--trim", "0.25..0.75", "--speed", "1/8", "--fps", "30")
    func rows(_ path: String) async throws -> [[Substring]] {
      let finished = try await slowmo("frames", path, "--csv", "-")
      return finished.output.split(separator: "\n").dropFirst().map {
        $0.split(separator: ",", omittingEmptySubsequences: false)
      }
    }
    let (known, found) = (try await rows(take), try await rows(rendered))
    #expect(found.count == 120)
    for (index, row) in found.enumerated() {
      #expect(row[2] == known[index + 60][2], "frame \(index)")
      #expect(row[5] == "0" && row[6] == "0")
    }
  }

  @Test func `A ruler and a comparison show the time of the capture`() async throws {
    let part = try await make("part.mov", "--range", "0.5..0.9", "--speed", "1/8", "--copy")
    let take = try await Takes.plain()
    var widths: [Int?] = []
    for path in [take, part] {
      let end = path == take ? "1" : "3.8"
      let finished = try await slowmo(
        "still", "finish", path, "-o", scratch.file("f.png"), "-y", "--range", "0..\(end)", "--json"
      )
      #expect(finished.status == 0, "\(finished.errors)")
      widths.append(try finished.document()["width"] as? Int)
    }
    #expect(widths[0] == 480 && widths[1] == 480)
    let compared = try await slowmo(
      "compare", take, part, "-o", scratch.file("both.mp4"), "--at", "0.5,0.5", "--fps", "30",
      "--speed", "1/8", "--json")
    #expect(compared.status == 0, "\(compared.errors)")
    let document = try compared.document()
    // The take lasts 4 s of real time, and so does the copy.
    #expect(document["frame_count"] as? Int == 4 * 8 * 30)
    let clips = try #require(document["clips"] as? [[String: Any]])
    #expect(clips.map { $0["time_source"] as? String } == ["recording", "map"])
    // Each pane of the comparison has the times of its clip.
    // The box shows nothing that can be followed, so only the time is read.
    let right = try await run(
      slowmoPath,
      [
        "track", scratch.file("both.mp4"), "--at", "1", "--box", "176,103,32,32", "--until", "1.1",
        "--json",
      ]
    ).document()
    #expect(right["time_source"] as? String == "map")
    #expect(right["time_scale"] as? String == "1/8")
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `A changed movie is refused with the options that answer it`() async throws {
    let part = try await make("part.mov", "--range", "0.3..0.5", "--speed", "1/8", "--copy")
    let cut = scratch.file("cut.mov")
    try await FFmpeg.make(cut, ["-i", part, "-t", "1.5", "-c", "copy"])
    let words = ["track", cut, "--at", "0.2", "--box", "176,103,32,32", "--until", "0.3", "--json"]
    let refused = try await run(slowmoPath, words)
    #expect(refused.status == 65)
    let error = try #require(try refused.document()["error"] as? [String: Any])
    #expect(error["code"] as? String == "unknown_capture_time")
    #expect((error["hint"] as? String)?.contains("--capture-fps, --clock file") == true)
    for (options, source) in [
      (["--clock", "file"], "file"), (["--capture-fps", "240"], "option"),
    ] {
      let finished = try await run(slowmoPath, words + options)
      #expect(finished.status == 0, "\(finished.errors)")
      #expect(try finished.document()["time_source"] as? String == source)
    }
    let both = try await run(slowmoPath, words + ["--clock", "file", "--capture-fps", "240"])
    #expect(both.status == 64)
    let info = try await slowmo("info", cut)
    #expect(info.output.contains("time map: not used, the file has a time map of other frames"))
  }

  @Test func `A time map can be left out and is named where it is lost`() async throws {
    let plain = try await make("plain.mov", "--speed", "1/8", "--copy", "--no-time-map")
    let info = try await slowmo("info", plain, "--json").document()
    #expect(info["time_map"] is NSNull)
    #expect((info["metadata"] as? [String: String])?["comment"] == nil)
    let clock = ["--at", "0", "--points", "0,0 3,4", "--json"]
    let slowed = try await run(slowmoPath, ["measure", plain] + clock).document()
    #expect(slowed["time_source"] as? String == "tag")
    #expect(slowed["time_scale"] as? String == "1/8")
    // Every eighth frame at speed 1 is no slow motion, and without a map nothing shows that.
    let sparse = try await make("sparse.mov", "--trim", "0..1", "--fps", "30", "--no-time-map")
    let assumed = try await run(slowmoPath, ["measure", sparse] + clock).document()
    #expect(assumed["time_source"] as? String == "file")
    #expect(assumed["time_scale"] as? String == "1/1")
    let path = scratch.file("hit.gif")
    let animated = try await slowmo(
      "retime", try await Takes.plain(), "-o", path, "--trim", "0.5..0.6", "--fps", "20", "--json")
    let lost = try #require(try animated.document()["lost_metadata"] as? [String])
    #expect(lost.contains("capture times"))
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `A file without a capture rate is measured with a note`() async throws {
    let path = scratch.file("foreign.mp4")
    try await FFmpeg.makeClip(path, [])
    let finished = try await slowmo(
      "measure", path, "--at", "0.2", "--points", "0,0 3,4", "--json")
    #expect(finished.status == 0)
    let document = try finished.document()
    #expect(document["time_source"] as? String == "file")
    #expect(document["time_assumption"] as? String == "file_times_are_real")
    #expect(finished.errors.contains("its own times are taken for real"))
  }
}
