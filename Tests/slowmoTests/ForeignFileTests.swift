// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// Options that select tracks, and messages about files that are truncated or refer to other files.
struct ForeignFileTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func clip(_ name: String, _ options: [String], frames: Int = 20) async throws -> String {
    let path = scratch.file(name)
    try await FFmpeg.makeClip(path, frames: frames, ["-s", "64x48"] + options)
    return path
  }

  /// A movie with two video tracks of 64x48 and 32x32, and two audio tracks, one of them marked as
  /// Swedish.
  private func tracks() async throws -> String {
    let path = scratch.file("tracks.mkv")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=20:d=0.5", "-f", "lavfi", "-i"]
        + ["testsrc2=s=32x32:r=40:d=0.5", "-f", "lavfi", "-i", "sine=f=300:r=48000:d=0.5"]
        + ["-f", "lavfi", "-i", "sine=f=700:r=44100:d=0.5", "-map", "0", "-map", "1", "-map", "2"]
        + ["-map", "3", "-c:v", "mjpeg", "-c:a", "pcm_s16le", "-metadata:s:a:1", "language=swe"])
    return path
  }

  @Test func `Tracks of a movie are listed and chosen by number`() async throws {
    let movie = try await tracks()
    let info = try await slowmo("info", movie, "--json").document()
    let list = try #require(info["tracks"] as? [[String: Any]])
    #expect(list.compactMap { $0["index"] as? Int } == [1, 2, 1, 2])
    #expect(list.compactMap { $0["kind"] as? String } == ["video", "video", "audio", "audio"])
    #expect(list[3]["language"] as? String == "swe" && list[3]["codec"] as? String == "pcm_s16le")
    #expect(list.allSatisfy { $0["default"] is Bool && $0["enabled"] is Bool })
    let checked = try await slowmo("check", movie, "--video-track", "2", "--json").document()
    #expect(checked["frame_count"] as? Int == 20)
    let frames = scratch.file("{index}.gray")
    let raw = try await run(
      slowmoPath, ["frames", movie, "--video-track", "2", "--raw", "gray8", "-o", frames])
    #expect(raw.status == 0, "\(raw.errors)")
    #expect(try bytes(of: scratch.file("19.gray")).count == 32 * 32)
    let output = scratch.file("made.mov")
    let made = try await slowmo(
      "retime", movie, "-o", output, "--speed", "1/2", "--copy", "--video-track", "2",
      "--audio-track", "2")
    #expect(made.status == 0, "\(made.errors)")
    let asset = try Asset(path: output)
    #expect(asset.videoTrack?.width == 32 && asset.audioTrack?.sampleRate == 44_100)
    let silent = try await slowmo(
      "retime", movie, "-o", output, "-y", "--speed", "1/2", "--copy", "--audio-track", "none")
    #expect(silent.status == 0, "\(silent.errors)")
    #expect(try Asset(path: output).audioTrack == nil)
    let missing = try await slowmo("check", movie, "--video-track", "3", "--json")
    #expect(missing.status == 64)
    let error = try #require(try missing.document()["error"] as? [String: Any])
    #expect(error["code"] as? String == "no_such_track")
    #expect(try await slowmo("check", movie, "--video-track", "0").status == 64)
  }

  @Test(arguments: ["avi", "mkv", "flv"])
  func `A truncated AVI or MKV or FLV file is reported and exported`(
    container: String
  ) async throws {
    let whole = try await clip("whole.\(container)", ["-c:v", "flv1"])
    let bytes = try bytes(of: whole)
    #expect(try Asset(path: whole).truncation == nil)
    let cut = try scratch.write(Array(bytes[..<(bytes.count * 2 / 3)]), as: "cut.\(container)")
    let info = try await slowmo("info", cut, "--json").document()
    let truncation = try #require(info["truncation"] as? [String: Any])
    let readable = try #require(truncation["readable_frames"] as? Int)
    #expect((5..<20).contains(readable))
    if container == "avi" { #expect(truncation["stated_frames"] as? Int == 20) }
    let refused = try await slowmo("recover", cut)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("is truncated") && refused.errors.contains("-o there.mov"))
    let copied = scratch.file("copy.mov")
    let recovered = try await slowmo("recover", cut, "-o", copied)
    #expect(recovered.status == 0, "\(recovered.errors)")
    #expect(try Asset(path: copied).videoTrack?.frameCount == readable)
  }

  @Test func `Notes of a file are in each document`() async throws {
    let part = try bytes(of: await clip("part.ts", ["-c:v", "mpeg2video"]))
    _ = try scratch.write(part + part, as: "joined.ts")
    let verbs = [
      ["info"], ["check"], ["frames", "--csv", "a.csv"], ["still", "sheet", "-o", "a.png"],
      ["measure", "--at", "0", "--points", "1,1 2,2"], ["scan", "--dry-run"],
      ["track", "--at", "0", "--box", "0,0,32,32"],
      ["play", "--terminal", "--audio", "none", "--speed", "8"],
    ]
    for verb in verbs {
      let finished = try await run(
        slowmoPath, [verb[0]] + verb.dropFirst() + ["joined.ts", "--json"], in: scratch.path)
      let notes = try finished.document()["notes"] as? [String]
      let isNamed = notes?.contains { $0.contains("clock restarts") } == true
      #expect(isNamed, "\(verb[0]): \(finished.errors)")
      #expect(finished.errors.contains("clock restarts"), "\(verb[0])")
    }
    let several = try await slowmo(
      "compare", "joined.ts", "joined.ts", "-o", "a.mp4", "--fps", "20", "--json", "--dry-run",
      in: scratch.path)
    let notes = try #require(try several.document()["notes"] as? [String])
    #expect(notes.count { $0.hasPrefix("joined.ts: the clock restarts") } == 2)
  }

  @Test func `The error for an HLS playlist as input is one short line`() async throws {
    let list = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.ts\n#EXT-X-ENDLIST\n"
    let path = try scratch.write(Array(list.utf8), as: "list.m3u8")
    let refused = try await slowmo("info", path)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("reads it as hls"), "\(refused.errors)")
    #expect(!refused.errors.contains("whitelist"))
  }

  @Test func `The error for a file cut inside a GOP suggests --on-error`() async throws {
    let whole = try await clip("whole.ts", ["-c:v", "libx264", "-g", "10"], frames: 30)
    let bytes = try bytes(of: whole)
    let packets = bytes.count / 188
    let cut = Array(bytes[..<(188 * 3)]) + Array(bytes[(188 * (packets / 5))...])
    let path = try scratch.write(cut, as: "inside.ts")
    let export = ["retime", path, "-o", scratch.file("out.mov"), "--speed", "1/2", "--fps", "30"]
    let refused = try await run(slowmoPath, export)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("starts inside a group of pictures"), "\(refused.errors)")
    #expect(refused.errors.contains("--on-error skip"))
    let skipped = try await run(slowmoPath, export + ["--on-error", "skip"])
    #expect(skipped.status == 0, "\(skipped.errors)")
    // The command `still` has no option --on-error, so its error suggests an export with this
    // option.
    let sheet = try await slowmo("still", "sheet", path, "-o", scratch.file("sheet.png"))
    #expect(sheet.status == 65)
    #expect(sheet.errors.contains("slowmo retime --on-error skip"), "\(sheet.errors)")
  }

  @Test func `The command info reports that a movie is mirrored`() async throws {
    let path = try await clip("whole.mov", ["-c:v", "mjpeg"], frames: 2)
    var movie = try PatchedMovie(path)
    try movie.set(Int32(-0x1_0000), at: 40, of: "moov/trak/tkhd")
    let mirrored = try scratch.write(movie.bytes, as: "mirrored.mov")
    let info = try await slowmo("info", mirrored)
    #expect(info.output.contains(", mirrored for display"), "\(info.output)")
    let document = try await slowmo("info", mirrored, "--json").document()
    let video = try #require(document["video"] as? [String: Any])
    #expect(video["mirrored"] as? Bool == true && video["rotation"] as? Int == 0)
  }

  @Test func `A project with only titles fails because it has no media`() async throws {
    let project = """
      <fcpxml version="1.9"><resources/><project><sequence><spine>
      <title name="Hello" offset="0s" duration="1s"/></spine></sequence></project></fcpxml>
      """
    _ = try scratch.write(Array(project.utf8), as: "titles.fcpxml")
    let refused = try await slowmo(
      "edit", "titles.fcpxml", "-o", "a.mov", "--fps", "30", in: scratch.path)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("has no media"), "\(refused.errors)")
  }

  @Test func `The last frame of an AVI file lasts as long as other frames`() async throws {
    // At 600 ticks per second, FFmpeg writes empty packets between the frames.
    let path = scratch.file("fast.avi")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=30:d=0.4", "-c:v", "mjpeg", "-r", "600"]
        + ["-fps_mode", "passthrough", "-enc_time_base", "1/600"])
    let frames = try #require(try Asset(path: path).videoTrack).frames
    #expect(frames.entries.count == 12)
    #expect(frames.endTicks * 30 == Int64(frames.timescale) * 12, "\(frames.endTicks)")
  }
}
