// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Replays of clips while their capture goes on.
@Suite(.serialized) struct ReplayTests {
  @Test func `Replays of a camera at 240 fps cost no frame`() async throws {
    let scratch = try Scratch()
    let count = RunSize.cases(3, full: 20)
    let script = """
      mkfifo lines
      FAKEVIDEO='hfr-usb mjpegbytes=30000' LD_PRELOAD=$2 "$1" record /dev/fakevideo0 \
        --mode 1280x720@240/mjpg -o 'hit_{n}.mov' --pre 100ms --post 200ms --trigger key --repeat \
        --quiet-period 0 --max-clips $3 --replay 1/8 --json \
        --exec 'echo {path} {replay} >>done' <lines 2>errors >report.json &
      take=$!
      exec 4>lines
      await 'grep -q "waiting for" errors' $take
      for clip in $(seq $3); do
        sleep 0.1
        echo >&4
        await "grep -q 'clip $clip' errors" $take
      done
      wait $take
      status=$?
      cat report.json; cat errors >&2
      exit $status
      """
    let finished = try await bash(
      script, try await FakeCameras.library(), "\(count)", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    let ledger = try #require(report["ledger"] as? [String: Int])
    for (outcome, frames) in ledger
    where !["expected", "stored", "evicted", "lost_start"].contains(outcome) {
      #expect(frames == 0, "\(outcome) in \(finished.errors)")
    }
    let files = try #require(report["files"] as? [[String: Any]])
    #expect(files.count == count)
    for file in files {
      let path = try #require(file["file"] as? String)
      let replay = try #require(file["replay"] as? String, "\(finished.errors)")
      #expect(replay == path.replacing(".mov", with: ".replay.mp4"))
      let video = try #require(
        try await slowmo("info", scratch.file(replay), "--json").document()["video"]
          as? [String: Any])
      #expect(video["nominal_fps"] as? String == "30/1" && video["codec"] as? String == "h264")
      let stored = try #require((file["ledger"] as? [String: Int])?["stored"])
      // 30 output frames show 30 source frames, as 240 fps play at 1/8.
      let shown = try #require(video["frame_count"] as? Int)
      #expect(abs(shown - stored) <= 2, "\(shown) of \(stored)")
    }
    // The command runs after the replay, which it knows.
    let done = try String(contentsOfFile: scratch.file("done"), encoding: .utf8)
    let lines = Set(done.split(separator: "\n"))
    for file in files {
      let (path, replay) = (file["file"] as? String ?? "", file["replay"] as? String ?? "")
      #expect(lines.contains("\(path) \(replay)"), "\(done)")
    }
    #expect(try await DocumentTests().misfit(finished.output, verb: "record", scratch) == nil)
  }

  @Test func `A replay does not replace a file of its name`() async throws {
    let scratch = try Scratch()
    try Data("mine".utf8).write(to: URL(fileURLWithPath: scratch.file("a.replay.mp4")))
    let refused = try await slowmo(
      "record", "synthetic:160x120@240?pace=max", "-o", "a.mov", "--post", "100ms", "--trigger",
      "audio:-12dBFS", "--replay", "1/8", in: scratch.path)
    #expect(refused.status == 73 && refused.errors.contains("a.replay.mp4"), "\(refused.errors)")
    #expect(try scratch.names() == ["a.replay.mp4"])
    let lone = try await slowmo(
      "record", "synthetic", "-o", "b.mov", "-t", "1", "--replay", "1/8", in: scratch.path)
    #expect(lone.status == 64 && lone.errors.contains("--replay"), "\(lone.errors)")
  }
}
