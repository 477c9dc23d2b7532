// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import TestSupport
import Testing

/// The command with takes in several files, and with metadata.
struct SegmentedRecordTests {
  private let camera = "synthetic:160x120@240?pace=max"

  @Test func `A segmented take reports each file and the total counts`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", camera, "-o", "game_{n:03}.mov", "-t", "1.25", "--segment", "500ms",
      "--audio-codec", "pcm", "--report", "report.json", "--json", "--progress", "json",
      in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    #expect(report["file"] as? String == "game_{n:03}.mov")
    #expect(report["stopped_by"] as? String == "duration")
    #expect(report["duration_ns"] as? Int == 1_250_000_000)
    let files = try #require(report["files"] as? [[String: Any]])
    let names = (1...3).map { "game_00\($0).mov" }
    #expect(files.compactMap { $0["file"] as? String } == names)
    let stored = files.compactMap { ($0["ledger"] as? [String: Int])?["stored"] }
    #expect(stored == [120, 120, 60])
    #expect((report["ledger"] as? [String: Int])?["stored"] == 300)
    #expect((report["ledger"] as? [String: Int])?["expected"] == 300)
    let joins = try FileJoins(names.map(scratch.file))
    #expect(joins.isWhole && joins.audio.count == 60_000)
    #expect(try await DocumentTests().misfit(finished.output, verb: "record", scratch) == nil)
    let events = finished.errors.split(separator: "\n").filter { $0.contains("\"file\"") }
    for name in names { #expect(events.contains { $0.contains(name) }, "\(name)") }
    // A second take continues with the first free number. As text, its report has a line for each
    // file.
    let second = try await slowmo(
      "record", camera, "-o", "game_{n:03}.mov", "--frames", "240", "--segment", "0.5",
      in: scratch.path)
    #expect(second.status == 0, "\(second.errors)")
    #expect(second.output.contains("game_004.mov: 120 frames in 0.500 s, 0 lost, playable"))
  }

  @Test func `A take continues in the next file when the camera returns`() async throws {
    let scratch = try Scratch()
    let library = try await FakeCameras.library()
    let finished = try await run(
      "env",
      [
        "FAKEVIDEO=hfr-usb mjpegbytes=4000 unplug=240 replug=0.5", "LD_PRELOAD=\(library)",
        slowmoPath, "record", "/dev/fakevideo0", "-o", "a_{n}.mov", "--mode", "640x360@240/mjpg",
        "--reconnect", "5min", "--frames", "300", "--json", "--progress", "none",
      ], in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let report = try finished.document()
    let files = try #require(report["files"] as? [[String: Any]])
    #expect(files.compactMap { $0["file"] as? String } == ["a_1.mov", "a_2.mov"])
    #expect(files.compactMap { $0["stopped_by"] as? String } == ["device_lost", "frames"])
    #expect(files.allSatisfy { $0["playable"] as? Bool == true })
    let ledger = try #require(report["ledger"] as? [String: Int])
    // The camera is disconnected for 120 frame periods, or longer if the first reconnection attempt
    // is late.
    #expect(try #require(ledger["stored"]) == 300)
    #expect(try #require(ledger["lost_device"]) >= 119)
    let gaps = try #require(report["gaps"] as? [[String: Any]])
    #expect(gaps.contains { $0["cause"] as? String == "lost_device" }, "\(gaps)")
    #expect(report["stopped_by"] as? String == "frames" && report["error"] == nil)
  }

  @Test(arguments: [
    ["--segment", "1s"], ["--reconnect", "1s"], ["--segment", "0"], ["--segment", "-1s"],
    ["-o", "a{n}.mov", "--segment", "1s", "--trigger", "key"],
    ["-o", "a{n}.mov", "--segment", "1s", "--frames-csv", "a.csv"],
    ["-o", "a{n}.mov", "--reconnect", "1s", "--burst"], ["-o", "a{n}.mov", "--segment", "soon"],
    ["--metadata-fd", "99"], ["--metadata-fd", "-1"], ["--metadata-fd", "1"],
    ["--metadata-fd", "0", "--trigger", "key"],
    ["--tag", "make"], ["--tag", "=Acme"], ["--tag", "com.overcrank.recording=x"],
    ["--location", "+91+000/"], ["--location", "Bern"], ["--location", "-90.1+000/"],
  ])
  func `Invalid segment or tag options prevent a recording`(options: [String]) async throws {
    let scratch = try Scratch()
    let output = options.contains("-o") ? [] : ["-o", "a.mov"]
    let finished = try await run(
      slowmoPath, ["record", camera, "-t", "1"] + output + options, in: scratch.path)
    #expect(finished.status == 64, "\(finished.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).isEmpty)
  }

  @Test(arguments: ["3<values", "3< <(cat values)"])
  func `The option --metadata-fd records metadata values of frames`(input: String) async throws {
    let scratch = try Scratch()
    let lines = (0..<1_000).map { number in
      let value = number % 3 == 0 ? "\"t\(number)\"" : number % 3 == 1 ? "\(number)" : "\(number).5"
      return "{\"key\":\"com.example.k\(number % 7)\",\"value\":\(value),\"frame\":\(number * 2)}"
    }
    let bad = [
      "{\"key\":\"a\",\"value\":1,\"frame\":3000000000}",
      "", "{\"key\":\"a\"}", "nonsense", "{\"key\":\"a\\u0000\",\"value\":1,\"frame\":1}",
      "{\"key\":\"a\",\"value\":\"\\u0000\",\"frame\":1}",
      "{\"key\":\"a\",\"value\":1,\"frame\":-1}",
    ]
    _ = try scratch.write(
      Array((lines + bad).joined(separator: "\n").utf8), as: "values")
    // The camera does not wait for the program that writes values, so the take ends after the last
    // value.
    let finished = try await bash(
      """
      "$1" record 'synthetic:160x120@240?pace=max&counter=counter' -o a.mov --metadata-fd 3 \
        --progress none 2>errors \(input) &
      take=$!
      await '[ "$(frames counter)" -gt 2400 ] && grep -q "line 1007 of" errors' $take
      kill -INT $take
      status=0
      wait $take || status=$?
      cat errors >&2
      exit $status
      """, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    for number in [1_003, 1_004, 1_005, 1_006, 1_007] {
      #expect(finished.errors.contains("ignored line \(number) of the metadata"))
    }
    #expect(finished.errors.contains("1 metadata value was not stored"))
    let wanted = (0..<1_000).map { number in
      let value = number % 3 == 0 ? "t\(number)" : number % 3 == 1 ? "\(number)" : "\(number).5"
      return "\(number * 2) com.example.k\(number % 7) \(value)"
    }
    #expect(try await timedValues("a.mov", scratch) == wanted)
    let info = try await slowmo("info", "a.mov", "--json", in: scratch.path)
    let timed = try #require(try info.document()["timed_metadata"] as? [String: Any])
    #expect(timed["count"] as? Int == 1_000)
    #expect((timed["keys"] as? [String])?.count == 7)
    #expect(try await DocumentTests().misfit(info.output, verb: "info", scratch) == nil)
    // A copy keeps the values at their frames.
    let copy = try await slowmo(
      "retime", "a.mov", "-o", "b.mov", "--speed", "1/2", "--copy", "--json", in: scratch.path)
    #expect(copy.status == 0 && !copy.output.contains("mebx"), "\(copy.output)")
    #expect(try await timedValues("b.mov", scratch) == wanted)
  }

  /// The values of a movie's timed metadata as lines with the frame, the key and the value.
  private func timedValues(_ name: String, _ scratch: Scratch) async throws -> [String] {
    let printed = try await slowmo("info", name, "--timed-metadata", in: scratch.path)
    return try printed.output.split(separator: "\n").map { line in
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      let value = try #require(object["value"])
      let text = try value as? String ?? "\(#require(value as? NSNumber))"
      return "\(try #require(object["frame_index"])) \(try #require(object["key"])) \(text)"
    }
  }

  @Test func `Recorded tags and locations are read back by info`() async throws {
    let scratch = try Scratch()
    let finished = try await slowmo(
      "record", camera, "-o", "a.mov", "--frames", "24", "--tag", "make=Acme", "--tag",
      "description=a=b", "--tag", "com.example.lane=4", "--location", "-46.9481-007.4474/",
      in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let info = try await slowmo("info", "a.mov", "--json", in: scratch.path).document()
    let metadata = try #require(info["metadata"] as? [String: String])
    #expect(metadata["com.apple.quicktime.make"] == "Acme")
    #expect(metadata["com.apple.quicktime.description"] == "a=b")
    #expect(metadata["com.example.lane"] == "4")
    #expect(metadata["com.apple.quicktime.location.ISO6709"] == "-46.9481-007.4474/")
  }
}
