// SPDX-License-Identifier: Apache-2.0

/// The JSON document of `bench diff`.
struct BenchDiffDocument: Encodable {
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
