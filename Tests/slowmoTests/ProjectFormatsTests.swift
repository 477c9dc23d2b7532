// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// Projects of other programs as inputs of the command.
struct ProjectFormatsTests {
  private func code(_ finished: Finished) throws -> String? {
    (try finished.document()["error"] as? [String: Any])?["code"] as? String
  }

  @Test func `LLC and EDL and FCPXML projects export exactly the cut range`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    let llc =
      "{version: 2, mediaFileName: '\(take)', cutSegments: [{start: 1, end: 1.5, name: ''}]}"
    let list = """
      TITLE: x
      001  A001     V     C        00:00:01:00 00:00:01:12 00:00:00:00 00:00:00:12
      * SOURCE FILE: \(take)
      """
    let finalCut = """
      <fcpxml version="1.9"><resources>
      <asset id="r1" src="\(take)" start="0s" hasVideo="1"/></resources>
      <project><sequence><spine>
      <asset-clip ref="r1" start="1s" offset="0s" duration="1/2s"/>
      </spine></sequence></project></fcpxml>
      """
    for (name, text) in [("a.llc", llc), ("a.edl", list), ("a.fcpxml", finalCut)] {
      _ = try scratch.write(Array(text.utf8), as: name)
      var arguments = ["edit", name, "-o", "\(name).mov", "--fps", "240", "--pitch", "mute"]
      if name == "a.edl" { arguments += ["--timecode-fps", "24"] }
      let finished = try await run(slowmoPath, arguments, in: scratch.path)
      try #require(finished.status == 0, "\(name): \(finished.errors)")
      let made = try Asset(path: scratch.file("\(name).mov"))
      #expect(try paintedNumbers(made).compactMap { $0 } == Array(240..<360), "\(name)")
    }
  }

  @Test func `A project in an unknown format is rejected as invalid`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    _ = try scratch.write(Array("neither\n".utf8), as: "a.txt")
    let unknown = try await slowmo(
      "edit", "a.txt", "-o", "a.mov", "--copy", "--json", in: scratch.path)
    #expect(unknown.status == 65)
    #expect(try code(unknown) == "invalid_project")
    #expect("\(try unknown.document())".contains("LosslessCut"))
    let late = "{mediaFileName: '\(take)', cutSegments: [{start: 1, end: 15000, name: ''}]}"
    _ = try scratch.write(Array(late.utf8), as: "late.llc")
    let outside = try await slowmo(
      "edit", "late.llc", "-o", "a.mov", "--copy", "--json", in: scratch.path)
    #expect(outside.status == 65)
    // A movie is not a project, except for a phone's movie with a slow-motion range.
    let movie = try await slowmo("edit", take, "-o", "a.mov", "--copy", "--json", in: scratch.path)
    #expect(movie.status == 65)
  }

  @Test func `Exporting a Samsung slow-motion clip slows the marked range`() async throws {
    let scratch = try Scratch()
    let take = try await Takes.plain()
    func bytes(_ number: Int) -> [UInt8] {
      (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    let name = "SlowMotion_Data"
    let block = [0, 0, 0x90, 8] + bytes(name.utf8.count) + Array((name + "1000:2000:4").utf8)
    let table =
      Array("SEFH".utf8) + bytes(105) + bytes(1) + [0, 0, 0x90, 8] + bytes(block.count)
      + bytes(block.count)
    let movie = [UInt8](try Data(contentsOf: URL(filePath: take)))
    _ = try scratch.write(
      movie + block + table + bytes(table.count) + Array("SEFT".utf8), as: "phone.mp4")
    let finished = try await slowmo(
      "edit", "phone.mp4", "-o", "a.mov", "--copy", "--pitch", "mute", in: scratch.path)
    try #require(finished.status == 0, "\(finished.errors)")
    // The clip lasts four seconds, of which one plays at 1/8 speed.
    #expect(try Asset(path: scratch.file("a.mov")).duration == MediaTime(seconds: 11))
  }
}
