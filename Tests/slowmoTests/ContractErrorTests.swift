// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import OvercrankAssets
@testable import OvercrankCapture
@testable import OvercrankDeviceDiscovery
@testable import OvercrankEditing
@testable import OvercrankExport
@testable import OvercrankMediaCore
@testable import OvercrankPhotos
@testable import OvercrankRecording
@testable import OvercrankRetiming
@testable import SlowmoCommands

/// The error codes in the sources, and the exit code for each.
///
/// The error codes are read from the sources. So a new, removed or renamed code does not match the
/// fixture. The exit code comes from the command's own mapping.
struct ContractErrorTests {
  private static let table = "errors.json"
  static let fixtures = [table] + ContractBadInputTests.fixtures

  /// An error code with its exit code, and with the hint of the command if it has one.
  private struct Row: Encodable, Hashable {
    let error: String
    let code: String
    let status: Int32
    let hint: String
  }

  private struct Unknown: Error {}

  @Test func `Each error code keeps its exit code`() throws {
    let sources = try Self.sources()
    var rows = Set<Row>()
    for declared in Self.declaredCodes(sources) {
      try #require(declared.type == "MediaError", "\(declared.type) has codes of its own")
      let error = CommandError(MediaError(.init(rawValue: declared.code), ""))
      #expect(error.code == declared.code, "\(declared.type)")
      rows.insert(
        Row(
          error: declared.type, code: declared.code, status: error.status.rawValue,
          hint: error.hint))
    }
    #expect(rows.count > 60, "the codes were not found")
    let statuses = try Self.exitStatuses(sources)
    for row in try Self.commandCodes(sources, statuses) { rows.insert(row) }
    let unknown = CommandError(Unknown())
    rows.insert(
      Row(
        error: "any other", code: unknown.code, status: unknown.status.rawValue,
        hint: unknown.hint))
    let sorted = rows.sorted { ($0.error, $0.code, $0.status) < ($1.error, $1.code, $1.status) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Each error code has a line, so that differences are readable.
    let lines = try sorted.map { "    " + String(decoding: try encoder.encode($0), as: UTF8.self) }
    let numbers = statuses.values.sorted().map(String.init).joined(separator: ", ")
    try ContractFixtures.check(
      "{\n  \"exitStatuses\": [\(numbers)],\n  \"codes\": [\n"
        + lines.joined(separator: ",\n") + "\n  ]\n}\n", is: Self.table)
  }

  /// The text of every source file.
  private static func sources() throws -> [String] {
    let directory = "\(checkout)/Sources"
    return try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
      .filter { $0.hasSuffix(".swift") }
      .map { try String(contentsOfFile: "\(directory)/\($0)", encoding: .utf8) }
  }

  /// The error codes declared in extensions of `MediaError.Code`, such as `static let busy =
  /// Self(rawValue: "device_busy")`.
  private static func declaredCodes(_ sources: [String]) -> [(type: String, code: String)] {
    let declaration =
      /(?:struct|extension) (\w+Error)[ .:]|static let \w+ = (?:Self|Code)\(\s*rawValue: "(\w+)"\)/
    return sources.filter { $0.contains("rawValue: \"") }.flatMap { source in
      var type = "no error"
      return source.matches(of: declaration).compactMap { match -> (String, String)? in
        if let name = match.output.1 { type = String(name) }
        return match.output.2.map { (type, String($0)) }
      }
    }
  }

  /// The exit codes by their names in the source.
  private static func exitStatuses(_ sources: [String]) throws -> [String: Int32] {
    let source = try #require(sources.first { $0.contains("enum ExitStatus: Int32") })
    let body = try #require(source.firstMatch(of: /enum ExitStatus: Int32 \{([^}]*)\}/)).output.1
    let cases = try body.matches(of: /case (\w+) = (\d+)/).map {
      (String($0.output.1), try #require(Int32($0.output.2)))
    }
    return Dictionary(uniqueKeysWithValues: cases)
  }

  /// The error codes of errors that the command itself creates: `CommandError(.usage, code:
  /// "usage", …`.
  ///
  /// An expression `a ? b : c` can choose between two exit codes or two error codes.
  private static func commandCodes(
    _ sources: [String], _ known: [String: Int32]
  ) throws -> [Row] {
    try sources.filter { $0.contains("CommandError(") }.flatMap { source in
      try source.matches(
        of: /(?:CommandError|self\.init)\(\s*([^()"]+?),\s*code: ([^,]*"\w+"[^,]*),/
      )
      .flatMap { match -> [Row] in
        let statuses = try match.output.1.matches(of: /\.(\w+)/).map { name in
          // This exit code depends on a signal. The row has the value without a signal.
          name.output.1 == "status"
            ? Interrupt.status.rawValue : try #require(known[String(name.output.1)])
        }
        let codes = match.output.2.matches(of: /"(\w+)"/).map { String($0.output.1) }
        try #require(statuses.count == 1 || statuses.count == codes.count)
        return codes.enumerated().map { index, code in
          Row(
            error: "CommandError", code: code,
            status: statuses.count == 1 ? statuses[0] : statuses[index], hint: "")
        }
      }
    }
  }
}
