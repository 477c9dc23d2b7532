// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankExport
@testable import SlowmoCommands

/// Exit codes, which distinguish errors in the data from errors in the options.
struct ExitCodeTests {
  private static let project = """
    {"OTIO_SCHEMA": "Timeline.1", "name": "t", "tracks": {"OTIO_SCHEMA": "Stack.1", "children": [
     {"OTIO_SCHEMA": "Track.1", "kind": "Video", "children": [{"OTIO_SCHEMA": "Clip.1",
      "effects": [{"OTIO_SCHEMA": "LinearTimeWarp.1", "effect_name": "", "time_scalar": SPEED}],
      "media_reference": {"OTIO_SCHEMA": "ExternalReference.1", "target_url": "take.mov"},
      "source_range": {"OTIO_SCHEMA": "TimeRange.1",
       "start_time": {"OTIO_SCHEMA": "RationalTime.1", "value": START, "rate": RATE},
       "duration": {"OTIO_SCHEMA": "RationalTime.1", "value": 24, "rate": 24}}}]}]}}
    """

  @Test func `Fixtures have every exit code except that of internal errors`() throws {
    let help = try String(
      contentsOfFile: ContractFixtures.path("help/slowmo.txt"), encoding: .utf8)
    let documented = try #require(help.firstMatch(of: /EXIT CODES: ([^.]*)\./)).output.1
      .matches(of: /\b\d+\b/).compactMap { Int($0.output) }
    let texts = try ContractFixtures.known.filter { $0.hasSuffix(".txt") }.map {
      try String(contentsOfFile: ContractFixtures.path($0), encoding: .utf8)
    }
    let provoked = Set(
      texts.flatMap { $0.matches(of: /(?m)^= (\d+)$/).compactMap { Int($0.output.1) } })
    // An internal error is a bug, so no known input causes one.
    #expect(Set(documented).subtracting(provoked) == [70], "\(documented)")
    struct Mistake: Error {}
    #expect(CommandError(Mistake()).status.rawValue == 70)
  }

  @Test func `A read ended by a signal is reported as a cancelled export`() {
    let exit: Int32 = -0x5449_5845  // AVERROR_EXIT: "EXIT" in little-endian order.
    let error = MediaError(exporting: CallFailure("read", "take.mov", code: exit))
    #expect(error.code == .cancelled && !error.message.contains("take.mov"))
  }

  @Test func `A call without thread or memory has one code at each stage`() {
    for number in [EAGAIN, ENOMEM] {
      let thread = CallFailure("start", "a thread", number)
      let encoder = CallFailure("open the encoder for", "out.mp4", code: -number)
      for failure in [thread, encoder] {
        let errors = [MediaError(exporting: failure), MediaError(reading: failure)]
        #expect(errors.allSatisfy { $0.code == .outOfMemory && $0.cause?.errorNumber == number })
      }
    }
    // The number decides, and not the words.
    #expect(MediaError(exporting: CallFailure("start", "a thread", EIO)).code == .writeFailed)
    #expect(
      MediaError(exporting: CallFailure("encode", "a frame", code: -EINVAL)).code
        == .unsupportedSource)
  }

  @Test func `A project with invalid times fails as invalid data`() async throws {
    let scratch = try Scratch()
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file("take.mov"))
    let cases = [
      ("1e308", "24", "1", "source_range.start_time.value"), ("0", "-24", "1", "rate"),
      ("0", "24", "\"2\"", "time_scalar"), ("9e14", "24", "1", "take.mov"),
      ("-240", "24", "1", "take.mov"),
    ]
    for (start, rate, speed, names) in cases {
      let text = Self.project.replacing("START", with: start).replacing("RATE", with: rate)
        .replacing("SPEED", with: speed)
      try text.write(toFile: scratch.file("bad.otio"), atomically: false, encoding: .utf8)
      for way in [["--copy"], ["--fps", "30"]] {
        let finished = try await run(
          slowmoPath, ["edit", "bad.otio", "-o", "out.mov", "--progress", "none"] + way,
          in: scratch.path)
        #expect(finished.status == 65, "\(start) \(rate) \(speed): \(finished.errors)")
        #expect(
          finished.errors.contains("bad.otio") && finished.errors.contains(names),
          "\(finished.errors)")
      }
    }
  }

  @Test func `A project speed that audio cannot play fails unless muted`() async throws {
    let scratch = try Scratch()
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file("take.mov"))
    let made = try await slowmo(
      "retime", "take.mov", "-o", "slow.otio", "--speed", "1/100", in: scratch.path)
    try #require(made.status == 0, "\(made.errors)")
    for (options, status) in [
      ([], 65), (["--pitch", "time-domain"], 64), (["--pitch", "mute"], 0),
    ]
      as [([String], Int32)]
    {
      let finished = try await run(
        slowmoPath,
        ["edit", "slow.otio", "-o", "a.mov", "--copy", "--progress", "none"] + options,
        in: scratch.path)
      #expect(finished.status == status, "\(options): \(finished.errors)")
      #expect(status == 0 || finished.errors.contains("slow.otio"), "\(finished.errors)")
    }
  }

  @Test func `The error for an invalid sidecar file names the file`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    for text in ["no list at all", "<key>adjustmentFormatIdentifier</key><string>other</string>"] {
      try text.write(toFile: scratch.file("a.AAE"), atomically: false, encoding: .utf8)
      let finished = try await slowmo(
        "retime", take, "-o", "out.mov", "--copy", "--sidecar", "a.AAE", in: scratch.path)
      #expect(finished.status == 65, "\(finished.errors)")
      #expect(finished.errors.contains("a.AAE") && finished.errors.contains("iPhone"))
      #expect(!finished.errors.contains("project"), "\(finished.errors)")
    }
  }

  @Test func `An output size that the codec cannot store is a usage error`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    for box in ["640x361", "641x360", "20000x20000"] {
      let finished = try await slowmo(
        "retime", take, "-o", scratch.file("out.mp4"), "--speed", "1", "--fps", "30", "--box", box)
      #expect(finished.status == 64 && finished.errors.contains(box), "\(finished.errors)")
    }
  }

  @Test func `The command recover rejects a movie with a damaged index`() async throws {
    let scratch = try Scratch()
    let take = try Data(contentsOf: URL(fileURLWithPath: try await Takes.plain()))
    let path = scratch.file("damaged.mov")
    // The boxes of the index keep their sizes, but their contents are noise.
    let index = try #require(take.range(of: Data("stsd".utf8), options: .backwards))
    var damaged = take
    for position in index.upperBound..<min(take.count, index.upperBound + 400) {
      damaged[position] = UInt8(truncatingIfNeeded: position &* 31)
    }
    let tracks = try #require(take.range(of: Data("trak".utf8)))
    for position in tracks.upperBound..<tracks.upperBound + 3_000
    where position < damaged.count {
      damaged[position] = UInt8(truncatingIfNeeded: position &* 17)
    }
    try damaged.write(to: URL(fileURLWithPath: path))
    let finished = try await slowmo("recover", path)
    #expect(finished.status == 65, "\(finished.errors)")
    #expect(finished.errors.contains(path))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == damaged)
  }

  @Test func `The container of a recording matches its file extension`() async throws {
    let scratch = try Scratch()
    func record(_ name: String, _ options: String...) async throws -> Finished {
      try await run(
        slowmoPath,
        [
          "record", "synthetic:160x120@240?pace=max", "-o", name, "--frames", "24", "--progress",
          "none",
        ]
          + options, in: scratch.path)
    }
    for name in ["a.mkv", "a.avi", "a", "a.webm", "mov", ".mov/a"] {
      let refused = try await record(name)
      #expect(refused.status == 64, "\(name): \(refused.errors)")
      #expect(refused.errors.contains(".mov or .mp4"), "\(name): \(refused.errors)")
    }
    for options in [["--codec", "ffv1"], ["--codec", "raw"], ["--audio-codec", "pcm"]] {
      let refused = try await run(
        slowmoPath,
        ["record", "synthetic:160x120@240/grey?pace=max", "-o", "a.mp4", "--frames", "24"]
          + options,
        in: scratch.path)
      #expect(refused.status == 64, "\(options): \(refused.errors)")
      #expect(refused.errors.contains("a.mp4"), "\(options): \(refused.errors)")
    }
    #expect(try scratch.names().isEmpty)
    for (name, brand) in [("a.mov", "qt  "), ("a.MP4", "iso"), ("a.m4v", "iso")] {
      for codec in ["auto", "h264"] {
        let finished = try await record(name, "--codec", codec, "-y")
        #expect(finished.status == 0, "\(name): \(finished.errors)")
        let head = try Data(contentsOf: URL(fileURLWithPath: scratch.file(name))).prefix(12)
        #expect(head.suffix(8).starts(with: Data(("ftyp" + brand).utf8)), "\(name) \(codec)")
        let info = try await slowmo("info", scratch.file(name), "--json").document()
        let video = try #require(info["video"] as? [String: Any])
        #expect(video["frame_count"] as? Int == 24, "\(name) \(codec)")
        #expect(video["capture_fps"] as? String == "240/1", "\(name) \(codec)")
        #expect(info["audio"] is [String: Any], "\(name) \(codec)")
        let probed = try await run(
          "ffprobe",
          [
            "-v", "error", "-select_streams", "v", "-count_frames", "-show_entries",
            "stream=nb_read_frames", "-of", "csv=p=0", scratch.file(name),
          ])
        #expect(probed.output.hasPrefix("24") && probed.errors.isEmpty, "\(probed.errors)")
      }
    }
  }

  @Test func `Recovering a killed MP4 take keeps its file type brand`() async throws {
    let scratch = try Scratch()
    let finished = try await bash(
      """
      "$1" record 'synthetic:160x120@240?counter=counter' -o a.mp4 --progress none >/dev/null & take=$!
      await '[ "$(size a.mp4)" -gt 200000 ]' $take
      kill -KILL $take; wait $take
      "$1" recover a.mp4 --json
      """, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(try #require(report["frame_count"] as? Int) > 10)
    #expect(report["playable"] as? Bool == true)
    let head = try Data(contentsOf: URL(fileURLWithPath: scratch.file("a.mp4"))).prefix(12)
    #expect(head.suffix(4).starts(with: Data("iso".utf8)))
  }
}
