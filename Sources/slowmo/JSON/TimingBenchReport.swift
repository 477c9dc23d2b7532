// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The figures of a benchmark that times whole commands.
struct TimingBenchReport: BenchReport {
  /// The median, minimum and maximum of a time over all runs, in nanoseconds.
  struct Spread: Encodable {
    let medianNs, minNs, maxNs: Int64

    /// For an even number of values, the median is the lower of the two middle values.
    init(_ values: [Int64]) {
      let sorted = values.sorted()
      (minNs, maxNs) = (sorted.first ?? 0, sorted.last ?? 0)
      medianNs = sorted.isEmpty ? 0 : sorted[(sorted.count - 1) / 2]
    }

    var text: String {
      func milliseconds(_ value: Int64) -> String { decimal(Double(value) / 1e6, 1) }
      return "\(milliseconds(medianNs)) ms (\(milliseconds(minNs)) to \(milliseconds(maxNs)))"
    }
  }

  /// The figures of the program that ran for comparison.
  struct Baseline: Encodable {
    let name = BenchBaseline.ffmpeg.rawValue
    let version: String
    /// The number of frames in the program's output; nil if the output has only audio.
    let frames: Int?
    let wall, cpu: Spread
    /// The median wall time and CPU time of this program, each divided by that of the other
    /// program.
    let wallRatio, cpuRatio: Double

    enum CodingKeys: CodingKey { case name, version, frames, wall, cpu, wallRatio, cpuRatio }

    init(version: String, frames: Int?, costs: [CommandCost], beside own: [CommandCost]) {
      func ratio(_ time: (CommandCost) -> Int64) -> Double {
        Double(Spread(own.map(time)).medianNs) / Double(max(1, Spread(costs.map(time)).medianNs))
      }
      self.version = version
      self.frames = frames
      wall = Spread(costs.map(\.wallNanoseconds))
      cpu = Spread(costs.map(\.processorNanoseconds))
      wallRatio = ratio(\.wallNanoseconds)
      cpuRatio = ratio(\.processorNanoseconds)
    }
  }

  /// The name of the benchmark.
  let benchmark: String
  /// The clip, the speed and the kind of export.
  let mode: String
  let runs: Int
  /// The number of frames in the output.
  let frames: Int
  /// The number of lost frames; nil for an export.
  let drops: Int64?
  /// The number of audio samples per channel in the output; nil without audio.
  let samples: Int64?
  let bytes: Int64
  let wall, cpu: Spread
  let baseline: Baseline?

  init(
    benchmark: String, mode: String, costs: [CommandCost], result: CommandResult, asset: Asset,
    byteCount: Int64, baseline: Baseline?
  ) {
    self.benchmark = benchmark
    self.mode = mode
    runs = costs.count
    frames = asset.videoTrack?.frameCount ?? 0
    drops = result.ledger.map { $0.expected - $0.stored }
    samples = result.audio?.samples
    bytes = byteCount
    wall = Spread(costs.map(\.wallNanoseconds))
    cpu = Spread(costs.map(\.processorNanoseconds))
    self.baseline = baseline
  }

  var lines: [String] {
    let counts =
      ["\(frames) frames"] + (drops.map { ["\($0) lost"] } ?? [])
      + (samples.map { ["\($0) audio samples"] } ?? []) + ["\(bytes) bytes"]
    let rate = Double(frames) * 1e9 / Double(max(1, wall.medianNs))
    var lines = [
      "\(benchmark): \(mode)", "written: \(counts.joined(separator: ", "))",
      "time of \(runs) runs: \(wall.text), \(decimal(rate, 0)) frames/s",
      "CPU time: \(cpu.text)",
    ]
    if let baseline {
      lines += [
        "\(baseline.name) \(baseline.version): \(baseline.wall.text), CPU time \(baseline.cpu.text)",
        "slowmo takes \(decimal(baseline.wallRatio, 2)) of its time and "
          + "\(decimal(baseline.cpuRatio, 2)) of its CPU time",
      ]
    }
    return lines
  }
}
