// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// The numbers of a benchmark report read from JSON.
struct BenchFigures {
  let path: String
  /// The numbers by key.
  ///
  /// A nested key is written as a path with dots.
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
        .badData, code: "invalid_data", "\(self.path) is not a report of slowmo bench",
        hint: "create one with slowmo bench and --json")
    }
    texts = members.compactMapValues(\.text)
    numbers = report.numbers(below: [])
  }

  /// Returns the number of a key.
  ///
  /// A short key is accepted if only one path ends in it.
  func number(_ key: String) throws -> Double {
    if let number = numbers[key] { return number }
    let ends = numbers.filter { $0.key.hasSuffix(".\(key)") }
    if ends.count == 1, let found = ends.first { return found.value }
    throw CommandError.usage(
      ends.isEmpty
        ? "\(path) has no number \(key)" : "\(path) has several numbers \(key)",
      hint: "choose one of "
        + (ends.isEmpty ? numbers : ends).keys.sorted().joined(separator: ", "))
  }

  /// Throws if two reports measured different things, because their numbers then cannot be
  /// compared.
  func checkComparable(with old: BenchFigures) throws {
    // Reports of earlier versions may lack a key, so a missing key does not count as a difference.
    for key in ["benchmark", "device_kind", "mode"] {
      guard let before = old.texts[key], let after = texts[key], before != after else { continue }
      throw CommandError(
        .badData, code: "not_comparable",
        "cannot compare \(old.path) (\(key) \(before)) with \(path) (\(key) \(after))",
        hint: "measure both with the same benchmark, options and kind of device")
    }
  }

  /// A JSON value of any kind.
  ///
  /// Only numbers, texts and objects are kept.
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

    /// Returns all numbers inside this value by their keys.
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
