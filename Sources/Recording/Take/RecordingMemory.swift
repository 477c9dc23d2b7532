// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

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
    min(freeBytes(), addressSpaceLeft(), Int(clamping: ControlGroup.memoryLeft() ?? .max))
  }

  private static func addressSpaceLeft() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
      limit.rlim_cur < UInt(Int.max),
      let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
      let pages = text.split(separator: " ").first.flatMap({ Int($0) })
    else { return .max }
    return max(0, Int(limit.rlim_cur) - pages * Int(sysconf(Int32(_SC_PAGESIZE))))
  }

  private static func freeBytes() -> Int {
    guard let text = try? String(contentsOfFile: "/proc/meminfo", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("MemAvailable:") }),
      let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return 1 << 30 }
    return kibibytes * 1_024
  }
}
