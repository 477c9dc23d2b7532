// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization

/// Ends the process when a case hangs: when it has taken a minute of the processor, of which there
/// is none that takes a second, or waits for what never comes.
///
/// Seconds of the clock say nothing: a machine that is busy with other things may give a case none
/// of its processors for long.
enum Watchdog {
  /// A case, and the processor time of the process when it began.
  private static let current = Mutex<(number: UInt64, since: Double)>((0, processorSeconds()))
  /// Who works at all, on however busy a machine, has the processor for longer than this in as
  /// many seconds as a case may take; the watchdog itself does not.
  private static let leastWork = 0.02

  static func now(at number: UInt64) { current.withLock { $0 = (number, processorSeconds()) } }

  static func start(seconds: Int) {
    let thread = Thread {
      var last = (number: UInt64.max, seconds: 0.0, checks: 0)
      while true {
        Thread.sleep(forTimeInterval: 1)
        let (number, since) = current.withLock { $0 }
        let used = processorSeconds()
        if number != last.number || used - last.seconds > leastWork { last = (number, used, 0) }
        last.checks += 1
        if used - since > Double(seconds) || last.checks > seconds {
          FileHandle.standardError.write(Data("case \(number) hangs\n".utf8))
          abort()
        }
      }
    }
    thread.start()
  }

  /// Seconds of the processor that the process has taken.
  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
