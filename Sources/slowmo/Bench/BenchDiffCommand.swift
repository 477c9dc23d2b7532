// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank

/// `slowmo bench diff OLD.json NEW.json`: compares two reports.
struct BenchDiffCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two reports and check the newer one against limits.",
    discussion: """
      EXAMPLES
        slowmo bench diff old.json new.json --fail-on 'drops>0'
        slowmo bench diff old.json new.json --fail-on 'cpu_ns_per_frame>1e6' --json

      A limit is a key of the report, one of > >= < <= = !=, and a number. If it is true for the
      newer report, the exit code is 10. A nested key is written with dots. Its last part is enough
      if that is unique.

      MANUAL
      Reports of different modes are refused. A report can also come from a pipe: slowmo bench
      capture --json | slowmo bench diff old.json -
      """)

  @Argument(
    help: "The older report, from slowmo bench ... --json; - is standard input.",
    completion: .file())
  var old: String

  @Argument(help: "The newer report; - is standard input.", completion: .file())
  var new: String

  @Option(
    help: "Fail if this is true for the newer report, such as drops>0; may be repeated.",
    transform: Limit.init(parsing:))
  var failOn: [Limit] = []

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if old == "-" && new == "-" {
      throw ValidationError("both reports are -: standard input can supply only one")
    }
  }

  func perform() throws -> ExitStatus {
    // This command writes no file, so Ctrl-C may exit at once. Otherwise a blocked read from a pipe
    // would delay the exit.
    Interrupt.onFirst { _exit(Interrupt.status.rawValue) }
    let (old, new) = (try BenchFigures(path: self.old), try BenchFigures(path: self.new))
    try new.checkComparable(with: old)
    let broken = try failOn.filter { $0.isBroken(try new.number($0.key)) }
    let limits = try broken.map { limit in
      let found = try new.number(limit.key)
      return BrokenLimit(
        limit.key, limit: .number(limit.number), value: .number(found), file: new.path,
        "\(limit.text): \(limit.key) is \(decimal(found, 3))")
    }
    let document = BenchDiffDocument(old: old, new: new, limits: limits, broken: broken.map(\.text))
    try Output.print(document, asJSON: common.json)
    return BrokenLimit.report(limits)
  }

  /// A condition on a number of the new report, such as `drops>0`.
  ///
  /// The command fails if the new report meets the condition.
  struct Limit {
    let key: String
    let number: Double
    let isBroken: (Double) -> Bool
    let text: String

    init(parsing text: String) throws {
      let comparisons: [(String, (Double, Double) -> Bool)] = [
        (">=", (>=)), ("<=", (<=)), ("!=", (!=)), (">", (>)), ("<", (<)), ("=", (==)),
      ]
      for (sign, compare) in comparisons {
        let parts = text.split(separator: sign, maxSplits: 1).map { $0.filter { $0 != " " } }
        guard text.contains(sign), parts.count == 2, !parts[0].isEmpty,
          let number = Double(parts[1]),
          number.isFinite
        else { continue }
        key = parts[0]
        self.number = number
        isBroken = { compare($0, number) }
        self.text = text
        return
      }
      throw ValidationError("\"\(text)\" is not a limit; write one such as drops>0")
    }
  }
}

/// The JSON document of `bench diff`.
struct BenchDiffDocument: Encodable, TextDocument {
  struct Change: Encodable {
    let key: String
    let old: Double
    let new: Double
  }

  let schema = schemaName("bench")
  let changes: [Change]
  /// The limits that the new report exceeds, as they were written.
  let broken: [String]
  let limits: [BrokenLimit]

  enum CodingKeys: CodingKey { case schema, changes, broken, limits }

  init(old: BenchFigures, new: BenchFigures, limits: [BrokenLimit], broken: [String]) {
    changes = old.numbers.keys.sorted().compactMap { key in
      guard let before = old.numbers[key], let after = new.numbers[key] else { return nil }
      return Change(key: key, old: before, new: after)
    }
    (self.limits, self.broken) = (limits, broken)
  }

  /// The comparison as text lines.
  var lines: [String] {
    changes.map { change in
      let share = change.old == 0 ? "" : "  (\(decimal(change.new / change.old * 100, 1)) %)"
      return "\(change.key): \(decimal(change.old, 3)) -> \(decimal(change.new, 3))\(share)"
    } + broken.map { "limit exceeded: \($0)" }
  }
}
