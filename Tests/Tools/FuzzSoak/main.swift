// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport

// Tests all readers, editors, exporters and measurements with damaged movies, projects, sidecar
// files and logos, and with edits of extreme numbers. Tests the readers of codes and faces with
// damaged frames. Each case must end with a result or a `MediaError`. From a passthrough export of
// a whole movie, ffmpeg must decode the same frames as from the movie. Joined streams, and movies
// with changed flags and times, must be read as ffmpeg decodes them. Cases run in child processes,
// so that a crash or hang is attributed to a case.
//
//   FuzzSoak [CASES] [FIRST]         default: 10 000 cases
//   FuzzSoak --planted [CASES]       default: 100 cases of deliberate mistakes, each of which must be
//                                    detected
//   FuzzSoak --foreign [CASES]       only joined streams, and movies with changed flags and times
//   FuzzSoak --case NUMBER           runs one case in this process and prints its outcome

/// Prints a line immediately, because the process may crash before the next flush.
@Sendable func report(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let isPlanted = CommandLine.arguments.contains("--planted")
let isForeign = CommandLine.arguments.contains("--foreign")
let arguments = CommandLine.arguments.dropFirst().filter {
  !["--planted", "--foreign"].contains($0)
}
if let first = arguments.first, first == "--case" || first == "--cases" {
  let numbers = arguments.dropFirst().compactMap { UInt64($0) }
  let start = numbers.first ?? 0
  let count = numbers.dropFirst().first ?? 1
  let cases = try await FuzzCases(planted: isPlanted, foreign: isForeign)
  Watchdog.start(seconds: isPlanted ? 5 : 20)
  for number in start..<start + count {
    report("case \(number)")
    Watchdog.now(at: number)
    report("  \(try await cases.outcome(of: number))")
  }
  exit(0)
}

let total = arguments.first.flatMap { UInt64($0) } ?? (isPlanted ? 100 : 10_000)
let first = arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0
let failures = try await withThrowingTaskGroup(of: [String].self) { group in
  let share = (total + 1) / 2
  for part in 0..<UInt64(2) {
    let range = first + part * share..<first + min(total, (part + 1) * share)
    group.addTask {
      try await Batches.run(
        range, options: (isPlanted ? ["--planted"] : []) + (isForeign ? ["--foreign"] : []))
    }
  }
  var failures: [String] = []
  for try await more in group { failures += more }
  return failures
}
for failure in failures { print(failure) }
if isPlanted {
  let hangs = failures.count { $0.contains("hangs") }
  let foreign = failures.count { $0.contains("FOREIGN ForeignError") }
  let packets = failures.count { $0.contains("FOREIGN WrongCopy") }
  let titles = failures.count { $0.contains("FOREIGN ControlledTerminal") }
  let conversions = failures.count { failure in
    guard failure.hasPrefix("case "), let number = UInt64(failure.dropFirst(5).prefix { $0 != " " })
    else { return false }
    return PlantedMistakes.Kind(of: number) == .uncheckedConversion
  }
  let crashes = failures.count - hangs - foreign - packets - titles - conversions
  let found = [
    "crashes": crashes, "hangs": hangs, "foreign errors": foreign, "skipped packets": packets,
    "unescaped titles": titles, "unchecked conversions": conversions,
  ]
  let counts = found.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
  print("\(total) cases with planted mistakes: found \(counts.joined(separator: ", "))")
  exit(found.values.allSatisfy { $0 > 0 } ? 0 : 1)
}
print("\(total) cases, \(failures.count) of them crashed, hung or threw what is no error of ours")
exit(failures.isEmpty ? 0 : 1)
