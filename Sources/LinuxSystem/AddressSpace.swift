// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc

/// The address space that the process may still map.
package enum AddressSpace {
  /// The number of bytes that may still be mapped below RLIMIT_AS (`ulimit -v`); nil if unlimited.
  package static var bytesLeft: Int64? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
      limit.rlim_cur != rlim_t.max,
      // The first field of /proc/self/statm is the total program size in pages; see proc(5).
      let pages = SystemFiles.firstLine(of: "/proc/self/statm")?.split(separator: " ").first
        .flatMap({ Int64($0) })
    else { return nil }
    let used = pages.multipliedReportingOverflow(by: Int64(sysconf(Int32(_SC_PAGESIZE))))
    return used.overflow ? 0 : max(0, Int64(clamping: limit.rlim_cur) - used.partialValue)
  }
}

/// The memory limits of the control groups that this process belongs to; see cgroups(7).
package enum ControlGroup {
  /// Reads how many bytes this process may still use.
  ///
  /// The limits of the process's group and of all its ancestors are read, in version 2 and version
  /// 1 of the cgroup interface. Cached file contents that the kernel can discard count as free.
  ///
  /// - Parameter root: The directory that contains `proc` and `sys`. Tests pass a directory with
  ///   simulated files.
  /// - Returns: The number of bytes, or nil if the memory is not limited.
  package static func memoryLeft(root: String = "") -> Int64? {
    var smallest: Int64?
    for line in SystemFiles.lines(of: "\(root)/proc/self/cgroup") {
      // Each line is `ID:CONTROLLERS:PATH`. The line for version 2 of cgroups names no controllers.
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, parts[1].isEmpty || parts[1].split(separator: ",").contains("memory")
      else { continue }
      let files = parts[1].isEmpty ? Files.unified : Files.legacy
      for directory in directories(below: "\(root)\(files.mount)", String(parts[2])) {
        guard let left = files.memoryLeft(in: directory) else { continue }
        smallest = min(smallest ?? left, left)
      }
    }
    return smallest
  }

  /// The directory of a control group and the directories of its ancestors, up to the mount point.
  private static func directories(below mount: String, _ path: String) -> [String] {
    var directories = [mount]
    for name in path.split(separator: "/") {
      directories.append("\(directories.last ?? "")/\(name)")
    }
    return directories
  }

  /// The names of the memory files in one version of the cgroup interface.
  private struct Files {
    let mount: String
    let limit: String
    let usage: String
    let cache: String

    static let unified = Files(
      mount: "/sys/fs/cgroup", limit: "memory.max", usage: "memory.current",
      cache: "inactive_file")
    static let legacy = Files(
      mount: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes",
      usage: "memory.usage_in_bytes", cache: "total_inactive_file")

    func memoryLeft(in directory: String) -> Int64? {
      // Without a limit, the limit's file contains `max`, or in version 1 of cgroups a number close
      // to 2^63.
      guard let limit = number("\(directory)/\(limit)"), limit < 1 << 60,
        let usage = number("\(directory)/\(usage)")
      else { return nil }
      let cached =
        SystemFiles.lines(of: "\(directory)/memory.stat").lazy
        .map { $0.split(separator: " ") }.first { $0.first == Substring(cache) }?.last
        .flatMap { Int64($0) } ?? 0
      return max(0, limit - max(0, usage - cached))
    }

    private func number(_ path: String) -> Int64? {
      SystemFiles.firstLine(of: path).flatMap { Int64($0) }
    }
  }
}

/// Settings of glibc's memory allocator.
package enum MallocTuning {
  /// Makes glibc keep large buffers that are freed, for use by the next frame, instead of unmapping
  /// them.
  package static func keep() { CLinuxSystem_keepLargeBuffers() }

  /// Lets all threads share one heap, for a process with little address space.
  ///
  /// Otherwise each thread reserves up to 128 MiB of address space for a separate heap. If no
  /// address space is left, each allocation of the thread becomes a mapping of at least 4096 bytes.
  /// This is so slow that the process seems to hang.
  package static func shareOneHeap() { CLinuxSystem_shareOneHeap() }
}
