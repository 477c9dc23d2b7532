// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The option `--pitch`: rejected speeds, snapped speeds and warnings.
struct PitchTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func retime(_ pitch: String, speed: String, more: [String] = []) async throws -> Finished
  {
    let arguments =
      ["retime", try await Takes.plain(), "-o", "out.mov", "--range", "1..2", "--speed", speed]
      + ["--copy", "--pitch", pitch, "--json"] + more
    return try await run(slowmoPath, arguments, in: scratch.path)
  }

  @Test func `Low-quality pitch rejects unsupported speeds unless snapped`() async throws {
    let refused = try await retime("low-quality", speed: "1/8")
    #expect(refused.status == 64)
    #expect(try scratch.names() == [])
    let snapped = try await retime("low-quality:snap", speed: "1/8")
    try #require(snapped.status == 0, "\(snapped.errors)")
    let audio = try #require(try snapped.document()["audio"] as? [String: Any])
    #expect(audio["algorithm"] as? String == "low-quality")
    let changes = try #require(audio["snapped"] as? [[String: Any]])
    #expect(changes.map { $0["requested"] as? String } == ["1/8"])
    #expect(changes.map { $0["played"] as? String } == ["1/2"])
    // Only the low-quality algorithm accepts `snap`.
    #expect(try await retime("spectral:snap", speed: "1/8").status == 64)
  }

  @Test(arguments: [("1/8", 1), ("1/2", 0), ("2", 0), ("3", 1)])
  func `Time-domain pitch warns outside of half to double speed`(
    speed: String, count: Int
  ) async throws {
    for more in [[], ["--dry-run", "--overwrite"]] {
      let finished = try await retime("time-domain", speed: speed, more: more)
      try #require(finished.status == 0, "\(finished.errors)")
      let warnings = try #require(try finished.document()["warnings"] as? [String])
      #expect(warnings.count == count)
      #expect(warnings.allSatisfy { $0.hasPrefix("time-domain is made for speeds from 1/2 to 2") })
      let lines = finished.errors.split(separator: "\n")
        .filter { $0.contains("time-domain is made for") }
      #expect(lines.count == count, "\(finished.errors)")
    }
    #expect(
      try await retime("spectral", speed: speed, more: ["--dry-run", "--overwrite"])
        .document()["warnings"] as? [String] == [])
  }
}
