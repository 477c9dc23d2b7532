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
enum Machine {
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
