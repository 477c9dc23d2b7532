// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The contract of the command: files in `Tests/Fixtures` with its output at the time when they
/// were recorded.
enum ContractFixtures {
  static let directory = "\(checkout)/Tests/Fixtures"

  /// Whether tests write the fixtures instead of comparing them.
  static let isRecording =
    ProcessInfo.processInfo.environment["OVERCRANK_RECORD_FIXTURES"] == "1"

  static func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Compares a text with its fixture byte by byte, or writes the fixture when recording.
  static func check(
    _ text: String, is name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let path = path(name)
    if isRecording {
      let parent = URL(fileURLWithPath: path).deletingLastPathComponent()
      try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
      try text.write(toFile: path, atomically: false, encoding: .utf8)
      return
    }
    let known = try #require(
      try? String(contentsOfFile: path, encoding: .utf8), "Tests/Fixtures/\(name) is missing",
      sourceLocation: sourceLocation)
    compare(text, known, name, sourceLocation)
  }

  /// Compares a long text with its fixture `NAME.gz`.
  ///
  /// - Returns: The text of the fixture.
  static func check(
    _ text: String, isPacked name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    let scratch = try Scratch()
    if isRecording {
      let file = try scratch.write(Array(text.utf8), as: "text")
      let script = "mkdir -p \"${2%/*}\" && gzip -9 -n <\"$1\" >\"$2.gz\""
      let packed = try await run("bash", ["-c", script, "bash", file, path(name)])
      try #require(packed.status == 0, "\(packed.errors)", sourceLocation: sourceLocation)
    }
    let unpacked = try await run("gzip", ["-dc", path(name) + ".gz"])
    try #require(unpacked.status == 0, "\(unpacked.errors)", sourceLocation: sourceLocation)
    compare(text, unpacked.output, name, sourceLocation)
    return unpacked.output
  }

  private static func compare(
    _ text: String, _ known: String, _ name: String, _ sourceLocation: SourceLocation
  ) {
    guard text != known else { return }
    Issue.record(
      "not as in Tests/Fixtures/\(name):\n\(difference(from: known, to: text))",
      sourceLocation: sourceLocation)
  }

  /// The first different lines, in the format of diff(1).
  static func difference(from known: String, to text: String) -> String {
    let before = known.split(separator: "\n", omittingEmptySubsequences: false)
    let after = text.split(separator: "\n", omittingEmptySubsequences: false)
    let same = zip(before, after).prefix { $0 == $1 }.count
    let (left, right) = (before.dropFirst(same), after.dropFirst(same))
    let sameEnd = zip(left.reversed(), right.reversed()).prefix { $0 == $1 }.count
    let shown = { (sign: String, lines: ArraySlice<Substring>) in
      lines.dropLast(sameEnd).prefix(12).map { "\(sign)\($0)" }
    }
    return (["@ line \(same + 1)"] + shown("-", left) + shown("+", right)).joined(separator: "\n")
  }

  /// The fixtures that appear in the tables of the tests.
  static let known: Set<String> = Set(
    ["README.md"] + ContractHelpTests.fixtures + ContractErrorTests.fixtures
      + ContractTakes.fixtures
      + ContractProjectTests.fixtures + ContractDocumentTests.fixtures
      + ContractRecordTests.fixtures)
}

/// The completeness of the fixtures, and how mismatches are shown.
struct ContractFixtureTests {
  @Test(.disabled(if: ContractFixtures.isRecording, "the fixtures are being made"))
  func `Each fixture file is read by a test and none is missing`() throws {
    let files = try FileManager.default.subpathsOfDirectory(atPath: ContractFixtures.directory)
      .filter { path in
        var isDirectory = ObjCBool(false)
        _ = FileManager.default.fileExists(
          atPath: ContractFixtures.path(path), isDirectory: &isDirectory)
        return !isDirectory.boolValue
      }
    let orphans = Set(files).subtracting(ContractFixtures.known).sorted()
    let missing = ContractFixtures.known.subtracting(files).sorted()
    #expect(orphans == [], "no test reads these")
    #expect(missing == [], "these are not in Tests/Fixtures")
  }

  @Test func `A fixture mismatch shows the line and both texts`() {
    #expect(ContractFixtures.difference(from: "a\nb\nc\n", to: "a\nd\nc\n") == "@ line 2\n-b\n+d")
    #expect(ContractFixtures.difference(from: "a\n", to: "a\nb\n") == "@ line 2\n+b")
  }
}
