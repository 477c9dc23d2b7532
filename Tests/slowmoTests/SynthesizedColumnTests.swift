// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Marks of synthesized frames in the frame table.
struct SynthesizedColumnTests {
  @Test func `Frame tables mark each synthesized frame`() async throws {
    let scratch = try Scratch()
    let recorded = try await slowmo(
      "record", "synthetic:128x96@30?pace=max", "-o", "take.mov", "--frames", "6",
      "--progress", "none", in: scratch.path)
    try #require(recorded.status == 0, "\(recorded.errors)")
    let exported = try await slowmo(
      "retime", "take.mov", "-o", "slow.mov", "--speed", "1/2", "--fps", "30", "--sampling", "flow",
      "--json", in: scratch.path)
    try #require(exported.status == 0, "\(exported.errors)")
    let count = try #require(try exported.document()["frames_synthesized"] as? Int)
    #expect(count == 5)
    func table(_ name: String) async throws -> [[String]] {
      let finished = try await bash("\"$1\" frames \(name) --csv -", in: scratch.path)
      return finished.output.split(separator: "\n").map {
        $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      }
    }
    let slow = try await table("slow.mov")
    #expect(slow[0].suffix(2) == ["confidence", "synthesized"])
    // Every second frame is between two captured frames. The last frame is held.
    let rows = slow.dropFirst()
    let marks: [String] = rows.map { $0[$0.count - 1] }
    #expect(marks == ["0", "1", "0", "1", "0", "1", "0", "1", "0", "1", "0", "0"])
    let confidences: [String] = rows.map { $0[$0.count - 2] }
    #expect(zip(marks, confidences).allSatisfy { ($0 == "1") != $1.isEmpty }, "\(confidences)")
    #expect(try await table("take.mov")[0].last == "duplicate")
    for (name, number) in [("slow.mov", 5), ("take.mov", 0)] {
      let checked = try await slowmo("check", name, "--json", in: scratch.path)
      #expect(try checked.document()["frames_synthesized"] as? Int == number)
      #expect(checked.errors.contains("5 of the measured frames are synthesized") == (number > 0))
      let tracked = try await slowmo(
        "track", name, "--at", "0f", "--box", "40,40,40,40", "--until", "4f", "--json",
        in: scratch.path)
      #expect(try tracked.document()["frames_synthesized"] as? Int == min(number, 2))
      #expect(tracked.errors.contains("2 of the measured frames are synthesized") == (number > 0))
      let measured = try await slowmo(
        "measure", name, "--at", "1f", "--points", "0,0 3,4", "--json", in: scratch.path)
      #expect(try measured.document()["frames_synthesized"] as? Int == min(number, 1))
    }
    for (name, synthesized) in [("slow.mov", [false, true]), ("take.mov", [false, false])]
      as [(String, [Bool?])]
    {
      let lines = try await bash(
        "\"$1\" frames \(name) --range 0f..2f --raw gray8 -o - --meta-fd 3 3>&1 >/dev/null",
        in: scratch.path)
      let found: [Bool?] = try lines.output.split(separator: "\n").map { line in
        let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return row?["synthesized"] as? Bool
      }
      #expect(found == synthesized, "\(lines)")
    }
  }
}
