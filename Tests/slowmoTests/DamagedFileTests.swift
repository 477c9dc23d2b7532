// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import TestSupport
import Testing

/// Truncated and damaged movies as inputs of the command.
struct DamagedFileTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Writes a movie with the index at the front, truncated to 60 %.
  private func cutOff() async throws {
    try await FFmpeg.makeClip(
      scratch.file("whole.mp4"), frames: 60,
      ["-c:v", "libx264", "-bf", "0", "-movflags", "+faststart"])
    let movie = try bytes(of: scratch.file("whole.mp4"))
    _ = try scratch.write(Array(movie.prefix(movie.count * 6 / 10)), as: "cut.mp4")
  }

  @Test func `Readable frames of a truncated file are counted and exported`() async throws {
    try await cutOff()
    let info = try await slowmo("info", "cut.mp4", "--json", in: scratch.path)
    #expect(info.status == 0)
    let document = try info.document()
    let truncation = try #require(document["truncation"] as? [String: Int])
    let count = try #require(truncation["readable_frames"])
    #expect(truncation["stated_frames"] == 60 && (10..<60).contains(count))
    #expect((document["video"] as? [String: Any])?["frame_count"] as? Int == count)
    let text = try await slowmo("info", "cut.mp4", in: scratch.path)
    #expect(text.output.contains("truncated: \(count) of 60 frames can be read"))

    let refused = try await slowmo("recover", "cut.mp4", in: scratch.path)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("\(count) of 60") && refused.errors.contains("-o"))
    let recovered = try await slowmo(
      "recover", "cut.mp4", "-o", "there.mov", "--json", in: scratch.path)
    #expect(recovered.status == 0)
    let report = try recovered.document()
    #expect(report["frame_count"] as? Int == count && report["frames_lost"] as? Int == 60 - count)
    #expect(report["output"] as? String == "there.mov")
    #expect(try Asset(path: scratch.file("there.mov")).videoTrack?.frameCount == count)
    let again = try await slowmo("recover", "cut.mp4", "-o", "there.mov", in: scratch.path)
    #expect(again.status == 73)

    let stopped = try await slowmo(
      "retime", "cut.mp4", "-o", "a.mov", "--speed", "1/2", "--copy", in: scratch.path)
    #expect(stopped.status == 65)
    let held = try await slowmo(
      "retime", "cut.mp4", "-o", "a.mov", "--speed", "1/2", "--copy", "--on-error", "hold",
      in: scratch.path)
    #expect(held.status == 0 && held.errors.contains("\(count) of 60"))
    #expect(try Asset(path: scratch.file("a.mov")).videoTrack?.frameCount == count)
  }

  @Test func `An undecodable frame is held or skipped as --on-error says`() async throws {
    try await FFmpeg.makeClip(scratch.file("plain.mov"), frames: 10, ["-c:v", "mjpeg"])
    var movie = try bytes(of: scratch.file("plain.mov"))
    let packet = try await FFmpeg.probe(
      scratch.file("plain.mov"), "packet=pos,size", stream: "v:0")[4]
    let numbers = packet.split(separator: ",").compactMap { Int($0) }
    movie.replaceSubrange(
      numbers[1]..<numbers[0] + numbers[1], with: repeatElement(0, count: numbers[0]))
    _ = try scratch.write(movie, as: "damaged.mov")
    let arguments = ["frames", "damaged.mov", "-o", "{index}.png", "--json", "-y", "--on-error"]
    for (policy, count) in [("hold", 10), ("skip", 9)] {
      let finished = try await run(slowmoPath, arguments + [policy], in: scratch.path)
      #expect(finished.status == 0)
      let document = try finished.document()
      #expect(document["undecodable_frames"] as? [Int] == [4])
      #expect((document["frames"] as? [Any])?.count == count)
      #expect(finished.errors.contains("frame 4"))
      #expect(
        FileManager.default.fileExists(atPath: scratch.file("4.png")) == (policy == "hold"))
      if policy == "hold" {
        #expect(
          try bytes(of: scratch.file("4.png")) == bytes(of: scratch.file("3.png")))
        try FileManager.default.removeItem(atPath: scratch.file("4.png"))
      }
    }
    let stopped = try await run(slowmoPath, arguments + ["stop"], in: scratch.path)
    #expect(stopped.status == 65)
    let exported = try await slowmo(
      "retime", "damaged.mov", "-o", "b.mov", "--speed", "1", "--fps", "30", "--on-error", "skip",
      "--json", in: scratch.path)
    let frames = try exported.document()["undecodable_frames"] as? [[String: Any]]
    #expect(frames?.map { $0["index"] as? Int } == [4])
    // The key w of play uses the policy of the option --on-error, too.
    _ = try scratch.write(Array("0 w\n".utf8), as: "keys.txt")
    for (policy, status) in [("hold", 0), ("stop", 65)] as [(String, Int32)] {
      let written = try await slowmo(
        "play", "damaged.mov", "-o", "\(policy).mov", "--fps", "30", "--on-error", policy,
        "--script", "keys.txt", "--audio", "none", in: scratch.path)
      #expect(written.status == status, "\(written.errors)")
    }
  }
}
