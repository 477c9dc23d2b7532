// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

struct SlowMotionTests {
  @Test func `Reported gaps equal the jumps in painted frame numbers`() async throws {
    let path = try await Takes.lossy()
    let report = try document(path + ".json")
    let asset = try Asset(path: path)
    let painted = try paintedNumbers(asset).map { try #require($0) }
    let lines = asset.frameTimingRows()
    #expect(painted.map(Int64.init) == lines.map(\.sequence))
    let ledger = try #require(report["ledger"] as? [String: Int])
    #expect(ledger["stored"] == painted.count)
    #expect(ledger["expected"] == 480)
    #expect(ledger.filter { $0.key != "expected" }.values.reduce(0, +) == 480)
    let jumps = zip(painted, painted.dropFirst()).enumerated()
      .filter { $0.element.1 != $0.element.0 + 1 }
      .map { "\($0.element.1 - $0.element.0 - 1) after \($0.offset)" }
    let gaps = try #require(report["gaps"] as? [[String: Any]]).map { gap in
      "\(gap["count"] as? Int ?? -1) after \(gap["after_index"] as? Int ?? -1)"
    }
    print("drop=5%: \(painted.count) stored, \(gaps.count) gaps")
    #expect(gaps == jumps)
    #expect(jumps.count > 10)
  }

  @Test func `Frames copied at 1/8 speed have exactly the stretched times`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let slow = scratch.file("slow.mov")
    let finished = try await slowmo(
      "retime", take, "-o", slow, "--range", "1..2", "--speed", "1/8", "--copy", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    let source = try Asset(path: take)
    let result = try Asset(path: slow)
    #expect(result.duration == MediaTime(seconds: 11))
    let before = try frameBytes(take)
    #expect(before.count == 960)
    #expect(try frameBytes(slow) == before)
    // The exact times before, inside and after the slow second.
    let frames = try #require(source.videoTrack).frames
    let slowFrames = try #require(result.videoTrack).frames
    var errors = 0
    for index in 0..<960 {
      let time = try frames.time(ofFrame: Int64(index)).seconds
      let expected =
        if time < Rational(1) { time } else if time < Rational(2) {
          (time - Rational(1)) * Rational(8) + Rational(1)
        } else { time + Rational(7) }
      if try slowFrames.time(ofFrame: Int64(index)).seconds != expected { errors += 1 }
    }
    print("--copy: \(before.count) packets identical, \(errors) of 960 times off by any tick")
    #expect(errors == 0)
    #expect(report["max_time_error_ns"] as? Int == 0)
    #expect(report["frames_copied"] as? Int == 960)
    #expect(report["duration_ns"] as? Int == 11_000_000_000)
    #expect(result.audioTrack?.sampleCount == 528_000)
  }

  @Test func `An export at 30 fps shows the source frame due at each time`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let (copied, constant) = (scratch.file("slow.mov"), scratch.file("slow.mp4"))
    for (path, way) in [(copied, ["--copy"]), (constant, ["--fps", "30"])] {
      let finished = try await run(
        slowmoPath,
        ["retime", take, "-o", path, "--range", "1..2", "--speed", "1/8", "--pitch", "varispeed"]
          + way)
      try #require(finished.status == 0, "\(finished.errors)")
    }
    let painted = try paintedNumbers(try Asset(path: constant))
    #expect(painted.count == 330)
    let due = try #require(try Asset(path: copied).videoTrack).frames
    var violations = 0
    for (slot, number) in painted.enumerated() {
      let instant = Rational(Int128(slot), over: 30)
      let last = try (0..<due.entries.count).last {
        try due.time(ofFrame: Int64($0)).seconds <= instant
      }
      if number != last { violations += 1 }
    }
    print("--fps 30: \(painted.count) frames, \(violations) slots that show another frame")
    #expect(violations == 0)
    // One second of 240 source frames at 1/8 speed fills 240 output frames, so each is shown once.
    #expect(painted[30..<270].compactMap { $0 } == Array(240..<480))
    #expect(try await packetRate(constant) == "30/1")
  }

  @Test func `Video and audio with several speed ranges end together`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let path = scratch.file("two.mov")
    let finished = try await slowmo(
      "retime", take, "-o", path, "--range", "0.5..1", "--speed", "1/4", "--range", "-1s..end",
      "--speed", "2", "--copy", "--pitch", "varispeed", "--json")
    try #require(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    // The parts last 0.5 + 2 + 2 + 0.5 seconds.
    #expect(report["duration_ns"] as? Int == 5_000_000_000)
    #expect(report["av_end_difference_ns"] as? Int == 0)
    #expect(report["max_time_error_ns"] as? Int == 0)
    #expect(try Asset(path: path).duration == MediaTime(seconds: 5))
    #expect((report["audio"] as? [String: Any])?["samples"] as? Int == 240_000)
  }

  @Test func `Exported frame images are named by frame number and time`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let finished = try await slowmo(
      "frames", take, "--at", "1", "--at", "300f", "--at", "1.2499", "-o", "{index:06}_{us}.png",
      "--csv", "times.csv", in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(
      try scratch.names() == [
        "000240_1000000.png", "000299_1245833.png", "000300_1250000.png", "times.csv",
      ])
    let painted = try paintedNumbers(try Asset(path: scratch.file("000299_1245833.png")))
    #expect(painted == [299])
    let lines = try String(contentsOfFile: scratch.file("times.csv"), encoding: .utf8)
      .split(separator: "\n")
    #expect(lines[0] == "index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate")
    #expect(lines.dropFirst().map { $0.prefix { $0 != "," } }.sorted() == ["240", "299", "300"])
    #expect(lines[1].hasPrefix("240,1000000000,"))
  }

  private func packetRate(_ path: String) async throws -> String {
    let finished = try await run(
      "ffprobe",
      [
        "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=avg_frame_rate", "-of",
        "csv=p=0", path,
      ])
    return finished.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
