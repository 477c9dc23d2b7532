// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import TestSupport
import Testing

/// Text of the command on a machine with fonts, and on one without.
struct FontTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs the command where fontconfig finds no font.
  private func runWithoutFonts(_ arguments: String...) async throws -> Finished {
    _ = try scratch.write(
      Array("<fontconfig><cachedir>\(scratch.path)</cachedir></fontconfig>".utf8), as: "none.conf")
    return try await run(
      "env", ["FONTCONFIG_FILE=\(scratch.file("none.conf"))", slowmoPath] + arguments,
      in: scratch.path)
  }

  private func exported(_ burnIn: String) async throws -> Finished {
    try await runWithoutFonts(
      "retime", try await Takes.plain(), "-o", "text.mov", "--trim", "0..0.02", "--fps", "30",
      "--codec", "ffv1", "--burn-in", burnIn, "--progress", "none", "--json")
  }

  @Test func `Text is drawn in dots and noted if no font is installed`() async throws {
    let finished = try await exported("frame")
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(finished.errors.contains("no font is installed"), "\(finished.errors)")
    var reader = try FrameReader(try Asset(path: scratch.file("text.mov")))
    let frame = try reader.mediaFrame(at: 0)
    #expect(BurntText.lines(in: frame, lineCount: 1) == ["frame 0"])
    let refused = try await exported("frame,font=monospace")
    let error = try refused.document()["error"] as? [String: Any]
    #expect(error?["code"] as? String == "burn_in_refused")
  }

  @Test func `Messages of fontconfig are not printed`() async throws {
    let finished = try await run(
      "env",
      [
        "FONTCONFIG_FILE=/nonexistent", slowmoPath, "check", try await Takes.plain(),
        "--times-only", "--plot", "a.png", "--progress", "none",
      ], in: scratch.path)
    #expect(finished.status == 0 && !finished.errors.contains("Fontconfig"), "\(finished.errors)")
  }

  @Test func `Characters that no font has are noted`() async throws {
    // U+10FFFD has no character.
    let name = "a\u{10FFFD}Ω.mov"
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file(name))
    for plot in ["a.png", "a.svg"] {
      let finished = try await run(
        slowmoPath, ["check", name, "--times-only", "--plot", plot, "--progress", "none"],
        in: scratch.path)
      #expect(finished.status == 0, "\(finished.errors)")
      let lines = finished.errors.split(separator: "\n").filter { $0.contains("no installed font") }
      #expect(lines.count == (plot == "a.png" ? 1 : 0), "\(finished.errors)")
      #expect(lines.allSatisfy { $0.contains("characters \u{10FFFD},") })
    }
  }

  @Test func `A chart has the same lines with and without fonts`() async throws {
    let name = "走り幅跳び.mov"
    try FileManager.default.copyItem(
      atPath: try await Takes.plain(), toPath: scratch.file(name))
    for (fonts, plot) in [(true, "a.png"), (false, "b.png"), (true, "c.svg"), (false, "d.svg")] {
      let arguments = ["check", name, "--times-only", "--plot", plot, "--progress", "none"]
      let finished =
        fonts
        ? try await run(slowmoPath, arguments, in: scratch.path)
        : try await runWithoutFonts(
          "check", name, "--times-only", "--plot", plot, "--progress", "none")
      #expect(finished.status == 0, "\(finished.errors)")
      #expect(finished.errors.contains("no font") == (plot == "b.png"), "\(finished.errors)")
    }
    let drawn = try ["a.png", "b.png"].map { name in
      try bytes(of: scratch.file(name)).withUnsafeBytes {
        try DecodedImage(decoding: $0, codec: "png", width: 1_200, height: 680, bytesPerPixel: 3)
      }
    }
    // Text is left of the plot and above it; the plot itself is the same.
    let rows = drawn.map { image in
      (112..<388).map { y in Array(image.bytes[(y * 1_200 + 110) * 3..<(y * 1_200 + 1_170) * 3]) }
    }
    #expect(rows[0] == rows[1] && drawn[0].bytes != drawn[1].bytes)
    let written = try bytes(of: scratch.file("c.svg"))
    #expect(written == (try bytes(of: scratch.file("d.svg"))))
    #expect(String(decoding: written, as: UTF8.self).contains(">\(name)</text>"))
  }
}
