// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Takes and exports after Ctrl-C, SIGTERM, a closed terminal or a kill.
struct SignalTests {
  /// Starts a take, sends a signal after 1.5 MB are stored, and returns the result.
  private func interrupted(
    by signal: String, _ scratch: Scratch, more: String = ""
  ) async throws -> Finished {
    let script = """
      path=$2
      "$1" record synthetic:320x240@240 -o "$path" --json --progress none \(more) &
      take=$!
      await '[ "$(size "$path")" -gt 1500000 ]' $take
      kill -\(signal) $take
      wait $take
      """
    return try await bash(script, scratch.file("take.mov"))
  }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func `The first signal ends a take and the command succeeds`(signal: String) async throws {
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

  @Test func `A take started with nohup ignores SIGHUP`() async throws {
    let scratch = try Scratch()
    let script = """
      nohup "$1" record 'synthetic:320x240@240?counter=counter' -o take.mov --json </dev/null &
      take=$!
      await '[ "$(size take.mov)" -gt 500000 ]' $take
      kill -HUP $take || exit 9
      # It still records a second later.
      before=$(frames counter)
      await '[ "$(frames counter)" -gt $((before + 240)) ]' $take
      kill -INT $take || exit 9
      wait $take
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try finished.document()["stopped_by"] as? String == "signal")
  }

  @Test func `A signal ends an edit that waits for a named pipe`() async throws {
    let scratch = try Scratch()
    let script = """
      mkfifo project.otio
      "$1" edit project.otio -o out.mov --fps 30 --json >report.json &
      edit=$!
      await 'ls -l /proc/'$edit'/fd 2>/dev/null | grep -q project.otio' $edit
      kill -INT $edit
      wait $edit
      status=$?
      cat report.json
      exit $status
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.status == 130, "\(finished.errors)")
    #expect(finished.output.contains("cancelled"))
    #expect(try scratch.names() == ["project.otio", "report.json"])
  }

  @Test func `Two signals at the same time count as one`() async throws {
    let scratch = try Scratch()
    // timeout(1) sends its signal to its child process and to the child's process group.
    let script = """
      "$1" devices --watch >devices &
      watch=$!
      await '[ -s devices ]' $watch
      kill -STOP $watch
      kill -INT $watch
      kill -TERM $watch
      kill -CONT $watch
      wait $watch
      """
    let finished = try await bash(script, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
  }

  /// Sends SIGINT to a take, whose `--exec` command then waits for the file `go`.
  ///
  /// Runs lines of bash when a second signal would no longer count as simultaneous.
  private func interrupted(then lines: String, _ scratch: Scratch) async throws -> Finished {
    let script = """
      "$1" record 'synthetic:320x240@240?pace=max' -o a.mov -t 0.2 \
        --exec 'touch begun; until [ -e go ] || [ ! -e begun ]; do sleep 0.05; done; touch done' &
      take=$!
      await '[ -e begun ]' $take
      kill -INT $take
      sleep 0.6
      \(lines)
      wait $take
      status=$?
      touch go
      exit $status
      """
    return try await bash(script, in: scratch.path)
  }

  @Test func `The second signal during a take ends the process immediately`() async throws {
    // A process without processor time may see two signals as simultaneous, so the signal is
    // repeated.
    let finished = try await interrupted(
      then: "while kill -INT $take 2>/dev/null; do sleep 0.6; done", try Scratch())
    #expect(finished.status == 130, "\(finished.errors)")
  }

  @Test func `SIGHUP after Ctrl-C does not prevent a take from finishing`() async throws {
    let scratch = try Scratch()
    let finished = try await interrupted(then: "kill -HUP $take || exit 9; touch go", scratch)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try scratch.names().contains("done"))
  }

  @Test func `A take killed by SIGKILL leaves a playable movie`() async throws {
    let scratch = try Scratch()
    let finished = try await interrupted(by: "KILL", scratch)
    #expect(finished.status == 137)
    let info = try await slowmo("info", scratch.file("take.mov"), "--json")
    #expect(info.status == 0, "\(info.errors)")
    let video = try #require(try info.document()["video"] as? [String: Any])
    // A fragment is 150 ms, which are 36 frames at 240 fps.
    #expect(try #require(video["frame_count"] as? Int) >= 48)
    let probe = try await run("ffprobe", ["-v", "error", scratch.file("take.mov")])
    #expect(probe.status == 0, "\(probe.errors)")
  }

  @Test func `An export ended by a signal fails and leaves no file`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let script = """
      directory=$3
      "$1" retime "$2" -o "$directory/slow.mp4" --speed 1/256 --fps 60 --pitch mute --progress none &
      export=$!
      await 'ls -A "$directory" | grep -q part' $export
      kill -INT $export
      wait $export
      """
    let finished = try await bash(script, take, scratch.path)
    #expect(finished.status == 130, "\(finished.errors)")
    #expect(finished.errors.contains("cancelled"))
    #expect(try scratch.names() == [])
  }
}
