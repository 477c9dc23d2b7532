// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 on a separate thread.
///
/// The actions run on this thread and not in a signal handler, so they may call any function.
enum Interrupt {
  private static let received = Atomic<Int32>(0)
  /// Whether signals are left to the program that is about to replace this one.
  private static let isPassedOn = Atomic<Bool>(false)
  /// Signalled after the thread that waits for signals has stopped; see ``passOn()``.
  private static let hasPassedOn = DispatchSemaphore(value: 0)
  private static let action = Mutex<(@Sendable () -> Void)?>(nil)
  private static let lastAction = Mutex<(@Sendable () -> Void)?>(nil)
  private static let userAction = Mutex<(@Sendable () -> Void)?>(nil)
  /// The threads that are inside ``whileWaiting(_:)``.
  private static let waiters = Mutex<[pthread_t]>([])

  /// Whether one of the terminating signals has arrived.
  static var isRequested: Bool { received.load(ordering: .acquiring) != 0 }

  /// The exit status of a command that was cancelled by the received signal.
  static var status: ExitStatus { status(for: received.load(ordering: .acquiring)) }

  /// The exit status of a command that was cancelled by a given signal.
  ///
  /// SIGHUP, which arrives when the terminal is closed, gives the same exit status as SIGTERM.
  private static func status(for number: Int32) -> ExitStatus {
    number == SIGINT ? .interrupted : .terminated
  }

  /// The time in nanoseconds after the first signal during which a further signal is ignored as a
  /// repetition.
  ///
  /// timeout(1) sends its signal twice, first to its child and then to the child's process group.
  private static let sameSignal: Int64 = 300_000_000

  /// The signal that is sent to interrupt system calls.
  ///
  /// The default action of this signal is to ignore it, so the program installs a handler.
  private static let wakingSignal = SIGURG
  /// The time between two waking signals, in nanoseconds.
  private static let wakingPeriod = 10_000_000

  /// An action, and the processor time of the process at which it runs, in nanoseconds.
  private struct Overtime {
    let end: Int64
    let action: @Sendable () -> Void
  }
  private static let overtime = Mutex<Overtime?>(nil)

  /// Blocks the signals and starts the thread that waits for them.
  ///
  /// A second terminating signal ends the process at once. Call this before other threads start,
  /// because a new thread inherits the signal mask.
  ///
  /// - Returns: An error if the thread cannot be started.
  static func install() -> CommandError? {
    let numbers = Self.numbers()
    var set = Self.set(of: numbers)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A library may start a thread that does not block the handled signals. On such a thread, this
    // handler runs and forwards the signal to the thread that waits for signals.
    for number in numbers {
      signal(number) { number in _ = pthread_kill(Interrupt.waitingThread, number) }
    }
    // A reader that closes its end of a pipe must not end a recording.
    signal(SIGPIPE, SIG_IGN)
    // SA_RESTART is not set, so that the signal interrupts system calls.
    var waking = sigaction()
    waking.__sigaction_handler.sa_handler = { _ in }
    sigaction(wakingSignal, &waking, nil)
    // SIGXFSZ arrives if a write exceeds the file size limit (setrlimit(2)). The write must fail
    // instead of ending the process.
    signal(SIGXFSZ, SIG_IGN)
    let isWaiting = DispatchSemaphore(value: 0)
    let wait: @Sendable () -> Void = {
      waitingThread = pthread_self()
      isWaiting.signal()
      var set = Self.set(of: numbers)
      var ending = Self.set(of: numbers.filter { $0 != SIGUSR1 })
      var number: Int32 = 0
      var first = ContinuousClock.now
      while true {
        // The kernel delivers the signal with the lowest number first, so frequent SIGUSR1 would
        // delay a SIGTERM. The terminating signals are therefore checked separately.
        var time = timespec()
        number = sigtimedwait(&ending, nil, &time)
        if number <= 0, isRequested {
          time.tv_nsec = wakingPeriod
          number = sigtimedwait(&set, nil, &time)
          if number <= 0 {
            wake()
            endOvertime()
            continue
          }
        } else if number <= 0 {
          guard sigwait(&set, &number) == 0 else { continue }
        }
        if isPassedOn.load(ordering: .acquiring) { leavePending(number) }
        guard number != SIGUSR1 else {
          userAction.withLock { $0 }?()
          continue
        }
        let (isFirst, _) = received.compareExchange(
          expected: 0, desired: number, ordering: .acquiringAndReleasing)
        guard isFirst else {
          // SIGHUP means that the terminal was closed. The user did not ask twice, so it does not
          // force the exit.
          if number == SIGHUP { continue }
          if ContinuousClock.now - first < .nanoseconds(sameSignal) { continue }
          prepareForcedExit()
          _exit(status(for: number).rawValue)
        }
        first = .now
        action.withLock { $0 }?()
      }
    }
    do throws(CallFailure) { try BlockingThread(wait).detach() } catch {
      return ResourceShortage.tooManyThreads(error)
    }
    isWaiting.wait()
    return nil
  }

  /// Leaves a terminating signal that has arrived, and all further ones, to the program that is
  /// about to replace this one.
  ///
  /// Call this just before execve(2), which keeps blocked signals pending. Blocks until the thread
  /// that waits for signals has stopped, because execve(2) would end that thread while it holds a
  /// signal.
  static func passOn() {
    isPassedOn.store(true, ordering: .releasing)
    pthread_kill(waitingThread, SIGUSR1)
    hasPassedOn.wait()
    let number = received.load(ordering: .acquiring)
    if number != 0 { kill(getpid(), number) }
  }

  /// Sends a terminating signal to the process again, and handles no further ones.
  private static func leavePending(_ number: Int32) -> Never {
    // SIGUSR1 only woke this thread. No command has set an action for it yet.
    if number != SIGUSR1 { kill(getpid(), number) }
    hasPassedOn.signal()
    while true { pause() }
  }

  // A signal handler reads this variable, so it cannot be protected by a lock. It is written before
  // other threads start.
  private nonisolated(unsafe) static var waitingThread = pthread_t()

  /// Interrupts the system calls of all threads that are inside ``whileWaiting(_:)``.
  ///
  /// A thread may have checked for a signal just before its system call, so this is done
  /// repeatedly.
  private static func wake() {
    waiters.withLock { for thread in $0 { pthread_kill(thread, wakingSignal) } }
  }

  /// Runs system calls that may wait for another program, such as the reader of a pipe.
  ///
  /// After the first terminating signal, the system calls are interrupted (EINTR) every 10 ms.
  static func whileWaiting<Result>(_ body: () throws -> Result) rethrows -> Result {
    let thread = pthread_self()
    // Libdispatch blocks signals in its threads, so the waking signal is unblocked here.
    var (waking, before) = (set(of: [wakingSignal]), sigset_t())
    pthread_sigmask(SIG_UNBLOCK, &waking, &before)
    waiters.withLock { $0.append(thread) }
    defer {
      pthread_sigmask(SIG_SETMASK, &before, nil)
      waiters.withLock { waiters in
        if let index = waiters.lastIndex(of: thread) { waiters.remove(at: index) }
      }
    }
    return try body()
  }

  /// Sets an action that runs after the process has used an amount of processor time, in
  /// nanoseconds, since the first signal.
  ///
  /// Call this from the action for the first signal. The action must not block.
  static func afterProcessorTime(_ limit: Int64, _ action: @escaping @Sendable () -> Void) {
    overtime.withLock { $0 = Overtime(end: processorTime + limit, action: action) }
  }

  private static func endOvertime() {
    let action = overtime.withLock { overtime -> (@Sendable () -> Void)? in
      guard let found = overtime, processorTime >= found.end else { return nil }
      overtime = nil
      return found.action
    }
    action?()
  }

  /// The processor time of the process, in nanoseconds.
  private static var processorTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Runs the action that was set for a forced exit; see ``beforeForcedExit(_:)``.
  static func prepareForcedExit() { lastAction.withLock { $0 }?() }

  /// Sets the action for the first terminating signal.
  ///
  /// If the signal has already arrived, runs the action at once.
  static func onFirst(_ body: @escaping @Sendable () -> Void) {
    action.withLock { $0 = body }
    if isRequested { body() }
  }

  /// Sets the action that runs before a second terminating signal ends the process.
  ///
  /// The action must not block.
  static func beforeForcedExit(_ body: @escaping @Sendable () -> Void) {
    lastAction.withLock { $0 = body }
  }

  /// Sets the action for each SIGUSR1.
  ///
  /// Without an action, SIGUSR1 is ignored.
  static func onUserSignal(_ body: @escaping @Sendable () -> Void) {
    userAction.withLock { $0 = body }
  }

  /// Returns the signals to handle.
  ///
  /// nohup(1) starts its command with SIGHUP ignored. In this case SIGHUP stays ignored.
  private static func numbers() -> [Int32] {
    [SIGINT, SIGTERM, SIGUSR1] + (SignalAction.isIgnored(SIGHUP) ? [] : [SIGHUP])
  }

  private static func set(of numbers: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for number in numbers { sigaddset(&set, number) }
    return set
  }
}
