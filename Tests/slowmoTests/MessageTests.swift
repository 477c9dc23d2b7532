// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Times and file names in messages, and runs without any.
struct MessageTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A movie of 120 frames at 60000/1001 fps, with a key frame every 60 frames.
  private func clip() throws -> String {
    var recipe = MovieRecipe.constant(60, count: 120).h264(gop: 60, reordered: false)
    recipe.timescale = 60_000
    recipe.times = (0..<120).map { $0 * 1_001 }
    recipe.end = 120 * 1_001
    let path = scratch.file("clip.mov")
    try recipe.write(to: path)
    return path
  }

  @Test func `A recording logs nothing without a logger`() async throws {
    // The standard error of the process would show every message.
    let finished = try await run(
      slowmoPath,
      [
        "record", "synthetic:128x96@240?pace=max&drop=5%&seed=3", "--frames", "20", "--progress",
        "none", "-o", scratch.file("take.mov"),
      ])
    #expect(finished.status == 0)
    #expect(finished.errors == "", "\(finished.errors)")
  }

  @Test func `Error messages show times in decimal seconds`() async throws {
    let clip = try clip()
    let output = scratch.file("out.mov")
    for (arguments, message) in [
      (
        ["--range", "1/3..3", "--speed", "1/8"],
        "0.333333..3 is not inside \(clip), which ends at 2.002 s"
      ),
      (
        ["--trim", "2f..119f", "--boundary", "keyframe"],
        "starts at 0.033367 s, where no frame can be decoded on its own; cut at 0 s or 1.001 s"
      ),
      (["--ramp", "1=1 1/7=1/8"], "the ramp goes from 1 s back to 0.142857 s"),
      (["--preset", "impact", "--at", "7/3"], "2.333333 s is not inside"),
      (
        ["--range", "1/3..1", "--speed", "1/2", "--range", "2/3..1.5", "--speed", "2"],
        "the ranges 0.333333..1 and 0.666667..1.5 of \(clip) overlap"
      ),
    ] {
      let finished = try await run(
        slowmoPath, ["retime", clip, "-o", output, "--copy"] + arguments)
      #expect(finished.status != 0)
      #expect(finished.errors.contains(message), "\(finished.errors)")
    }
    // A time without a short decimal form is also printed as a fraction, which can be used as an
    // option.
    var recipe = MovieRecipe.constant(60, count: 90).h264(gop: 20, reordered: false)
    recipe.timescale = 60_000
    recipe.times = (0..<90).map { $0 * 1_001 }
    recipe.end = 90 * 1_001
    try recipe.write(to: scratch.file("other.mov"))
    let other = ["retime", scratch.file("other.mov"), "-o", output, "--copy"]
    let refused = try await run(
      slowmoPath, other + ["--trim", "2f..end", "--boundary", "keyframe"])
    #expect(refused.errors.contains("cut at 0 s or 0.333667 s (1001/3000)"), "\(refused.errors)")
    let cut = try await run(
      slowmoPath, other + ["--trim", "1001/3000..end", "--boundary", "keyframe"])
    #expect(cut.status == 0, "\(cut.errors)")
    #expect(cut.output.contains("plan: source 0.333667..1.5015 plays at 0..1.167833, speed 1/1"))
  }

  @Test func `A write error names the output and not a temporary file`() async throws {
    let take = try await Takes.plain()
    let project = scratch.file("project.otio")
    let made = try await slowmo("retime", take, "-o", project, "--speed", "1/2")
    try #require(made.status == 0, "\(made.errors)")
    // A limit on file sizes simulates a full disk.
    let limited = "trap '' XFSZ; ulimit -f 64; \"$@\""
    for (verb, name, arguments) in [
      ("copy", "out.mov", ["retime", take, "-o", "out.mov", "--speed", "1/2", "--copy"]),
      (
        "render", "out.mp4",
        ["retime", take, "-o", "out.mp4", "--speed", "1/2", "--fps", "30", "--crf", "0"]
      ),
      ("edit", "clip.mov", ["edit", project, "-o", "clip.mov", "--copy"]),
      (
        "record", "take.mov",
        ["record", "synthetic:640x480@60?pace=max", "-o", "take.mov", "-t", "1", "--faststart"]
      ),
      ("bench", "the file in ", ["bench", "capture", "synthetic:640x480@60?pace=max", "-t", "1"]),
    ] {
      let finished = try await run(
        "bash", ["-c", limited, "bash", slowmoPath] + arguments, in: scratch.path)
      #expect(finished.status == 74, "\(verb): \(finished.errors)")
      let line = finished.errors.split(separator: "\n").last ?? ""
      #expect(line.contains(name), "\(verb): \(line)")
      #expect(!line.contains(".part.") && !line.contains("/slowmo-bench-"), "\(verb): \(line)")
    }
  }
}
