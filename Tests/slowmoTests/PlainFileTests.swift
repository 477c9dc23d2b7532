// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Finished and repaired takes, as other programs read them.
struct PlainFileTests {
  private static let hasReaders = ["ffprobe", "gst-launch-1.0", "mediainfo"].allSatisfy(
    Program.isInstalled)

  @Test(.enabled(if: hasReaders, "ffprobe, GStreamer or mediainfo is not installed"))
  func `FFmpeg and GStreamer and MediaInfo read all frames of a take`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let took = try await slowmo(
      "record", "synthetic:320x240@240?pace=max", "-o", path, "-t", "0.7", "--title", "A drop",
      "--json")
    let report = try took.document()
    let stored = try #require((report["ledger"] as? [String: Int])?["stored"])
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(content.range(of: Data("moof".utf8)) == nil)

    let hashes = try await Self.frameHashes(path)
    #expect(hashes.count == stored)
    // GStreamer's qtdemux writes one file for each of its buffers.
    let directory = scratch.file("buffers")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let demuxed = try await run(
      "gst-launch-1.0",
      [
        "-q", "filesrc", "location=\(path)", "!", "qtdemux", "name=d", "d.video_0", "!", "queue",
        "!", "multifilesink", "location=\(directory)/%06d",
      ])
    #expect(demuxed.status == 0, "\(demuxed.errors)")
    let sums = try await run("bash", ["-c", "cat \(directory)/* | md5sum"])
    let whole = try await run(
      "bash",
      [
        "-c",
        "ffmpeg -v error -i \(path) -map 0:v -c copy -f data - | md5sum",
      ])
    #expect(sums.output == whole.output)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == stored)
    let info = try await run("mediainfo", ["--Output=JSON", path]).document()
    let tracks = try #require((info["media"] as? [String: Any])?["track"] as? [[String: Any]])
    let video = try #require(tracks.first { $0["@type"] as? String == "Video" })
    #expect(video["FrameCount"] as? String == "\(stored)")
    #expect(video["FrameRate"] as? String == "240.000")
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `The capture rate tag is a 32-bit float as Android writes it`() async throws {
    let scratch = try Scratch()
    let (plain, killed) = (scratch.file("plain.mov"), scratch.file("killed.mov"))
    let slow = scratch.file("slow.mp4")
    _ = try await slowmo("record", "synthetic:320x240@120?pace=max", "-o", plain, "-t", "0.5")
    _ = try await slowmo("retime", plain, "-o", slow, "--speed", "1/2", "--fps", "30")
    try await Self.kill(killed, device: "synthetic:320x240@120")
    // The bytes are: size, type, data type 23, locale, and 120 as a float.
    let wanted =
      Data([0, 0, 0, 20] + Array("data".utf8) + [0, 0, 0, 23, 0, 0, 0, 0])
      + withUnsafeBytes(of: Float(120).bitPattern.bigEndian) { Data($0) }
    for path in [plain, killed, slow] {
      let content = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect(content.range(of: wanted) != nil, "\(path)")
      let tag = try await FFmpeg.probe(path, "format_tags=com.android.capture.fps")
      #expect(tag == ["120.000000"], "\(path)")
      let info = try await slowmo("info", path, "--json").document()
      let video = try #require(info["video"] as? [String: Any])
      #expect(video["capture_fps"] as? String == "120/1", "\(path)")
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `The command recover keeps all packets that were readable`() async throws {
    let scratch = try Scratch()
    let path = scratch.file("killed.mov")
    try await Self.kill(path, device: "synthetic:320x240@240?drop=5%&seed=7&pace=max")
    let before = try await Self.frameHashes(path)
    #expect(before.count >= 48)
    let repaired = try await slowmo("recover", path, "--json")
    #expect(repaired.status == 0, "\(repaired.errors)")
    let report = try repaired.document()
    let after = try await Self.frameHashes(path)
    #expect(Array(after.prefix(before.count)) == before)
    #expect(report["frame_count"] as? Int == after.count)
    #expect(report["frame_count_before"] as? Int == before.count)
    // A take with the same seed has the same intended losses.
    let take = try await Takes.lossy()
    let whole = try document(take + ".json")
    func gaps(_ report: [String: Any]) throws -> [[Int]] {
      try #require(report["gaps"] as? [[String: Any]])
        .map { [$0["after_index"] as? Int ?? -2, $0["count"] as? Int ?? 0] }
    }
    let found = try gaps(report).filter { $0[0] < after.count - 1 }
    let known = try gaps(whole).filter { $0[0] < after.count - 1 }
    #expect(found.count == known.count || after.count > 456)
    #expect(found.prefix(known.count).elementsEqual(known.prefix(found.count)))
    // Recovering the file again does not change it.
    let content = try bytes(of: path)
    let again = try await slowmo("recover", path, "--json").document()
    #expect(again["was_plain"] as? Bool == true)
    #expect(try bytes(of: path) == content)
  }

  @Test func `The command recover leaves an unrecoverable file unchanged`() async throws {
    let scratch = try Scratch()
    let path = try scratch.write(Array("no movie".utf8), as: "text.mov")
    let refused = try await slowmo("recover", path)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("it was not changed"))
    #expect(try bytes(of: path) == Array("no movie".utf8))
    #expect(try await slowmo("recover", scratch.file("missing.mov")).status == 66)
  }

  @Test func `The tables of --frames-csv and frames --csv are equal`() async throws {
    let scratch = try Scratch()
    let (path, table) = (scratch.file("take.mov"), scratch.file("take.frames.csv"))
    let took = try await slowmo(
      "record", "synthetic:320x240@120?drop=10%&seed=3&pace=max", "-o", path, "-t", "0.5",
      "--frames-csv",
      table)
    #expect(took.status == 0, "\(took.errors)")
    let other = scratch.file("again.csv")
    _ = try await slowmo("frames", path, "--csv", other)
    let text = try String(contentsOfFile: table, encoding: .utf8)
    #expect(text.hasPrefix("index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate\n"))
    #expect(try String(contentsOfFile: other, encoding: .utf8) == text)
    let refused = try await slowmo(
      "record", "synthetic", "-o", scratch.file("b.mov"), "--frames-csv", table)
    #expect(refused.status == 73)
  }

  /// The hash of each frame's packet bytes.
  private static func frameHashes(_ path: String) async throws -> [String] {
    let probed = try await run(
      "ffprobe",
      [
        "-v", "error", "-select_streams", "v:0", "-show_packets", "-show_data_hash", "md5",
        "-show_entries", "packet=data_hash", "-of", "csv=p=0", path,
      ])
    #expect(probed.status == 0, "\(probed.errors)")
    return probed.output.split(separator: "\n").map(String.init)
  }

  /// Kills a recording after the first megabyte.
  private static func kill(_ path: String, device: String) async throws {
    let script = """
      path=$2
      "$1" record "$3" -o "$path" --progress none &
      take=$!
      await '[ "$(size "$path")" -gt 1000000 ]' $take
      kill -KILL $take
      wait $take
      """
    let finished = try await bash(script, path, device)
    #expect(finished.status == 137)
  }
}
