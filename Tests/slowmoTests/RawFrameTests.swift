// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Raw video frames that other programs read, with their times on another file descriptor.
struct RawFrameTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A clip of H.264 in open GOPs of 50 frames, with B-frames.
  private func clip(_ count: Int64 = 150, extra: Int = 0) throws -> String {
    let path = scratch.file("clip.mov")
    var recipe = MovieRecipe.constant(240, count: count, timescale: 240_000).h264(
      gop: 50, reordered: true,
      options: ["x264-params": "bframes=3:b-adapt=0:ref=2:open-gop=1"])
    recipe.width += extra
    recipe.height += extra
    try recipe.write(to: path)
    return path
  }

  /// The painted numbers of raw gray frames.
  private func numbers(_ bytes: [UInt8]) -> [Int] {
    stride(from: 0, to: bytes.count - 4_095, by: 4_096).map { start in
      (0..<16).reduce(0) { $0 | (bytes[start + 4 * 128 + $1 * 8 + 4] > 120 ? 1 << $1 : 0) }
    }
  }

  @Test func `Raw frames for 1000 random times are the visible frames`() async throws {
    _ = try clip()
    var random = SeededGenerator(seed: 11)
    let times = (0..<1_000).map { _ in Int64.random(in: 0..<625_000_000, using: &random) }
    let selection = times.map { "--at \($0)ns" }.joined(separator: " ")
    let finished = try await bash(
      """
      "$1" frames clip.mov \(selection) --raw gray8 -o - --meta-fd 3 3>lines >pixels
      """, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let expected = times.map { Int($0 * 240 / 1_000_000_000) }
    #expect(numbers(try bytes(of: scratch.file("pixels"))) == expected)
    let lines = try String(contentsOfFile: scratch.file("lines"), encoding: .utf8)
      .split(separator: "\n").map { line in
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      }
    #expect(lines.map { $0["index"] as? Int } == expected)
    #expect(lines.first?["pts_ns"] as? Int == (expected[0] * 1_000_000_000 + 120) / 240)
    #expect(lines.first?["byte_count"] as? Int == 4_096 && lines.first?["width"] as? Int == 128)
    #expect(lines.first?["format"] as? String == "gray8" && lines[0]["sequence"] is NSNull)
  }

  @Test(arguments: [
    ("gray8", "gray"), ("gray16le", "gray16le"), ("rgb24", "rgb24"), ("yuv420p", ""),
  ])
  func `Raw frames equal frames that ffmpeg converts`(format: String, name: String) async throws {
    let clip = try clip(40)
    let finished = try await bash(
      "\"$1\" frames clip.mov --raw \(format) --step 3 -o - >pixels", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let found = try bytes(of: scratch.file("pixels"))
    let known = try await FFmpeg.converted(
      clip,
      [
        "-vf", "select=not(mod(n\\,3))", "-vsync", "0", "-f", "rawvideo", "-pix_fmt",
        name.isEmpty ? format : name,
      ])
    #expect(found.count == known.count && found.count > 14 * 4_096 - 1)
    // slowmo and ffmpeg round differently, which changes the low byte of 16-bit samples.
    let step = format == "gray16le" ? 2 : 1
    let farthest =
      stride(from: step - 1, to: min(found.count, known.count), by: step).map {
        abs(Int(found[$0]) - Int(known[$0]))
      }.max() ?? 255
    #expect(farthest <= 3)
  }

  // The larger clip has padding at the end of its rows.
  @Test(arguments: [0, 34], ["gray8", "rgb24", "yuv420p"])
  func `The option --splice does not change the bytes of raw frames`(
    extra: Int, format: String
  ) async throws {
    _ = try clip(40, extra: extra)
    let finished = try await bash(
      """
      set -o pipefail
      frames="frames clip.mov --raw \(format) -o -"
      "$1" $frames >known && "$1" $frames --splice | dd bs=65536 status=none >found
      """, in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let known = try bytes(of: scratch.file("known"))
    #expect(known.count >= 40 * (128 + extra) * (32 + extra))
    #expect(try bytes(of: scratch.file("found")) == known)
  }

  @Test func `The option --step exports every nth raw frame of a range`() async throws {
    _ = try clip(40)
    let finished = try await slowmo(
      "frames", "clip.mov", "--raw", "gray8", "--range", "10f..20f", "--step", "4", "-o",
      "{index}.gray", "--json", in: scratch.path)
    let frames = try #require(try finished.document()["frames"] as? [[String: Any]])
    #expect(frames.map { $0["index"] as? Int } == [10, 14, 18])
    for index in [10, 14, 18] {
      #expect(numbers(try bytes(of: scratch.file("\(index).gray"))) == [index])
    }
  }

  @Test func `Closing the output pipe ends raw frame export without error`() async throws {
    _ = try clip(40)
    for line in [
      "\"$1\" frames clip.mov --raw rgb24 -o - 2>errors | head -c 10000 | wc -c >count",
      "\"$1\" frames clip.mov --raw gray8 -o - --meta-fd 3 3>&1 >rest 2>errors "
        + "| head -n 1 >count",
    ] {
      let finished = try await bash("set -o pipefail\n\(line)", in: scratch.path)
      #expect(finished.status == 0, "\(line)")
      #expect(try bytes(of: scratch.file("errors")).isEmpty, "\(line)")
      #expect(try bytes(of: scratch.file("count")).isEmpty == false)
    }
  }

  @Test(arguments: [
    "--raw gray8", "--meta-fd 3", "--step 0 -o {index}.png", "--step 2 --at 0 -o a.png",
    "--raw gray9 -o -", "--meta-fd 1 --raw gray8 -o -",
    "--meta-fd 1 -o {index}.png --csv -", "--meta-fd 0 -o {index}.png",
    "--meta-fd 77 --raw gray8 -o -",
  ])
  func `Invalid options of raw frames are usage errors`(options: String) async throws {
    _ = try clip(4)
    let words = options.split(separator: " ").map(String.init)
    let finished = try await run(
      slowmoPath, ["frames", "clip.mov"] + words, in: scratch.path)
    #expect(finished.status == 64, "\(options): \(finished.errors)")
    #expect(try scratch.names() == ["clip.mov"])
  }
}
