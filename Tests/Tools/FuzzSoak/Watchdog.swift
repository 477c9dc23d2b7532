// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization

/// Aborts the process when a case hangs: too much CPU time, no CPU time for too long, or more than
/// 1 GiB of memory.
///
/// The limit is 20 s of CPU time. Normal cases take less than a second. Elapsed time is not
/// limited, because a busy machine may not run a case, or a program that it calls, for a long time.
enum Watchdog {
  /// The current case, and the CPU time of the process when the case began.
  private static let current = Mutex<(number: UInt64, since: Double)>((0, processorSeconds()))
  /// The CPU time between checks that counts as progress, in seconds.
  ///
  /// The watchdog itself uses less.
  private static let minimumWork = 0.02
  /// The number of checks, one a second, without progress after which a case hangs.
  private static let longestStall = 120

  static func now(at number: UInt64) { current.withLock { $0 = (number, processorSeconds()) } }

  static func start(seconds: Int) {
    let thread = Thread {
      var last = (number: UInt64.max, seconds: 0.0, checks: 0)
      while true {
        Thread.sleep(forTimeInterval: 1)
        let (number, since) = current.withLock { $0 }
        let used = processorSeconds()
        if number != last.number || used - last.seconds > minimumWork { last = (number, used, 0) }
        last.checks += 1
        if residentBytes() > 1 << 30 {
          FileHandle.standardError.write(Data("case \(number) takes more than 1 GiB\n".utf8))
          abort()
        }
        if used - since > Double(seconds) || last.checks > longestStall {
          FileHandle.standardError.write(Data("case \(number) hangs\n".utf8))
          abort()
        }
      }
    }
    thread.start()
  }

  /// The CPU time of the process, in seconds.
  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// The memory of the process, in bytes; see proc(5).
  private static func residentBytes() -> Int {
    let pages =
      (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?
      .split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }
}
