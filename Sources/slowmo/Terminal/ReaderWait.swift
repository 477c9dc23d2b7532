// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemPackage

/// Waits for the reader of data that must not be lost: without a limit, but after a signal only as long
/// as the reader takes data.
struct ReaderWait {
  /// The time after a signal in which the reader takes nothing, and after which it is given up.
  private static let limit = Duration.seconds(1)
  /// Whether a reader was given up.
  ///
  /// The process is ending, so it does not wait again.
  private static let isOver = Atomic<Bool>(false)

  private var count = -1
  private var since = ContinuousClock.now

  /// Writes by a closure, which receives the decision when to give up.
  ///
  /// The decision is asked with the number of bytes that were written, whenever a signal interrupts
  /// the write.
  ///
  /// - Returns: The result of the closure, or `.interrupted` if an earlier reader was given up.
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
