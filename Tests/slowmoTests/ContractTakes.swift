// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Takes that the command recorded for the fixtures with `make-takes.sh`.
enum ContractTakes {
  /// Finished takes in each video and audio encoding, and a movie from another program.
  static let finished = [
    "mjpeg", "mjpeg-encoded", "mjpeg-pcm", "mjpeg-silent", "h264", "h264-copy", "ffv1",
    "ffv1-gray", "raw-yuyv", "raw-uyvy", "raw-rgb24", "raw-gray", "drops", "titled", "burst",
    "clip", "clip-h264", "camera", "foreign",
  ]
  /// Takes whose process was killed during the recording.
  static let killed = [
    "killed-mjpeg", "killed-h264", "killed-h264-copy", "killed-ffv1", "killed-raw-yuyv",
    "killed-raw-uyvy", "killed-raw-rgb24", "killed-raw-gray", "killed-drops",
  ]

  /// The packets of passthrough exports of these takes.
  static let copies = "takes/copies.txt"

  static let fixtures =
    ["make-takes.sh", copies]
    + (finished + killed).flatMap { ["takes/\($0).mov.gz", "takes/\($0).txt"] }

  /// Records missing takes while the fixtures are recorded.
  private static let made = Task {
    guard ContractFixtures.isRecording else { return }
    let finished = try await run(ContractFixtures.path("make-takes.sh"), [slowmoPath])
    try #require(finished.status == 0, "\(finished.errors)")
  }

  /// Unpacks a take into a directory as `NAME.mov`.
  static func unpack(_ name: String, into directory: Scratch) async throws {
    try await made.value
    let packed = ContractFixtures.path("takes/\(name).mov.gz")
    try FileManager.default.copyItem(atPath: packed, toPath: directory.file("\(name).mov.gz"))
    let finished = try await run("gzip", ["-d", directory.file("\(name).mov.gz")])
    try #require(finished.status == 0, "\(finished.errors)")
  }
}

/// Takes of earlier versions, which must stay readable.
@Suite(.serialized, .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
struct ContractTakeTests {
  @Test(arguments: ContractTakes.finished)
  func `Command output about a finished take matches its fixture`(name: String) async throws {
    let scratch = try Scratch()
    try await ContractTakes.unpack(name, into: scratch)
    var transcript = Transcript(in: scratch)
    try await read("\(name).mov", &transcript)
    try ContractFixtures.check(transcript.text, is: "takes/\(name).txt")
  }

  @Test(arguments: ContractTakes.killed)
  func `Command output about a killed take matches its fixture`(name: String) async throws {
    let scratch = try Scratch()
    try await ContractTakes.unpack(name, into: scratch)
    var transcript = Transcript(in: scratch)
    try await transcript.slowmo("info \(name).mov --json")
    try await transcript.slowmo("recover \(name).mov --json")
    try await read("\(name).mov", &transcript)
    try ContractFixtures.check(transcript.text, is: "takes/\(name).txt")
  }

  @Test func `The packets of passthrough exports match their fixtures`() async throws {
    let scratch = try Scratch()
    for name in ["mjpeg", "h264", "drops"] { try await ContractTakes.unpack(name, into: scratch) }
    var transcript = Transcript(in: scratch)
    for (name, line) in [
      ("a.mov", "retime mjpeg.mov -o a.mov --speed 1/8 --copy --pitch mute"),
      ("b.mp4", "retime mjpeg.mov -o b.mp4 --range 0.05..0.1 --speed 1/3 --copy --pitch mute"),
      ("c.mov", "retime h264.mov -o c.mov --ramp '0.1=1 0.2=1/8 0.4=1' --copy --pitch mute"),
      ("d.mov", "retime h264.mov -o d.mov --preset freeze --at 0.3 --copy --pitch mute"),
      ("e.mov", "retime drops.mov -o e.mov --playback-fps 30 --copy"),
    ] {
      try await transcript.slowmo("\(line) --progress none")
      let packets = try await Self.packets(scratch.file(name), of: ["-select_streams", "v"])
      transcript.add(packets + "\n")
    }
    try ContractFixtures.check(transcript.text, is: ContractTakes.copies)
  }

  /// Adds the description of a take, its frame table and its packets to a transcript.
  private func read(_ take: String, _ transcript: inout Transcript) async throws {
    try await transcript.slowmo("info \(take) --json")
    try await transcript.slowmo("frames \(take) --csv table.csv")
    let table = transcript.directory.file("table.csv")
    transcript.add(try String(contentsOfFile: table, encoding: .utf8) + "\n")
    transcript.add(try await Self.packets(transcript.directory.file(take)))
  }

  /// A line for each packet: track, times in ticks, size in bytes, key frame flag and checksum.
  private static func packets(
    _ path: String, of streams: [String] = []
  ) async throws -> String {
    let probed = try await run(
      "ffprobe",
      streams + [
        "-v", "error", "-show_packets", "-show_data_hash", "CRC32", "-show_entries",
        "packet=stream_index,pts,dts,duration,size,flags,data_hash", "-of", "compact=nk=1:p=0",
        path,
      ])
    #expect(probed.status == 0 && probed.errors == "", "\(probed.errors)")
    let lines = probed.output.split(separator: "\n").map {
      // ffprobe versions differ in the number of flags that they print.
      $0.replacing(/\|(K?)[_DC]*\|CRC32:/) { "|\($0.output.1)|" }
    }
    return "# packets: track|pts|dts|duration|bytes|key frame|CRC32\n"
      + lines.map { "\($0)\n" }.joined()
  }
}
