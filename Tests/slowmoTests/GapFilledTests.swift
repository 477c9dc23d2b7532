// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// The option `retime --for opencv`: a constant frame rate, in which repeated frames are marked.
struct GapFilledTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A clip of 60 frames without the frames 20, 21 and 40; each has a painted number.
  private func clip() throws {
    var recipe = MovieRecipe.constant(240, count: 57, timescale: 240_000)
    let shown = (0..<60).filter { ![20, 21, 40].contains($0) }
    recipe.times = shown.map { Int64($0) * 1_000 }
    recipe.numbers = shown
    recipe.end = 60_000
    try recipe.write(to: scratch.file("clip.mov"))
  }

  @Test func `The option --for opencv fills gaps with duplicate frames`() async throws {
    try clip()
    let finished = try await slowmo(
      "retime", "clip.mov", "-o", "even.mp4", "--for", "opencv", "--csv", "even.csv", "--json",
      in: scratch.path)
    let document = try finished.document()
    #expect(document["frames_duplicated"] as? Int == 3 && document["frames_skipped"] as? Int == 0)
    let asset = try Asset(path: scratch.file("even.mp4"))
    let expected = (0..<60).map { [20: 19, 21: 19, 40: 39][$0] ?? $0 }
    #expect(try paintedNumbers(asset) == expected)
    #expect(
      asset.videoTrack?.nominalFrameRate == 240 && asset.videoTrack?.frames.isVariable == false)
    let rows = asset.frameTimingRows()
    #expect(rows.indices.filter { rows[$0].isDuplicate == true } == [20, 21, 40])
    #expect(rows.allSatisfy { $0.isDuplicate != nil })
    let table = try String(contentsOfFile: scratch.file("even.csv"), encoding: .utf8)
    let again = try await slowmo("frames", "even.mp4", "--csv", "-", in: scratch.path).output
    let flags = { (text: String) in
      text.split(separator: "\n").map { $0.split(separator: ",").last }
    }
    #expect(flags(table) == flags(again) && table.contains("\n21,87500000,"))
    // An export of the export knows the repeated frames from its time map.
    _ = try await slowmo(
      "retime", "even.mp4", "-o", "part.mp4", "--trim", "0.1..0.2", "--copy", in: scratch.path)
    let part = try Asset(path: scratch.file("part.mp4"))
    let repeated = part.frameTimingRows().filter { $0.isDuplicate == true }
    #expect(repeated.map(\.index) == [16])
  }

  @Test func `Standard output has only the frame table if --csv is -`() async throws {
    try clip()
    let finished = try await slowmo(
      "retime", "clip.mov", "-o", "even.mp4", "--for", "opencv", "--csv", "-", in: scratch.path)
    #expect(finished.status == 0, "\(finished.errors)")
    let lines = finished.output.split(separator: "\n")
    #expect(lines.count == 61 && lines.first?.hasPrefix("index,") == true, "\(finished.output)")
    #expect(lines.last?.hasPrefix("59,") == true)
  }

  @Test func `Export for OpenCV at a variable frame rate requires --fps`() async throws {
    var recipe = MovieRecipe.constant(240, count: 90, timescale: 240_000)
    for index in 45..<90 { recipe.times[index] = 45_000 + Int64(index - 45) * 2_000 }
    recipe.end = 135_000
    try recipe.write(to: scratch.file("clip.mov"))
    let refused = try await slowmo(
      "retime", "clip.mov", "-o", "even.mp4", "--for", "opencv", in: scratch.path)
    #expect(refused.status == 64 && refused.errors.contains("--fps"), "\(refused.errors)")
    let made = try await slowmo(
      "retime", "clip.mov", "-o", "even.mp4", "--for", "opencv", "--fps", "240", in: scratch.path)
    #expect(made.status == 0)
    let rows = try Asset(path: scratch.file("even.mp4")).frameTimingRows()
    #expect(rows.count == 135 && rows.count { $0.isDuplicate == true } == 45)
  }

  @Test(arguments: [
    "--copy", "--speed 1/2", "--trim 0..0.1", "--sampling blend", "--on-error skip", "-o b.otio",
    "--jobs 2", "--csv clip.mov", "--csv -",
  ])
  func `Options that conflict with --for opencv are rejected`(options: String) async throws {
    try clip()
    let words = options.split(separator: " ").map(String.init)
    let output = words.contains("-o") ? [] : ["-o", "a.mp4"]
    let finished = try await run(
      slowmoPath,
      ["retime", "clip.mov", "--for", "opencv", "--json"] + output + words, in: scratch.path)
    #expect(
      finished.status == (options.contains("clip") ? 73 : 64), "\(options): \(finished.output)")
    let alone = try await slowmo(
      "retime", "clip.mov", "-o", "a.mp4", "--speed", "1/2", "--fps", "30", "--csv", "a.csv",
      in: scratch.path)
    #expect(alone.status == 64)
  }

  /// The painted numbers of frames that were encoded again.
  private func paintedNumbers(_ asset: Asset) throws -> [Int] {
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map {
      PaintedBlocks.number(in: try reader.pixelBuffer(ofFrame: $0, as: .gray))
    }
  }
}
