// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Clips around triggers, in the command.
///
/// The tests run one after the other, since cameras at maximum speed use the whole machine until
/// their trigger.
@Suite(.serialized) struct TriggerTests {
  /// Records with triggers, and runs lines of bash after a second of frames.
  ///
  /// In these lines, `later N` waits for N more frames. The camera waits until its frames are
  /// consumed, and triggers use the camera's clock. So clips are the same on a busy machine.
  private func record(
    _ options: String, in scratch: Scratch, then lines: String
  ) async throws -> Finished {
    let script = """
      mkfifo lines
      "$1" record 'synthetic:320x240@240?pace=max&counter=counter' \(options) --json \
        <lines 2>errors >report.json &
      take=$!
      exec 3>lines
      later() {
        local wanted=$(($(frames counter) + $1))
        await '[ "$(frames counter)" -gt '$wanted' ]' $take
      }
      await 'grep -q "waiting for" errors' $take
      later 240  # Frames from before the trigger.
      \(lines)
      exec 3>&-
      wait $take
      status=$?
      cat report.json; cat errors >&2
      exit $status
      """
    return try await bash(script, in: scratch.path)
  }

  @Test(arguments: [
    ("signal", "kill -USR1 $take", "signal"), ("key", "echo >&3", "key"),
    ("udp:PORT", "echo >/dev/udp/127.0.0.1/PORT", "udp"),
    ("udp:[::1]:PORT", "echo >/dev/udp/::1/PORT", "udp"),
  ])
  func `A trigger records a clip of the time before and after it`(
    trigger: String, line: String, source: String
  ) async throws {
    let scratch = try Scratch()
    // A copy of these tests that runs at the same time must not get the datagram.
    let port = "\(try freePort())"
    let (trigger, line) = (
      trigger.replacing("PORT", with: port), line.replacing("PORT", with: port)
    )
    let finished = try await record(
      "-o clip.mov --pre 250ms --post 250ms --trigger '\(trigger)'", in: scratch, then: line)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    let ledger = try #require(report["ledger"] as? [String: Int])
    #expect(ledger["stored"] == 120)
    #expect(ledger.filter { $0.key != "expected" }.values.reduce(0, +) == ledger["expected"])
    #expect(try #require(ledger["evicted"]) > 0)
    #expect(report["stopped_by"] as? String == "duration")
    #expect(report["playable"] as? Bool == true)
    let mark = try #require(report["trigger"] as? [String: Any])
    #expect(mark["source"] as? String == source)
    // The clip has 60 frames before the frame of the trigger.
    #expect(mark["frame_index"] as? Int == 60)
    let ring = try #require(report["ring"] as? [String: Int])
    #expect(try #require(ring["peak_bytes"]) <= (try #require(ring["capacity_bytes"])))
    let info = try await slowmo("info", scratch.file("clip.mov"), "--json").document()
    let video = try #require(info["video"] as? [String: Any])
    #expect(video["frame_count"] as? Int == 120)
    let marks = try #require(info["marks"] as? [[String: Any]])
    #expect(marks.count == 1 && marks[0]["name"] as? String == "trigger")
    #expect(marks[0]["at_ns"] as? Int == mark["at_ns"] as? Int)
    #expect(marks[0]["frame_index"] as? Int == 60)
    // The metadata of the clip has the source and the time of the trigger.
    let metadata = try #require(info["metadata"] as? [String: String])
    let tag = try #require(metadata["com.overcrank.recording"])
    #expect(tag.contains("\"trigger\":{\"capture_ns\":"))
    #expect(tag.contains("\"source\":\"\(source)\""))
  }

  @Test func `A preset slows down the trigger at 30 fps`() async throws {
    let scratch = try Scratch()
    let finished = try await record(
      "-o clip.mov --pre 500ms --post 500ms --trigger signal --exec 'echo {trigger} \"{trigger}\" >at'",
      in: scratch, then: "kill -USR1 $take")
    try #require(finished.status == 0, "\(finished.errors)")
    let mark = try #require(try finished.document()["trigger"] as? [String: Any])
    let seconds = try #require(mark["at_ns"] as? Int64)
    let times = try String(contentsOfFile: scratch.file("at"), encoding: .utf8)
      .split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    #expect(times.map { Int64(($0 * 1e9).rounded()) } == [seconds, seconds])

    func retime(_ options: String...) async throws -> [String: Any] {
      let finished = try await run(
        slowmoPath, ["retime", "clip.mov", "--json", "--progress", "none"] + options,
        in: scratch.path)
      #expect(finished.status == 0, "\(finished.errors)")
      return try finished.document()
    }
    let plan = try await retime("-o", "a.mp4", "--preset", "impact", "--dry-run")
    let wanted = try await retime(
      "-o", "a.mp4", "--preset", "impact", "--at", times[0].description, "--fps", "30", "--dry-run")
    #expect(plan["plan"] as? NSArray == wanted["plan"] as? NSArray)
    #expect(plan["frames_encoded"] as? Int == wanted["frames_encoded"] as? Int)
    let copy = try await retime("-o", "a.mov", "--preset", "impact", "--copy", "--dry-run")
    #expect(copy["frames_encoded"] as? Int == 0)
    let project = try await retime("-o", "a.otio", "--preset", "impact")
    #expect(project["frames_encoded"] is NSNull && project["file"] as? String == "a.otio")
    let around = try await slowmo(
      "frames", "clip.mov", "--range", "@trigger-4f..@trigger+4f", "--csv", "-", in: scratch.path)
    #expect(around.output.split(separator: "\n").count == 9, "\(around.errors)")
  }

  @Test func `Triggers before the memory is full are ignored if requested`() async throws {
    let scratch = try Scratch()
    // The camera clicks in its first frame and at each whole second.
    func record(_ limit: String) async throws -> Finished {
      try await slowmo(
        "record", "synthetic:320x240@240", "-o", scratch.file("\(limit).mov"), "--pre", "400ms",
        "--post", "50ms", "--trigger", "audio:-12dBFS", "--quiet-period", "500ms",
        "--arm-when-full", "-t", limit, "--json")
    }
    let finished = try await record("2")
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    // The first click counts as ignored if the audio begins before it.
    #expect(try #require(report["ignored_triggers"] as? Int) <= 1)
    let mark = try #require(report["trigger"] as? [String: Any])
    #expect(try #require(mark["at_ns"] as? Int) >= 390_000_000)
    #expect(finished.errors.contains("armed: memory holds 0.4 s"), "\(finished.errors)")
    // The duration counts from the arming at 0.4 s, and ends before the click at 1 s.
    let none = try await record("0.3")
    #expect(none.status == 75)
    #expect((try none.document()["error"] as? [String: Any])?["code"] as? String == "no_trigger")
    let alone = try await slowmo(
      "record", "synthetic", "-o", scratch.file("a.mov"), "--arm-when-full", "-t", "1")
    #expect(alone.status == 64 && alone.errors.contains("--arm-when-full needs a --trigger"))
  }

  @Test func `A preset without a time needs exactly one trigger`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let missing = try await slowmo(
      "retime", take, "-o", scratch.file("a.mp4"), "--preset", "impact")
    #expect(missing.status == 64 && missing.errors.contains("has no trigger"), "\(missing.errors)")
  }

  @Test func `The --exec command runs for the clip of each trigger`() async throws {
    let scratch = try Scratch()
    try Data().write(to: URL(fileURLWithPath: scratch.file("it's 01.mov")))
    let finished = try await record(
      """
      -o 'it'\\''s {n:02}.mov' --pre 100ms --post 200ms --trigger signal --trigger key --repeat \
      --quiet-period 0 --exec 'echo {path} >> done; cp {path} copies'
      """, in: scratch,
      then: """
        mkdir copies
        echo >&3; kill -USR1 $take; await 'grep -q "clip 2" errors' $take
        echo >&3; await 'grep -q "clip 3" errors' $take
        later 48; kill -INT $take
        """)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    let files = try #require(report["files"] as? [[String: Any]])
    // Clip numbers of existing files are skipped.
    #expect(
      files.compactMap { $0["file"] as? String } == ["it's 02.mov", "it's 03.mov", "it's 04.mov"])
    #expect(report["stopped_by"] as? String == "signal")
    for file in files {
      #expect((file["ledger"] as? [String: Int])?["stored"] == 72)
      #expect(file["playable"] as? Bool == true)
    }
    let done = try String(contentsOfFile: scratch.file("done"), encoding: .utf8)
    #expect(done.split(separator: "\n").count == files.count)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: scratch.file("copies")).count
        == files.count)
  }

  @Test func `Loud audio triggers at most one clip per quiet period`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", scratch.file("clap{n}.mov"), "--pre",
      "100ms", "--post", "100ms", "--trigger", "audio:-6dBFS", "--quiet-period", "500ms",
      "--repeat", "-t", "2.5", "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let files = try #require(try finished.document()["files"] as? [[String: Any]])
    // The camera clicks and flashes at each whole second.
    #expect(files.count == 3)
    for file in files.suffix(2) {
      let mark = try #require(file["trigger"] as? [String: Any])
      #expect(mark["frame_index"] as? Int == 23 || mark["frame_index"] as? Int == 24)
      #expect((file["ledger"] as? [String: Int])?["stored"] == 48)
    }
  }

  @Test func `A capture stopped before its trigger reports no_trigger`() async throws {
    let scratch = try Scratch()
    let finished = try await record(
      "-o clip.mov --trigger signal", in: scratch, then: "kill -INT $take")
    #expect(finished.status == 75)
    let error = try #require(try finished.document()["error"] as? [String: Any])
    #expect(error["code"] as? String == "no_trigger")
    #expect((error["message"] as? String)?.contains("stopped before a trigger arrived") == true)
    #expect(try scratch.names().filter { $0.hasSuffix("mov") } == [])
  }

  @Test func `A capture without a trigger times out and writes no file`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", scratch.file("clip.mov"), "--pre", "1s",
      "--trigger", "signal", "-t", "0.3", "--json")
    #expect(finished.status == 75)
    let error = try #require(try finished.document()["error"] as? [String: Any])
    #expect(error["code"] as? String == "no_trigger")
    #expect(try scratch.names() == [])
  }

  @Test(arguments: [
    (["--pre", "1s"], "--trigger"), (["--trigger", "udp:0"], "udp:0"),
    (["--trigger", "audio:3dBFS"], "audio:3dBFS"), (["--trigger", "horn"], "horn"),
    (["--trigger", "key", "--repeat"], "{n:03}"),
    (["--trigger", "key", "--frames", "9"], "--frames"),
    (["--trigger", "key", "--pre", "-1s"], "-1s"),
    (["--quiet-period", "1s"], "--trigger"), (["--max-clips", "2"], "--trigger"),
    (["--trigger", "key", "--max-clips", "2"], "--repeat"),
    (["--trigger", "key", "--repeat", "--max-clips", "0", "-o", "{n}.mov"], "--max-clips 0"),
  ])
  func `Invalid trigger options are rejected`(options: [String], word: String) async throws {
    let scratch = try Scratch()
    let finished = try await run(
      slowmoPath, ["record", "synthetic", "-o", scratch.file("a.mov")] + options)
    #expect(finished.status == 64)
    #expect(finished.errors.contains(word), "\(finished.errors)")
    #expect(try scratch.names() == [])
  }

  @Test func `A line typed before the camera starts counts as a trigger`() async throws {
    let scratch = try Scratch()
    let options = "record synthetic:320x240@240 --trigger key --post 200ms --json --progress none"
    let script = """
      printf '\\n' | "$1" \(options) -o one.mov; echo $?
      "$1" \(options) -o none.mov </dev/null; echo $?
      """
    let finished = try await bash(script, in: scratch.path)
    let lines = finished.output.split(separator: "\n")
    #expect(lines.contains("0") && lines.contains("75"), "\(finished.output)")
    #expect(try scratch.names() == ["one.mov"])
  }

  @Test func `Triggered clips skip numbers of existing files`() async throws {
    let scratch = try Scratch()
    for name in ["c1.mov", "c3.mov"] {
      try Data([1]).write(to: URL(fileURLWithPath: scratch.file(name)))
    }
    let around = try await record(
      "-o c{n}.mov --post 50ms --trigger key --repeat", in: scratch,
      then: """
        echo >&3; await 'grep -q "c2.mov is finished" errors' $take
        echo >&3; await 'grep -q "c4.mov is finished" errors' $take
        """)
    #expect(around.status == 0, "\(around.errors)")
    #expect(
      try scratch.names().filter { $0.hasSuffix("mov") } == [
        "c1.mov", "c2.mov", "c3.mov", "c4.mov",
      ])
    let second = try Scratch()
    let finished = try await record(
      "-o directory{n}/c.mov --post 50ms --trigger key --repeat", in: second,
      then: """
        mkdir directory1 directory3
        echo >&3; await 'grep -q "directory1/c.mov is finished" errors' $take
        echo >&3; await 'grep -q "clip 2" errors' $take
        later 48  # Beyond the quiet period, which is 50 ms here.
        echo >&3; await 'grep -q "directory3/c.mov is finished" errors' $take
        """)
    // The exit code reports the failed clip, and the other clips are complete.
    #expect(finished.status == 73, "\(finished.errors)")
    let document = try finished.document()
    let files = try #require(document["files"] as? [[String: Any]])
    #expect(files.compactMap { $0["file"] as? String } == ["directory1/c.mov", "directory3/c.mov"])
    #expect(files.allSatisfy { $0["playable"] as? Bool == true })
    #expect((document["error"] as? [String: Any])?["code"] as? String == "cannot_create")
  }

  @Test func `The option --min-free ends a take if free space is too low`() async throws {
    let scratch = try Scratch()
    let finished = try await record(
      "-o c{n}.mov --trigger key --repeat --min-free 999TiB", in: scratch,
      then: "echo >&3; await 'grep -q \"clip 1\" errors' $take; later 240")
    #expect(
      finished.errors.contains("less free space than required"), "\(finished.errors)")
    #expect(!finished.output.contains("disk_full") && !finished.output.contains("no_trigger"))
    #expect(try scratch.names().filter { $0.hasSuffix("mov") } == [])
  }

  @Test func `The option --exec quotes the path of the take for the shell`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", "a $(touch bad) b.mov", "-t", "0.2",
      "--exec",
      #"cp {path} 1; cp "{path}" 2; cp '{path}' 3; cp "./{path}" 4; echo \"{path}\" >5"#,
      in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try scratch.names() == ["1", "2", "3", "4", "5", "a $(touch bad) b.mov"])
    let failing = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", "b.mov", "-t", "0.2", "--exec", "exit 3",
      in: scratch.path)
    #expect(failing.status == 0 && failing.errors.contains("the command for b.mov"))
  }

  @Test func `A take is kept if its report file cannot be created`() async throws {
    let scratch = try Scratch()
    let same = try await slowmo(
      "record", "synthetic", "-o", scratch.file("a.mov"), "-y", "--report",
      scratch.path + "/./a.mov")
    #expect(same.status == 64 && same.errors.contains("two outputs"), "\(same.errors)")
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", scratch.file("a.mov"), "-t", "0.2",
      "--json",
      "--report", scratch.file("none/report.json"))
    #expect(finished.status == 73, "\(finished.errors)")
    let document = try finished.document()
    #expect(document["playable"] as? Bool == true && document["ledger"] != nil)
    #expect((document["error"] as? [String: Any])?["code"] as? String == "cannot_create")
  }

  @Test func `The size limit of a movie includes audio written at the end`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:160x120@2?pace=max", "-o", scratch.file("a.mov"), "--max-size", "1MB",
      "--audio-codec", "pcm", "--json", "--mode", "160x120@2/grey")
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try finished.document()["stopped_by"] as? String == "max_size")
    let attributes = try FileManager.default.attributesOfItem(atPath: scratch.file("a.mov"))
    #expect(try #require(attributes[.size] as? Int) <= 1_000_000)
  }

  @Test func `The option --faststart puts the movie index before the media`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", "a.mov", "-t", "0.5", "--codec", "h264",
      "--faststart", "--json", "--title", "A serve", "--frames-csv", "a.csv", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["playable"] as? Bool == true)
    let video = try #require(report["video"] as? [String: Any])
    #expect(video["codec"] as? String == "h264" && video["profile"] as? String == "high")
    #expect(video["level"] as? String == "3.1")
    #expect(video["max_bit_rate"] as? Int == 17_500_000)
    #expect(try #require(video["bit_rate"] as? Int) > 100_000)
    let data = try Data(contentsOf: URL(fileURLWithPath: scratch.file("a.mov")))
    let index = try #require(data.range(of: Data("moov".utf8)))
    let media = try #require(data.range(of: Data("mdat".utf8)))
    #expect(index.lowerBound < media.lowerBound)
    let info = try await slowmo("info", "a.mov", "--json", in: scratch.path).document()
    #expect((info["metadata"] as? [String: String])?["title"] == "A serve")
    #expect((info["video"] as? [String: Any])?["frame_count"] as? Int == 120)
    let lines = try String(contentsOfFile: scratch.file("a.csv"), encoding: .utf8)
      .split(separator: "\n")
    #expect(lines.count == 121)
    let decoded = try await run(
      "ffmpeg", ["-v", "error", "-i", "a.mov", "-f", "null", "-"], in: scratch.path)
    #expect(decoded.status == 0 && decoded.errors.isEmpty, "\(decoded.errors)")
  }

  @Test func `A take with --max-size stays below the size and is complete`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", "synthetic:640x480@240?pace=max", "-o", scratch.file("a.mov"), "--max-size", "2MB",
      "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["stopped_by"] as? String == "max_size")
    #expect(report["playable"] as? Bool == true)
    let ledger = try #require(report["ledger"] as? [String: Int])
    #expect(ledger["stored"] == ledger["expected"])
    let attributes = try FileManager.default.attributesOfItem(atPath: scratch.file("a.mov"))
    let size = try #require(attributes[.size] as? Int)
    #expect(size <= 2_000_000)
    #expect(size > 1_700_000)
    let tiny = try await slowmo(
      "record", "synthetic:640x480@240", "-o", scratch.file("b.mov"), "--max-size", "1k", "--json")
    #expect(tiny.status != 0)
    #expect(tiny.errors.isEmpty == false || tiny.output.contains("--max-size"))
    let full = try await slowmo(
      "record", "synthetic:640x480@240", "-o", scratch.file("c.mov"), "--min-free", "999TiB")
    #expect(full.status != 0)
    #expect(full.errors.contains("--min-free"))
    #expect(try scratch.names() == ["a.mov"])
  }
}
