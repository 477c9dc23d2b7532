// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Exports in shards by the command, which can be repeated, and the joining of shards.
struct ShardCommandTests {
  private let scratch: Scratch

  init() async throws {
    scratch = try Scratch()
    let take = try await Takes.plain()
    let made = try await slowmo(
      "retime", take, "-o", scratch.file("p.otio"), "--range", "1..2", "--speed", "1/4")
    try #require(made.status == 0, "\(made.errors)")
  }

  private func edit(_ options: String) async throws -> Finished {
    try await bash(
      "exec \"$1\" edit p.otio -o clip.mp4 --fps 30 --pitch mute --json --progress none \(options)",
      in: scratch.path)
  }

  private func checked(_ finished: Finished) async throws -> [String: Any] {
    let misfit = try await DocumentTests().misfit(finished.output, verb: "edit", scratch)
    #expect(misfit == nil)
    return try finished.document()
  }

  @Test func `Joining shards reports a missing shard`() async throws {
    let planned = try await checked(edit("--shard 2/3 --dry-run"))
    #expect(planned["file"] as? String == "clip.shard-2-of-3.mov")
    // 7 s at 30 fps are 210 frames, in GOPs of 60 frames.
    #expect(
      planned["shard"] as? [String: Int]
        == ["number": 2, "count": 3, "first_frame": 60, "frame_count": 60])
    for number in [1, 3] {
      let made = try await edit("--shard \(number)/3")
      #expect(made.status == 0, "\(made.output)")
    }
    let early = try await edit("--join")
    #expect(early.status == 66)
    let error = try #require(try await checked(early)["error"] as? [String: String])
    #expect(error["code"] == "shard_missing")
    #expect(error["hint"]?.contains("2/3") == true && error["hint"]?.contains("--shard") == true)
    #expect(try await edit("--shard 2/3").status == 0)
    let again = try await checked(edit("--shard 2/3"))
    #expect(again["kept"] as? Bool == true && again["dry_run"] as? Bool == false)
    let joined = try await checked(edit("--join"))
    #expect(joined["frames_encoded"] as? Int == 210)
    // A finished movie no longer needs its shards.
    for number in 1...3 {
      try FileManager.default.removeItem(atPath: scratch.file("clip.shard-\(number)-of-3.mov"))
    }
    #expect(try await checked(edit("--join"))["kept"] as? Bool == true)
    #expect(try scratch.names().filter { $0.hasPrefix("clip") } == ["clip.mp4"])
  }

  @Test(arguments: [
    "--shard 4/3", "--shard 0/3", "--shard 1/2 --join", "--shard 1/2 --on-error skip",
    "--shard 1/9", "--shard 1/2 --jobs 2",
  ])
  func `Invalid shard options are usage errors`(options: String) async throws {
    #expect(try await edit(options).status == 64)
  }

  @Test func `A passthrough export rejects shards`() async throws {
    let finished = try await slowmo(
      "edit", scratch.file("p.otio"), "-o", scratch.file("f.mov"), "--copy", "--shard", "1/2")
    #expect(finished.status == 64)
  }
}
