// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// Ctrl-C, SIGTERM, the terminal's end and SIGUSR1, taken by a thread of their own instead of a
/// handler, so that what they do may do anything.
enum Interrupt {
  private static let received = Atomic<Int32>(0)
  private static let action = Mutex<(@Sendable () -> Void)?>(nil)
  private static let userAction = Mutex<(@Sendable () -> Void)?>(nil)

  /// Whether one of the signals came.
  static var isRequested: Bool { received.load(ordering: .acquiring) != 0 }

  /// The exit status that a verb which gave up for the signal ends with.
  static var status: ExitStatus { status(for: received.load(ordering: .acquiring)) }

  /// A terminal that is closed ends what runs in it, as SIGTERM does.
  private static func status(for number: Int32) -> ExitStatus {
    number == SIGINT ? .interrupted : .terminated
  }

  /// How soon after the first a signal is no second one, in nanoseconds: timeout(1) sends the same
  /// to its child and to the child's group, and nobody presses a key twice in that time.
  private static let sameSignal: Int64 = 300_000_000

  /// Takes the signals from here on; a second one that interrupts ends the process at once.
  ///
  /// To be called before any thread starts, since threads inherit what is blocked.
  static func install() {
    let numbers = Self.numbers()
    var set = Self.set(of: numbers)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A library may have threads that take signals all the same: they pass them on.
    for number in numbers {
      signal(number) { number in _ = pthread_kill(Interrupt.waitingThread, number) }
    }
    // A reader that closes its end of a pipe must not end a recording.
    signal(SIGPIPE, SIG_IGN)
    // Nor must a limit on the size of files: a write beyond it fails instead (setrlimit(2)).
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
        // The kernel gives the lowest number first, so many SIGUSR1 would hold up a SIGTERM.
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
          // Nobody insists by closing a terminal.
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

  // Written before the program has other threads; what a handler may read has no lock.
  private nonisolated(unsafe) static var waitingThread = pthread_t()

  /// What the first signal does besides being noticed.
  static func onFirst(_ body: @escaping @Sendable () -> Void) {
    action.withLock { $0 = body }
    if isRequested { body() }
  }

  /// What each SIGUSR1 does; nothing unless said.
  static func onUserSignal(_ body: @escaping @Sendable () -> Void) {
    userAction.withLock { $0 = body }
  }

  /// The signals taken.
  ///
  /// nohup(1) has its command ignore the terminal's end: then that is none of them.
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
