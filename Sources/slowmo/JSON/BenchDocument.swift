// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// A take that was measured.
struct BenchRun {
  let format: CaptureFormat
  let device: CaptureDevice
  let report: RecordingReport
  /// Of the whole process, in user and system mode.
  let processorNanoseconds: Int64
  let memory: MemorySamples
}

/// The processor time of this process.
enum ProcessCost {
  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// What a measurement was made on.
private enum Machine {
  /// The system's name, its release, and the machine's kind.
  static var kernel: String {
    var names = utsname()
    uname(&names)
    return withUnsafeBytes(of: names) { bytes in
      // The fields are of one size: system, node, release, version, machine, domain.
      let size = MemoryLayout.size(ofValue: names.sysname)
      return [0, 2, 4].map { field in
        String(decoding: bytes[(field * size)...].prefix { $0 != 0 }, as: UTF8.self)
      }
      .joined(separator: " ")
    }
  }

  /// The name of the first processor; nil where the system does not say.
  static var processor: String? { line(of: "/proc/cpuinfo", "model name") }

  /// What stands behind a key and its colon in a list of the system's.
  static func line(of path: String, _ key: String) -> String? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
      let text = String(
        decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      guard text.hasPrefix(key), let colon = text.firstIndex(of: ":") else { continue }
      return text[text.index(after: colon)...].split(whereSeparator: \.isWhitespace)
        .joined(separator: " ")
    }
    return nil
  }
}

/// How much memory the process has, as it goes on.
struct MemorySamples {
  private var samples: [(seconds: Double, bytes: Int64)] = []

  /// Notes the memory ten times a second of the take.
  mutating func note(at seconds: Double) {
    if let last = samples.last, seconds < last.seconds + 0.1 { return }
    if let bytes = Self.residentBytes() { samples.append((seconds, bytes)) }
  }

  /// The most that the process ever had; nil where the system does not say.
  var peak: Int64? { Self.status("VmHWM").map { $0 * 1_024 } }

  /// How much it grew from the second fifth of the take to its end; nil for a short take.
  var growth: Int64? {
    guard samples.count >= 5, let last = samples.last else { return nil }
    return last.bytes - samples[samples.count / 5].bytes
  }

  private static func residentBytes() -> Int64? { status("VmRSS").map { $0 * 1_024 } }

  private static func status(_ key: String) -> Int64? {
    Machine.line(of: "/proc/self/status", key).flatMap { Int64($0.filter(\.isNumber)) }
  }
}

/// What `bench capture` says.
struct BenchDocument: Encodable {
  struct Latency: Encodable {
    let p50Ns, p99Ns, p999Ns, maxNs: Int64
  }

  let schema = schemaName("bench")
  /// What is measured.
  let benchmark = "capture"
  let device: String
  let deviceKind: String
  let mode: String
  let codec: String
  let durationNs: Int64
  @Nullable var measuredFps: String?
  @Nullable var measuredFpsValue: Double?
  let frames: Int64
  let drops: Int64
  let ledger: RecordDocument.Ledger
  /// From taking a buffer from the driver to giving it back.
  let latency: Latency
  let cpuNsPerFrame: Int64
  let captureThreadNsPerFrame: Int64
  let writerThreadNsPerFrame: Int64
  @Nullable var peakMemoryBytes: Int64?
  @Nullable var memoryGrowthBytes: Int64?
  /// The highest rate without a loss, with --find-limit.
  @Nullable var limitFps: Double?
  let kernel: String
  @Nullable var processor: String?
  let processorCount: Int
  /// The command's own, and those of the libraries it runs with.
  let version = VersionText.number
  let libraries: [String: String]
  /// When the measurement ended.
  let date: String

  enum CodingKeys: CodingKey {
    case benchmark, deviceKind, kernel, processor, processorCount, version, libraries, date
    case schema, device, mode, codec, durationNs, measuredFps, measuredFpsValue, frames, drops
    case ledger, latency, cpuNsPerFrame, captureThreadNsPerFrame, writerThreadNsPerFrame
    case peakMemoryBytes, memoryGrowthBytes, limitFps
  }

  init(_ run: BenchRun) {
    let report = run.report
    let cost = report.cost
    let count = max(1, report.ledger.stored)
    device = run.device.address
    deviceKind = run.device.kind.rawValue
    mode = report.mode
    codec = report.codec?.rawValue ?? ""
    durationNs = report.durationNanoseconds
    measuredFps = report.measuredFrameRate?.description
    measuredFpsValue = report.measuredFrameRate?.doubleValue
    frames = report.ledger.stored
    drops = report.ledger.dropped
    ledger = RecordDocument.Ledger(report.ledger)
    latency = Latency(p50Ns: cost.p50, p99Ns: cost.p99, p999Ns: cost.p999, maxNs: cost.max)
    cpuNsPerFrame = run.processorNanoseconds / count
    captureThreadNsPerFrame = cost.captureThread / count
    writerThreadNsPerFrame = cost.writerThread / count
    peakMemoryBytes = run.memory.peak
    memoryGrowthBytes = run.memory.growth
    kernel = Machine.kernel
    processor = Machine.processor
    processorCount = Processors.count
    libraries = Dictionary(LinkedLibraries.versions.map { ($0.name, $0.version) }) { $1 }
    date = Date.now.formatted(.iso8601)
  }

  /// The same for people.
  var lines: [String] {
    func microseconds(_ value: Int64) -> String { decimal(Double(value) / 1_000, 0) + " us" }
    func mebibytes(_ value: Int64?) -> String {
      value.map { decimal(Double($0) / 1_048_576, 1) + " MiB" } ?? "unknown"
    }
    var lines = [
      "\(device), \(mode), \(codec), \(decimal(Double(durationNs) / 1e9, 3)) s",
      "frames: \(frames) delivered, \(drops) lost, measured "
        + "\(measuredFpsValue.map { decimal($0, 3) } ?? "unknown") fps",
      "buffer kept from the driver: p50 \(microseconds(latency.p50Ns)), "
        + "p99 \(microseconds(latency.p99Ns)), p99.9 \(microseconds(latency.p999Ns)), "
        + "longest \(microseconds(latency.maxNs))",
      "processor time a frame: \(microseconds(cpuNsPerFrame)) in all, capture thread "
        + "\(microseconds(captureThreadNsPerFrame)), writer \(microseconds(writerThreadNsPerFrame))",
      "memory: peak \(mebibytes(peakMemoryBytes)), grown by \(mebibytes(memoryGrowthBytes))",
    ]
    if let limitFps { lines.append("highest rate without a loss: \(Int(limitFps)) fps") }
    let versions = libraries.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    lines += [
      "machine: \(kernel), \(processorCount) x \(processor ?? "unknown processor")",
      "slowmo \(version), \(versions.joined(separator: ", ")), \(date)",
    ]
    return lines
  }
}
