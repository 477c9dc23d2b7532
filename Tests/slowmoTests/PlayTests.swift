// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// `slowmo play` without a window and without an audio card.
struct PlayTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func play(_ arguments: String...) async throws -> Finished {
    let take = try await Takes.plain()
    return try await run(
      slowmoPath, ["play", take, "--terminal", "--audio", "none"] + arguments, in: scratch.path)
  }

  @Test func `Each frame of a range is counted as shown or skipped or late`() async throws {
    let finished = try await play("--range", "0.5..0.75", "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let document = try finished.document()
    func number(_ key: String) throws -> Int { try #require(document[key] as? Int) }
    // The range is a quarter of a second at 240 fps. A busy machine may show frames late, but all
    // are counted.
    #expect(try number("due") == 60)
    #expect(try number("shown") + number("skipped_by_rate") + number("late") == 60)
    #expect(try number("duration_ns") == 250_000_000)
    #expect(try number("position_ns") == 250_000_000)
    let events = try #require(document["events"] as? [[String: Any]])
    let states = events.filter { $0["type"] as? String == "state" }
      .compactMap { $0["detail"] as? String }
    #expect(states.suffix(3) == ["playing", "ended", "closed"])
  }

  @Test func `Keys from a script pause and step and quit the player`() async throws {
    let keys = """
      # Pause, two steps from the start, and back at half speed.
      0 space
      0.05 home
      0.08 .
      0.1 .
      0.15 [
      0.15 r
      0.2 space
      0.3 q
      """
    _ = try scratch.write(Array(keys.utf8), as: "keys.txt")
    let finished = try await play("--range", "0.5..1", "--script", "keys.txt", "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let events = try #require(try finished.document()["events"] as? [[String: Any]])
    let pressed = events.filter { $0["type"] as? String == "key" }
      .compactMap { $0["detail"] as? String }
    #expect(pressed == ["space", "home", ".", ".", "[", "r", "space", "q"])
    let rates = events.filter { $0["type"] as? String == "rate" }
      .compactMap { $0["detail"] as? String }
    #expect(rates == ["1/1", "0/1", "-1/2"])
    let seeks = events.filter { $0["type"] as? String == "seek" }
      .compactMap { $0["position_ns"] as? Int }
    // The last seek is two frames at 240 fps after the start, rounded to microseconds. On a busy
    // machine, it may replace the seek of the previous key.
    #expect(seeks.last == 8_333_000)
  }

  @Test func `A failed screenshot ends a key script of the player`() async throws {
    // The screenshot of the first frame is a small file. The next frame is noise, so its screenshot
    // is a large file.
    let made = try await run(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "color=gray:size=160x120:rate=10:duration=1",
        "-vf", "noise=alls=100:enable='gt(n,0)'", "-c:v", "mjpeg", "-q:v", "2", "noise.mov",
      ], in: scratch.path)
    try #require(made.status == 0, "\(made.errors)")
    _ = try scratch.write(
      Array("0 space\n0.02 home\n0.04 s\n0.06 .\n0.08 s\n0.1 q\n".utf8), as: "keys.txt")
    let arguments = ["--terminal", "--audio", "none", "--script", "keys.txt"]
    let finished = try await run(
      "prlimit", ["--fsize=8000", slowmoPath, "play", "noise.mov", "--json"] + arguments,
      in: scratch.path)
    #expect(finished.status == 74, "\(finished.errors)")
    let document = try finished.document()
    #expect((document["error"] as? [String: Any])?["code"] as? String == "disk_full")
    let events = try #require(document["events"] as? [[String: Any]])
    let written = events.filter { $0["type"] as? String == "screenshot" }
      .compactMap { $0["detail"] as? String }
    #expect(written == ["noise-shot0001.png"])
    #expect(try await DocumentTests().misfit(finished.output, verb: "play", scratch) == nil)
    let text = try await run(
      "prlimit", ["--fsize=8000", slowmoPath, "play", "noise.mov"] + arguments, in: scratch.path)
    #expect(text.status == 74 && text.output.contains("written: noise-shot0002.png"))
    #expect(text.errors.split(separator: "\n").count == 1, "\(text.errors)")
    // If no screenshot was written, the JSON document has only the error.
    let none = try await run(
      "prlimit", ["--fsize=10", slowmoPath, "play", "noise.mov", "--json"] + arguments,
      in: scratch.path)
    #expect(none.status == 74)
    #expect(Set(try none.document().keys) == ["schema", "error"])
  }

  @Test(arguments: ["0.1", "x space", "0.1 nonsense", "0.2 space\n0.1 space", "end q"])
  func `The error for an invalid key script names the file and line`(_ line: String) async throws {
    _ = try scratch.write(Array(line.utf8), as: "keys.txt")
    let finished = try await play("--script", "keys.txt")
    #expect(finished.status == 65)
    #expect(finished.errors.contains("keys.txt:"))
    #expect(finished.errors.split(separator: "\n").count == 1)
  }

  @Test func `Without an audio card playback warns and uses a system clock`() async throws {
    let take = try await Takes.plain()
    let finished = try await run(
      slowmoPath, ["play", take, "--terminal", "--audio", "hw:29,0", "--range", "0..0.1"],
      in: scratch.path)
    #expect(finished.status == 0)
    #expect(finished.errors.contains("no audio (could not open hw:29,0"))
    #expect(finished.errors.split(separator: "\n").count == 1)
    #expect(finished.output.contains("24 frames due"))
  }

  @Test func `The option --speed of play multiplies the project speed`() async throws {
    let take = try await Takes.plain()
    let made = try await run(
      slowmoPath,
      ["retime", take, "-o", "slow.otio", "--trim", "0..0.1", "--speed", "1/2"], in: scratch.path)
    #expect(made.status == 0, "\(made.errors)")
    let finished = try await run(
      slowmoPath, ["play", "slow.otio", "--terminal", "--speed", "2", "--audio", "none", "--json"],
      in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let document = try finished.document()
    #expect(document["due"] as? Int == 24 && document["duration_ns"] as? Int == 200_000_000)
  }

  @Test func `Playback speeds outside 1/32 to 32 are rejected`() async throws {
    #expect(try await play("--speed", "40").status == 64)
    #expect(try await play("--speed", "1/40").status == 64)
    #expect(try await play("--refresh", "0.5").status == 64)
  }
}
