// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// Ends the process when a case takes longer than a limit: a minute, of which there is none that
/// takes a second.
enum Watchdog {
  private static let current = Mutex<(number: UInt64, since: ContinuousClock.Instant)>((0, .now))

  static func now(at number: UInt64) { current.withLock { $0 = (number, .now) } }

  static func start(seconds: Int) {
    let thread = Thread {
      while true {
        Thread.sleep(forTimeInterval: 1)
        let (number, since) = current.withLock { $0 }
        if ContinuousClock.now - since > .seconds(seconds) {
          FileHandle.standardError.write(Data("case \(number) hangs\n".utf8))
          abort()
        }
      }
    }
    thread.start()
  }
}
