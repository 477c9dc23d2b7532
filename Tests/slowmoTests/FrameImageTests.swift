// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The images and the table rows that `frames` exports: their rotation and selection, and the time `end`.
struct FrameImageTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(
    .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"),
    arguments: [
      [1, 0, 0, 1], [0, 1, -1, 0], [-1, 0, 0, -1], [0, -1, 1, 0],
      [-1, 0, 0, 1], [1, 0, 0, -1], [0, 1, 1, 0], [0, -1, -1, 0],
    ] as [[Int32]])
  func `Exported frame images are rotated and mirrored as by ffmpeg`(matrix: [Int32]) async throws {
    var recipe = MovieRecipe.constant(50, count: 6)
    recipe.displayMatrix = [
      matrix[0] << 16, matrix[1] << 16, 0, matrix[2] << 16, matrix[3] << 16, 0, 0, 0, 1 << 30,
    ]
    let clip = scratch.file("clip.mov")
    try recipe.write(to: clip)
    let pixels = ["-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    // The painted number of frame 5, the last one, is not symmetric.
    let options: [(name: String, options: [String], decoding: [String])] = [
      ("upright.png", [], []), ("stored.png", ["--rotation", "keep"], ["-noautorotate"]),
    ]
    for (name, options, decoding) in options {
      let finished = try await run(
        slowmoPath, ["frames", clip, "--at", "5f", "-o", scratch.file(name)] + options)
      try #require(finished.status == 0, "\(finished.errors)")
      let isOnSide = matrix[0] == 0 && name == "upright.png"
      let size = try await FFmpeg.probe(scratch.file(name), "stream=width,height")
      #expect(size == [isOnSide ? "32,128" : "128,32"])
      let found = try await FFmpeg.converted(scratch.file(name), pixels)
      let wanted = try await FFmpeg.converted(
        clip, ["-vf", "select=eq(n\\,5)"] + pixels, decoding: decoding)
      #expect(found.count == 128 * 32 * 3 && found.count == wanted.count)
      // slowmo and ffmpeg convert colors in a different order, so the results differ a little.
      let farthest = zip(found, wanted).map { abs(Int($0) - Int($1)) }.max() ?? 0
      #expect(farthest <= 3, "\(name) of \(matrix)")
    }
  }

  @Test func `A rotation by 45 degrees is ignored with a warning`() async throws {
    var recipe = MovieRecipe.constant(50, count: 2)
    recipe.displayMatrix = [46_341, 46_341, 0, -46_341, 46_341, 0, 0, 0, 1 << 30]
    let clip = scratch.file("clip.mov")
    try recipe.write(to: clip)
    let finished = try await slowmo("frames", clip, "--at", "0", "-o", scratch.file("a.png"))
    #expect(finished.status == 0)
    #expect(finished.errors.contains("not a multiple of 90 degrees"), "\(finished.errors)")
    let size = try await FFmpeg.probe(scratch.file("a.png"), "stream=width,height")
    #expect(size == ["128,32"])
  }

  @Test func `The option --at end exports the last frame`() async throws {
    let clip = scratch.file("clip.mov")
    try MovieRecipe.constant(50, count: 6).write(to: clip)
    let finished = try await slowmo(
      "frames", clip, "--at", "end", "--at", "-1f", "-o", scratch.file("{index}.png"), "--json")
    #expect(finished.status == 64)
    let last = try await slowmo(
      "frames", clip, "--at", "end", "-o", scratch.file("{index}.png"), "--json")
    let frames = try #require(try last.document()["frames"] as? [[String: Any]])
    #expect(frames.map { $0["index"] as? Int } == [5])
    for time in ["0.12", "6f", "1m"] {
      let outside = try await slowmo("frames", clip, "--at", time, "-o", scratch.file("no.png"))
      #expect(outside.status == 64, "\(time)")
    }
  }

  @Test func `The table lists the frames that a selection chooses`() async throws {
    let clip = scratch.file("clip.mov")
    try MovieRecipe.constant(50, count: 6).write(to: clip)
    let selections: [([String], [Int])] = [
      ([], [0, 1, 2, 3, 4, 5]), (["--range", "0.03..0.08"], [1, 2, 3]), (["--step", "4"], [0, 4]),
      (["--at", "end", "--at", "0"], [5, 0]), (["--range", "2f..", "--step", "2"], [2, 4]),
    ]
    for (options, indices) in selections {
      let finished = try await run(
        slowmoPath, ["frames", clip, "--csv", "-", "--progress", "none"] + options)
      let rows = finished.output.split(separator: "\n")
      #expect(rows.first == "index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate")
      #expect(rows.dropFirst().map { Int($0.prefix { $0 != "," }) } == indices, "\(options)")
    }
  }
}
