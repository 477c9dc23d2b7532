// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// Runs cases in child processes, with up to 250 cases each.
///
/// If a case ends its process, the case is reported and the run continues with the next case.
enum Batches {
  static func run(_ range: Range<UInt64>, options: [String]) async throws -> [String] {
    var failures: [String] = []
    var next = range.lowerBound
    while next < range.upperBound {
      let count = min(250, range.upperBound - next)
      let finished = try await TestSupport.run(
        CommandLine.arguments[0],
        ["--cases", "\(next)", "\(count)"] + options)
      let lines = finished.output.split(separator: "\n")
      failures += lines.filter { $0.contains("FOREIGN") }.map(String.init)
      guard finished.status != 0 else {
        next += count
        continue
      }
      let last = lines.last { $0.hasPrefix("case ") }.flatMap { UInt64($0.dropFirst(5)) } ?? next
      let message = finished.errors.split(separator: "\n")
        .first {
          $0.contains("Fatal") || $0.contains("Assertion") || $0.contains("hangs")
            || $0.contains("GiB")
        }
      failures.append("case \(last) ended with \(finished.status): \(message ?? "")")
      next = last + 1
    }
    return failures
  }
}
