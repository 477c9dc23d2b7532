// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The result of one measured recording.
struct BenchRun {
  let format: CaptureFormat
  let device: CaptureDevice
  let report: RecordingReport
  /// The CPU time of the process during the recording, in user mode and in the kernel.
  let processorNanoseconds: Int64
  let memory: MemorySamples
}

/// The CPU time that this process has used.
enum ProcessCost {
  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// The machine that a measurement ran on.
enum Machine {
  /// The name and release of the operating system, and the machine type.
  static var kernel: String {
    var names = utsname()
    uname(&names)
    return withUnsafeBytes(of: names) { bytes in
      // utsname has the fields system, node, release, version, machine and domain, all of the same
      // size.
      let size = MemoryLayout.size(ofValue: names.sysname)
      return [0, 2, 4].map { field in
        String(decoding: bytes[(field * size)...].prefix { $0 != 0 }, as: UTF8.self)
      }
      .joined(separator: " ")
    }
  }

  /// The model name of the first processor; nil if the system does not report one.
  static var processor: String? { line(of: "/proc/cpuinfo", "model name") }

  /// Returns the value of a key in a system file of `key: value` lines.
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

/// Samples of the process's resident memory during a recording.
struct MemorySamples {
  private var samples: [(seconds: Double, bytes: Int64)] = []

  /// Takes a sample if at least 0.1 s of recorded time passed since the last sample.
  mutating func note(at seconds: Double) {
    if let last = samples.last, seconds < last.seconds + 0.1 { return }
    if let bytes = Self.residentBytes() { samples.append((seconds, bytes)) }
  }

  /// The peak resident size in bytes; nil if the system does not report one.
  var peak: Int64? { Self.status("VmHWM").map { $0 * 1_024 } }

  /// The growth of the resident memory in bytes from 20 % of the recording to its end; nil for
  /// fewer than five samples.
  var growth: Int64? {
    guard samples.count >= 5, let last = samples.last else { return nil }
    return last.bytes - samples[samples.count / 5].bytes
  }

  private static func residentBytes() -> Int64? { status("VmRSS").map { $0 * 1_024 } }

  private static func status(_ key: String) -> Int64? {
    Machine.line(of: "/proc/self/status", key).flatMap { Int64($0.filter(\.isNumber)) }
  }
}
