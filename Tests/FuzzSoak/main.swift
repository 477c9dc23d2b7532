// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

// Feeds damaged movies, projects and sidecars, and plans of extreme numbers, to everything that
// reads, edits and exports: each must end with a result or with an error of our own. Cases run in
// processes of their own, so that one that crashes or hangs names itself.
//
//   FuzzSoak [CASES] [FIRST]         10 000 cases, unless told otherwise
//   FuzzSoak --case NUMBER           one of them, here, to see what becomes of it

/// A line at once, since the process may not live to write it later.
@Sendable func tell(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let arguments = Array(CommandLine.arguments.dropFirst())
if let first = arguments.first, first == "--case" || first == "--cases" {
  let numbers = arguments.dropFirst().compactMap { UInt64($0) }
  let start = numbers.first ?? 0
  let count = numbers.dropFirst().first ?? 1
  let cases = try FuzzCases()
  Watchdog.start()
  for number in start..<start + count {
    tell("case \(number)")
    Watchdog.now(at: number)
    tell("  \(try cases.outcome(of: number))")
  }
  exit(0)
}

let total = arguments.first.flatMap { UInt64($0) } ?? 10_000
let first = arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0
let failures = try await withThrowingTaskGroup(of: [String].self) { group in
  let share = (total + 1) / 2
  for part in 0..<UInt64(2) {
    let range = first + part * share..<first + min(total, (part + 1) * share)
    group.addTask { try await Batches.run(range) }
  }
  var failures: [String] = []
  for try await more in group { failures += more }
  return failures
}
for failure in failures { print(failure) }
print("\(total) cases, \(failures.count) of them crashed, hung or threw what is no error of ours")
exit(failures.isEmpty ? 0 : 1)

/// Runs cases in processes of some hundred each; one that ends early is told and gone past.
enum Batches {
  static func run(_ range: Range<UInt64>) async throws -> [String] {
    var failures: [String] = []
    var next = range.lowerBound
    while next < range.upperBound {
      let count = min(250, range.upperBound - next)
      let finished = try await TestSupport.run(
        CommandLine.arguments[0], ["--cases", "\(next)", "\(count)"])
      let lines = finished.output.split(separator: "\n")
      failures += lines.filter { $0.contains("FOREIGN") }.map(String.init)
      guard finished.status != 0 else {
        next += count
        continue
      }
      let last = lines.last { $0.hasPrefix("case ") }.flatMap { UInt64($0.dropFirst(5)) } ?? next
      let words = finished.errors.split(separator: "\n")
        .first { $0.contains("Fatal") || $0.contains("Assertion") || $0.contains("hangs") }
      failures.append("case \(last) ended with \(finished.status): \(words ?? "")")
      next = last + 1
    }
    return failures
  }
}
