// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemPackage

/// Waits for the reader of output that must not be lost.
///
/// There is no limit, but after a signal the wait goes on only while the reader still reads.
struct ReaderWait {
  /// After a signal, the time without any byte read after which the wait for a reader is given up.
  private static let limit = Duration.seconds(1)
  /// Whether waiting for a reader was given up.
  ///
  /// The process is then ending, so no later write waits again.
  private static let isOver = Atomic<Bool>(false)

  private var count = -1
  private var since = ContinuousClock.now

  /// Runs a closure that writes.
  ///
  /// Whenever a signal interrupts the write, the closure calls its argument with the number of bytes
  /// written so far. If that returns true, the closure gives up.
  ///
  /// - Returns: The result of the closure, or `.interrupted` if an earlier write was given up.
  static func run(_ write: ((_ written: Int) -> Bool) -> Errno?) -> Errno? {
    guard !isOver.load(ordering: .acquiring) else { return .interrupted }
    var wait = ReaderWait()
    return Interrupt.whileWaiting { write { wait.givesUp($0) } }
  }

  private mutating func givesUp(_ written: Int) -> Bool {
    guard Interrupt.isRequested else { return false }
    let now = ContinuousClock.now
    if written > count { (count, since) = (written, now) }
    guard now - since >= Self.limit else { return false }
    Self.isOver.store(true, ordering: .releasing)
    return true
  }
}
