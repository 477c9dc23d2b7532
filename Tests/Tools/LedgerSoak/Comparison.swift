// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting

/// The comparison of a frame ledger with the log of the simulated camera.
struct Comparison {
  /// Consecutive missing periods of one cause, after a stored frame.
  struct Gap: Hashable {
    let after: Int64
    let cause: FrameGap.Cause
    var count: Int64
  }

  var periods: Int64 = 0
  var problems: [String] = []
  /// The number of missing periods by cause: those in the log, those of them that the ledger has at
  /// the right position, and those that only the ledger has.
  var causes: [FrameGap.Cause: (real: Int64, found: Int64, madeUp: Int64)] = [:]

  init() {}

  /// Compares a ledger with a log.
  init(_ account: FrameAccount, _ truth: [FrameGap.Cause?]) {
    let ledger = account.ledger
    periods = ledger.expected
    if !ledger.isBalanced {
      problems.append("\(ledger.expected) periods, \(ledger.accounted) entered")
    }
    if ledger.expected > truth.count {
      problems.append("\(ledger.expected) periods, \(truth.count) generated")
    }
    let real = Set(Self.gaps(truth.prefix(Int(ledger.expected))))
    let found = Set(
      account.gaps.map { Gap(after: $0.afterIndex, cause: $0.cause, count: $0.count) })
    for gap in real { causes[gap.cause, default: (0, 0, 0)].real += gap.count }
    for gap in real.intersection(found) { causes[gap.cause, default: (0, 0, 0)].found += gap.count }
    for gap in found.subtracting(real) { causes[gap.cause, default: (0, 0, 0)].madeUp += gap.count }
    for gap in real.subtracting(found).sorted(by: { $0.after < $1.after }).prefix(3) {
      problems.append("not found: \(gap.count) \(gap.cause) after frame \(gap.after)")
    }
    for gap in found.subtracting(real).sorted(by: { $0.after < $1.after }).prefix(3) {
      problems.append("made up: \(gap.count) \(gap.cause) after frame \(gap.after)")
    }
  }

  /// The gaps in a log.
  ///
  /// In the log, nil is an intact frame.
  private static func gaps(_ truth: some Sequence<FrameGap.Cause?>) -> [Gap] {
    var gaps: [Gap] = []
    var stored: Int64 = 0
    for entry in truth {
      guard let cause = entry else {
        stored += 1
        continue
      }
      if let last = gaps.last, last.after == stored - 1, last.cause == cause {
        gaps[gaps.count - 1].count += 1
      } else {
        gaps.append(Gap(after: stored - 1, cause: cause, count: 1))
      }
    }
    return gaps
  }

  mutating func add(_ other: Comparison) {
    periods += other.periods
    problems += other.problems
    for (cause, counts) in other.causes {
      causes[cause, default: (0, 0, 0)].real += counts.real
      causes[cause, default: (0, 0, 0)].found += counts.found
      causes[cause, default: (0, 0, 0)].madeUp += counts.madeUp
    }
  }

  var text: String {
    let lines = FrameGap.Cause.allCases.compactMap { cause -> String? in
      guard let counts = causes[cause] else { return nil }
      return "\(cause.rawValue): \(counts.real) real, \(counts.found) found in their place, "
        + "\(counts.madeUp) made up"
    }
    return (["\(periods) frame periods"] + lines).joined(separator: "\n")
  }
}
