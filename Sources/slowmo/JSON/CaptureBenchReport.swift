// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// The figures of `bench capture`.
struct CaptureBenchReport: BenchReport {
  struct Latency: Encodable {
    let p50, p99, p999, max: Duration
  }

  /// The name of the benchmark.
  let benchmark = "capture"
  let device: String
  let deviceKind: String
  let mode: String
  let codec: String
  let duration: MediaTime
  let measuredFps: Rational?
  let frames: Int64
  let drops: Int64
  let ledger: FrameLedger
  /// The time from dequeuing a driver buffer until it is queued again.
  let latency: Latency
  let cpuNsPerFrame: Int64
  let captureThreadNsPerFrame: Int64
  let writerThreadNsPerFrame: Int64
  let peakMemoryBytes: Int64?
  let memoryGrowthBytes: Int64?
  /// The highest frame rate at which no frame is lost.
  ///
  /// Measured only with `--find-limit`.
  var limitFps: Double?

  init(_ run: BenchRun) {
    let report = run.report
    let cost = report.cost
    let count = max(1, report.ledger.stored)
    device = run.device.address
    deviceKind = run.device.kind.rawValue
    mode = report.mode
    codec = report.codec?.rawValue ?? ""
    duration = report.duration
    measuredFps = report.measuredFrameRate
    frames = report.ledger.stored
    drops = report.ledger.dropped
    ledger = report.ledger
    latency = Latency(p50: cost.p50, p99: cost.p99, p999: cost.p999, max: cost.max)
    cpuNsPerFrame = run.processorNanoseconds / count
    captureThreadNsPerFrame = cost.captureThread.wholeNanoseconds / count
    writerThreadNsPerFrame = cost.writerThread.wholeNanoseconds / count
    peakMemoryBytes = run.memory.peak
    memoryGrowthBytes = run.memory.growth
  }

  /// The report as text lines.
  var lines: [String] {
    func microseconds(_ value: Int64) -> String { decimal(Double(value) / 1_000, 0) + " us" }
    func kept(_ time: Duration) -> String { microseconds(time.wholeNanoseconds) }
    func mebibytes(_ value: Int64?) -> String {
      value.map { decimal(Double($0) / 1_048_576, 1) + " MiB" } ?? "unknown"
    }
    var lines = [
      "\(device), \(mode), \(codec), \(decimal(duration.doubleValue, 3)) s",
      "frames: \(frames) stored, \(drops) lost, measured "
        + "\(measuredFps.map { decimal($0.doubleValue, 3) } ?? "unknown") fps",
      "driver buffer held: p50 \(kept(latency.p50)), "
        + "p99 \(kept(latency.p99)), p99.9 \(kept(latency.p999)), "
        + "longest \(kept(latency.max))",
      "CPU time per frame: \(microseconds(cpuNsPerFrame)) in total, capture thread "
        + "\(microseconds(captureThreadNsPerFrame)), writer \(microseconds(writerThreadNsPerFrame))",
      "memory: peak \(mebibytes(peakMemoryBytes)), growth \(mebibytes(memoryGrowthBytes))",
    ]
    if let limitFps { lines.append("highest rate without a lost frame: \(Int(limitFps)) fps") }
    return lines
  }
}
