// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 on a thread of its own.
///
/// The actions run outside a signal handler, so they are not limited to async-signal-safe
/// functions.
enum Interrupt {
  private static let received = Atomic<Int32>(0)
  private static let action = Mutex<(@Sendable () -> Void)?>(nil)
  private static let userAction = Mutex<(@Sendable () -> Void)?>(nil)

  /// Whether one of the terminating signals has arrived.
  static var isRequested: Bool { received.load(ordering: .acquiring) != 0 }

  /// The exit status of a verb that was cancelled by a signal.
  static var status: ExitStatus { status(for: received.load(ordering: .acquiring)) }

  /// SIGHUP from a closed terminal gives the same exit status as SIGTERM.
  private static func status(for number: Int32) -> ExitStatus {
    number == SIGINT ? .interrupted : .terminated
  }

  /// The time after the first signal in which a second one is ignored, in nanoseconds.
  ///
  /// timeout(1) sends its signal twice: to its child and to the child's process group.
  private static let sameSignal: Int64 = 300_000_000

  /// Blocks the signals and starts the thread that waits for them.
  ///
  /// A second terminating signal exits the process at once. Call this before other threads start,
  /// because threads inherit the signal mask.
  static func install() {
    let numbers = Self.numbers()
    var set = Self.set(of: numbers)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A library may start threads that do not block these signals. The handler forwards them.
    for number in numbers {
      signal(number) { number in _ = pthread_kill(Interrupt.waitingThread, number) }
    }
    // A reader that closes its end of a pipe must not end a recording.
    signal(SIGPIPE, SIG_IGN)
    // A write beyond the file size limit (setrlimit(2)) must fail instead of ending the process.
    signal(SIGXFSZ, SIG_IGN)
    let waiter = DispatchQueue(label: "signals")
    let isWaiting = DispatchSemaphore(value: 0)
    waiter.async {
      waitingThread = pthread_self()
      isWaiting.signal()
      var set = Self.set(of: numbers)
      var ending = Self.set(of: numbers.filter { $0 != SIGUSR1 })
      var number: Int32 = 0
      var first = ContinuousClock.now
      while true {
        // The kernel delivers the lowest number first, so frequent SIGUSR1 would delay a SIGTERM.
        var noTime = timespec()
        number = sigtimedwait(&ending, nil, &noTime)
        if number <= 0 { guard sigwait(&set, &number) == 0 else { continue } }
        guard number != SIGUSR1 else {
          userAction.withLock { $0 }?()
          continue
        }
        let (isFirst, _) = received.compareExchange(
          expected: 0, desired: number, ordering: .acquiringAndReleasing)
        guard isFirst else {
          // SIGHUP means that the terminal was closed, not that the user insists on quitting.
          if number == SIGHUP { continue }
          if ContinuousClock.now - first < .nanoseconds(sameSignal) { continue }
          _exit(status(for: number).rawValue)
        }
        first = .now
        action.withLock { $0 }?()
      }
    }
    isWaiting.wait()
  }

  // Written before other threads start. A signal handler reads this variable and must not lock.
  private nonisolated(unsafe) static var waitingThread = pthread_t()

  /// Sets the action of the first terminating signal; runs it at once if the signal already
  /// arrived.
  static func onFirst(_ body: @escaping @Sendable () -> Void) {
    action.withLock { $0 = body }
    if isRequested { body() }
  }

  /// Sets the action of each SIGUSR1; by default SIGUSR1 is ignored.
  static func onUserSignal(_ body: @escaping @Sendable () -> Void) {
    userAction.withLock { $0 = body }
  }

  /// Returns the signals to handle.
  ///
  /// nohup(1) makes its command ignore SIGHUP; an ignored SIGHUP stays ignored.
  private static func numbers() -> [Int32] {
    var before = sigaction()
    sigaction(SIGHUP, nil, &before)
    let isIgnored =
      unsafeBitCast(before.__sigaction_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
    return [SIGINT, SIGTERM, SIGUSR1] + (isIgnored ? [] : [SIGHUP])
  }

  private static func set(of numbers: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for number in numbers { sigaddset(&set, number) }
    return set
  }
}
