// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// Memory use of a recording process.
public enum RecordingMemory {
  /// Keeps freed frame-sized buffers for reuse, up to 256 MiB in total.
  ///
  /// By default, glibc returns each large buffer to the kernel and allocates new pages for the next
  /// one. This costs more than copying a frame. The setting affects the whole process (mallopt(3)),
  /// so the program must request it. Call this method once, before the first take.
  public static func retainLargeAllocations() { MallocTuning.keep() }

  /// The memory available to this process, in bytes.
  ///
  /// This is `MemAvailable` of proc(5), or 1 GiB if unknown. It is limited by the address space
  /// limit of setrlimit(2) and by the memory limits of the process's control groups.
  package static func availableBytes() -> Int {
    Int(
      clamping: min(
        freeBytes(), AddressSpace.bytesLeft ?? .max, ControlGroup.memoryLeft() ?? .max))
  }

  private static func freeBytes() -> Int64 {
    let line = SystemFiles.lines(of: "/proc/meminfo").first { $0.hasPrefix("MemAvailable:") }
    let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap { Int64($0) }
    return kibibytes.map { $0 * 1_024 } ?? 1 << 30
  }
}
