// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import Glibc
import Overcrank

/// A take that was measured.
struct BenchRun {
  let format: CaptureFormat
  let device: String
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
    guard let file = fopen("/proc/self/status", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
      let text = String(
        decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      if text.hasPrefix(key + ":") { return Int64(text.filter(\.isNumber)) }
    }
    return nil
  }
}

/// What `bench capture` says.
struct BenchDocument: Encodable {
  struct Latency: Encodable {
    let p50Ns, p99Ns, p999Ns, maxNs: Int64
  }

  let schema = schemaName("bench")
  let device: String
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

  enum CodingKeys: CodingKey {
    case schema, device, mode, codec, durationNs, measuredFps, measuredFpsValue, frames, drops
    case ledger, latency, cpuNsPerFrame, captureThreadNsPerFrame, writerThreadNsPerFrame
    case peakMemoryBytes, memoryGrowthBytes, limitFps
  }

  init(_ run: BenchRun) {
    let report = run.report
    let cost = report.cost
    let count = max(1, report.ledger.stored)
    device = run.device
    mode = report.mode
    codec = report.codec
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
    return lines
  }
}

/// The numbers of a report that was printed before.
struct BenchFigures {
  let path: String
  let numbers: [String: Double]

  init(path: String) throws {
    self.path = path
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandError(
        .noInput, code: "file_not_found", "\(path) cannot be read", hint: "check the name")
    }
    guard let values = try? JSONDecoder().decode([String: Loose].self, from: data),
      values["schema"]?.text == schemaName("bench")
    else {
      throw CommandError(
        .badData, code: "invalid_data", "\(path) is no report of slowmo bench",
        hint: "make one with: slowmo bench capture --json")
    }
    numbers = values.compactMapValues(\.number)
  }

  /// A value of any kind, of which numbers and texts matter.
  private struct Loose: Decodable {
    let number: Double?
    let text: String?

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      number = try? container.decode(Double.self)
      text = try? container.decode(String.self)
    }
  }
}

/// What `bench diff` says.
struct BenchDiffDocument: Encodable {
  struct Change: Encodable {
    let key: String
    let old: Double
    let new: Double
  }

  let schema = schemaName("bench")
  let changes: [Change]
  /// The limits that the newer report breaks.
  let broken: [String]

  enum CodingKeys: CodingKey { case schema, changes, broken }

  init(old: BenchFigures, new: BenchFigures, broken: [String]) {
    changes = old.numbers.keys.sorted().compactMap { key in
      guard let before = old.numbers[key], let after = new.numbers[key] else { return nil }
      return Change(key: key, old: before, new: after)
    }
    self.broken = broken
  }

  /// The same for people.
  var lines: [String] {
    changes.map { change in
      let share = change.old == 0 ? "" : "  (\(decimal(change.new / change.old * 100, 1)) %)"
      return "\(change.key): \(decimal(change.old, 3)) -> \(decimal(change.new, 3))\(share)"
    } + broken.map { "broken: \($0)" }
  }
}
