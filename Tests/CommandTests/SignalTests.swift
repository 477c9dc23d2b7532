// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// What Ctrl-C, SIGTERM, a closed terminal and a kill leave behind.
struct SignalTests {
  /// Starts a take, sends a signal once there is something in the file, and tells how it ended.
  private func interrupted(
    by signal: String, _ scratch: Scratch, more: String = ""
  ) async throws -> Finished {
    let script = """
      "$1" record synthetic:320x240@240 -o "$2" --json --progress none \(more) &
      take=$!
      for try in $(seq 600); do [ "$(stat -c %s "$2" 2>/dev/null || echo 0)" -gt 1500000 ] && break; sleep 0.05; done
      kill -\(signal) $take
      wait $take
      """
    return try await run(
      "bash", ["-c", script, "bash", slowmoPath, scratch.file("take.mov")])
  }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func `The first signal finishes the file and is no failure`(signal: String) async throws {
    let scratch = try Scratch()
    let finished = try await interrupted(by: signal, scratch)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["stopped_by"] as? String == "signal")
    #expect(report["playable"] as? Bool == true)
    let ledger = try #require(report["ledger"] as? [String: Int])
    #expect(ledger.filter { $0.key != "expected" }.values.reduce(0, +) == ledger["expected"])
    let info = try await slowmo("info", scratch.file("take.mov"), "--json").document()
    let video = try #require(info["video"] as? [String: Any])
    #expect(video["frame_count"] as? Int == ledger["stored"])
    let data = try Data(contentsOf: URL(fileURLWithPath: scratch.file("take.mov")))
    #expect(data.range(of: Data("moof".utf8)) == nil, "the finished file is still in fragments")
    #expect(try scratch.names() == ["take.mov"])
  }

  @Test func `A take begun with nohup goes on when its terminal is closed`() async throws {
    let scratch = try Scratch()
    let script = """
      nohup "$1" record synthetic:320x240@240 -o take.mov --frames 480 --json </dev/null &
      take=$!
      for try in $(seq 600); do [ "$(stat -c %s take.mov 2>/dev/null || echo 0)" -gt 500000 ] && break; sleep 0.05; done
      kill -HUP $take || exit 9
      wait $take
      """
    let finished = try await run("bash", ["-c", script, "bash", slowmoPath], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try finished.document()["stopped_by"] as? String == "frames")
  }

  @Test func `A signal that comes twice at once is one`() async throws {
    let scratch = try Scratch()
    // timeout(1) sends its signal to its child, and to the child's group.
    let script = """
      "$1" devices --watch >devices &
      watch=$!
      for try in $(seq 600); do [ -s devices ] && break; sleep 0.05; done
      kill -STOP $watch
      kill -INT $watch
      kill -TERM $watch
      kill -CONT $watch
      wait $watch
      """
    let finished = try await run("bash", ["-c", script, "bash", slowmoPath], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
  }

  /// Presses Ctrl-C while a take's own command runs, which has made a file `begun`, and sends
  /// another signal once it can be no twin of the first.
  private func interrupted(
    while command: String, thenBy signal: String, _ scratch: Scratch
  ) async throws -> Finished {
    let script = """
      "$1" record synthetic:320x240@240 -o a.mov -t 0.2 --exec '\(command)' &
      take=$!
      for try in $(seq 600); do [ -e begun ] && break; sleep 0.05; done
      kill -INT $take
      sleep 0.6
      kill -\(signal) $take || exit 9
      wait $take
      """
    return try await run("bash", ["-c", script, "bash", slowmoPath], in: scratch.path)
  }

  @Test func `The second signal ends the process at once`() async throws {
    let finished = try await interrupted(
      while: "touch begun; sleep 60", thenBy: "INT", try Scratch())
    #expect(finished.status == 130, "\(finished.errors)")
  }

  @Test func `A terminal that is closed after Ctrl-C lets the take be finished`() async throws {
    let scratch = try Scratch()
    let finished = try await interrupted(
      while: "touch begun; sleep 1.5; touch done", thenBy: "HUP", scratch)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try scratch.names().contains("done"))
  }

  @Test func `A kill leaves a file that can be read, whole fragments of it`() async throws {
    let scratch = try Scratch()
    let finished = try await interrupted(by: "KILL", scratch)
    #expect(finished.status == 137)
    let info = try await slowmo("info", scratch.file("take.mov"), "--json")
    #expect(info.status == 0, "\(info.errors)")
    let video = try #require(try info.document()["video"] as? [String: Any])
    // 150 ms at 240 frames a second make a fragment of 36.
    #expect(try #require(video["frame_count"] as? Int) >= 48)
    let probe = try await run("ffprobe", ["-v", "error", scratch.file("take.mov")])
    #expect(probe.status == 0, "\(probe.errors)")
  }

  @Test func `An interrupted export leaves nothing behind and says so`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let script = """
      "$1" retime "$2" -o "$3/slow.mp4" --speed 1/32 --fps 60 --pitch mute --progress none &
      export=$!
      for try in $(seq 600); do ls -A "$3" | grep -q part && break; sleep 0.05; done
      kill -INT $export
      wait $export
      """
    let finished = try await run(
      "bash", ["-c", script, "bash", slowmoPath, take, scratch.path])
    #expect(finished.status == 130, "\(finished.errors)")
    #expect(finished.errors.contains("cancelled"))
    #expect(try scratch.names() == [])
  }
}
