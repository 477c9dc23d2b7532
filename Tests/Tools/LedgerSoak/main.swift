// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport

// Runs takes of a simulated camera with random faults through the capture loop and the frame
// accounting. Compares each ledger with the log of the simulated camera: every count, and every gap
// with its position.
//
//   LedgerSoak [SEEDS] [FRAMES]      default: 100 takes of 1 000 000 frames each

let seeds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 100
let frames = CommandLine.arguments.dropFirst(2).first.flatMap { Int64($0) } ?? 1_000_000

var total = Comparison()
let start = MonotonicClock.nanoseconds()
for seed in 1...max(1, seeds) {
  let comparison = try Take(seed: UInt64(seed), frames: frames).compare()
  for problem in comparison.problems { print("seed \(seed): \(problem)") }
  total.add(comparison)
}
let seconds = Double(MonotonicClock.nanoseconds() - start) / 1e9
print(total.text)
print("\(Int(Double(total.periods) / seconds)) periods a second")
exit(total.problems.isEmpty ? 0 : 1)
