// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The numbers of a report that was printed before.
struct BenchFigures {
  let path: String
  /// By their keys; those inside others have a path of points.
  let numbers: [String: Double]
  private let texts: [String: String]

  /// Reads a report; `-` is standard input.
  init(path: String) throws {
    self.path = path == "-" ? "standard input" : path
    let data = Data(try Files.readInput(path))
    guard let report = try? JSONDecoder().decode(Value.self, from: data),
      case .members(let members) = report, members["schema"]?.text == schemaName("bench"),
      members["mode"]?.text != nil
    else {
      throw CommandError(
        .badData, code: "invalid_data", "\(self.path) is no report of slowmo bench",
        hint: "make one with: slowmo bench capture --json")
    }
    texts = members.compactMapValues(\.text)
    numbers = report.numbers(below: [])
  }

  /// The number of a key, or of the one path that ends in it.
  func number(_ key: String) throws -> Double {
    if let number = numbers[key] { return number }
    let ends = numbers.filter { $0.key.hasSuffix(".\(key)") }
    if ends.count == 1, let found = ends.first { return found.value }
    throw CommandError.usage(
      ends.isEmpty
        ? "\(path) has no number \(key)" : "\(path) has more than one number \(key)",
      hint: "it has \((ends.isEmpty ? numbers : ends).keys.sorted().joined(separator: ", "))")
  }

  /// Throws unless two reports measured the same: a limit on their difference would mean nothing.
  func checkComparable(with old: BenchFigures) throws {
    // Reports of earlier versions do not say all of these.
    for key in ["benchmark", "device_kind", "mode"] {
      guard let before = old.texts[key], let after = texts[key], before != after else { continue }
      throw CommandError(
        .badData, code: "not_comparable",
        "\(old.path) is of \(key) \(before), and \(path) of \(after): they cannot be compared",
        hint: "measure both alike, with --mode and the same kind of device")
    }
  }

  /// A value of any kind, of which numbers and texts matter.
  private enum Value: Decodable {
    case number(Double)
    case text(String)
    case members([String: Value])
    case other

    init(from decoder: any Decoder) throws {
      if let members = try? [String: Value](from: decoder) {
        self = .members(members)
        return
      }
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else {
        self = .other
      }
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }

    /// All numbers in it, by their keys.
    func numbers(below path: [String]) -> [String: Double] {
      switch self {
      case .number(let number): [path.joined(separator: "."): number]
      case .members(let members):
        members.reduce(into: [:]) { all, member in
          all.merge(member.value.numbers(below: path + [member.key])) { $1 }
        }
      case .text, .other: [:]
      }
    }
  }
}
