// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

/// How a process that records uses its memory.
public enum RecordingMemory {
  /// Has freed buffers of a picture's size kept for the next one, up to 256 MiB in all.
  ///
  /// glibc would give each back to the kernel and take new pages for the next, which costs more
  /// than to copy a picture. It is a setting of the whole process (mallopt(3)), so it is for
  /// programs to choose and not for libraries; call it once, before the first take.
  public static func retainLargeAllocations() { MallocTuning.keep() }

  /// Bytes of the queue to a writer.
  ///
  /// Two seconds of frames, within reason: a stalled writer loses nothing before that.
  static func queueBytes(largestFrame: Int, frameRate: FrameRate) -> Int {
    let frame = Double(largestFrame)
    let seconds = 2 * frame * frameRate.doubleValue
    // A frame of more than half the queue may never fit, so there is room for four.
    return Int(max(min(max(seconds, 32e6), 512e6), 4 * (frame + 4_096)))
  }

  /// Bytes that this process may still take: `MemAvailable` of proc(5), a gigabyte where the system
  /// does not tell, but no more than its limit on address space leaves (setrlimit(2)).
  static func availableBytes() -> Int { min(freeBytes(), addressSpaceLeft()) }

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
