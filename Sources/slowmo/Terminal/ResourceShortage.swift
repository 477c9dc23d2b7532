// SPDX-License-Identifier: Apache-2.0

import CLibraryGuard
import Dispatch
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// Checks for the resources that the program needs, and ends the process cleanly if a system limit
/// stops a library.
///
/// Libdispatch traps if it cannot open its descriptors, and waits forever if it cannot start its
/// threads. Libraries for codecs and audio throw or crash if they get no memory. None of this can be
/// caught as an error.
enum ResourceShortage {
  /// The number of file descriptors that a command needs, as measured: six permanently, for the
  /// program and libdispatch's timers, and two briefly.
  ///
  /// Libdispatch briefly needs one of these two: it reads the state of its busy threads in /proc,
  /// and traps if it cannot.
  private static let neededDescriptors = 8
  /// A timer that exists only so that libdispatch keeps its descriptors open.
  nonisolated(unsafe) private static var timer: (any DispatchSourceTimer)?

  /// The number of threads that every command needs at the same time: one for signals, and two of
  /// libdispatch.
  private static let neededThreads = 3

  /// Returns an error if too little memory, or too few descriptors or threads are left to start.
  ///
  /// Nil if the command can start.
  static func found() -> CommandError? { arguments() ?? memory() ?? descriptors() ?? threads() }

  /// Checks that /proc is mounted: Swift finds the program's arguments through the memory map in
  /// /proc.
  private static func arguments() -> CommandError? {
    guard CommandLine.argc < 1 else { return nil }
    return CommandError(
      .unavailable, code: "no_process_information",
      "could not read the arguments: /proc is not mounted",
      hint: "mount it with sudo mount -t proc proc /proc")
  }

  /// Checks the free address space.
  ///
  /// If a thread cannot start because its stack gets no memory, a thread that waits for it would
  /// wait forever.
  private static func memory() -> CommandError? {
    guard let left = AddressSpace.bytesLeft, left < 80 << 20 else { return nil }
    return CommandError(
      .unavailable, code: "out_of_memory",
      "cannot start: not enough memory, \(left >> 20) MiB left below the address space limit",
      hint: "raise the limit with ulimit -v")
  }

  private static func descriptors() -> CommandError? {
    let opened = (0..<neededDescriptors).map { _ in open("/dev/null", O_RDONLY | O_CLOEXEC) }
    for descriptor in opened where descriptor >= 0 { close(descriptor) }
    guard opened.contains(where: { $0 < 0 }) else { return nil }
    return CommandError(
      .inputOutput, code: "too_many_open_files", "cannot start: the limit of open files is too low",
      hint: "raise the limit with ulimit -n")
  }

  /// Checks that threads can be started, because libdispatch would wait forever for a missing
  /// thread.
  private static func threads() -> CommandError? {
    let end = DispatchSemaphore(value: 0)
    var started: [BlockingThread] = []
    defer {
      for _ in started { end.signal() }
      for thread in started { thread.join() }
    }
    do throws(CallFailure) {
      for _ in 0..<neededThreads { started.append(try BlockingThread { end.wait() }) }
      return nil
    } catch {
      return tooManyThreads(error)
    }
  }

  static func tooManyThreads(_ error: CallFailure) -> CommandError {
    CommandError(
      .unavailable, code: "too_many_threads", "\(error)",
      hint: "end other programs of this user, or raise the limit with ulimit -u")
  }

  /// If libdispatch cannot start a thread, ends the process with one line of text and an exit code
  /// instead of waiting forever.
  static func reportMissingThreads() {
    lg_end_without_threads {
      // The thread may also be missing because its stack gets no memory. In this case, the message
      // is that of a memory shortage.
      if AddressSpace.bytesLeft.map({ $0 < 80 << 20 }) ?? false { ResourceShortage.end() }
      TerminalScreen.restoreNow()
      let error = CallFailure("start", "a thread", EAGAIN)
      Output.error(ResourceShortage.tooManyThreads(error))
      ProgressEvents.end(.unavailable)
      _exit(ExitStatus.unavailable.rawValue)
    }
  }

  /// Makes libdispatch open its descriptors now, while some are still available.
  ///
  /// Call this after the signals are blocked, because this method starts threads.
  static func reserveDescriptors() {
    let hasFired = DispatchSemaphore(value: 0)
    let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "descriptors"))
    source.setEventHandler { hasFired.signal() }
    source.schedule(deadline: .now())
    source.activate()
    timer = source
    _ = hasFired.wait(timeout: .now() + .seconds(5))
  }

  /// If a memory limit makes a library crash, ends the process with one line of text and exit code
  /// 70.
  static func reportCrashes() {
    guard AddressSpace.bytesLeft != nil else { return }
    // The first use of a static property allocates memory, which a signal handler must not do. So
    // it is used here once.
    TerminalScreen.restoreNow()
    typealias Terminate = @convention(c) () -> Void
    // Replaces the handler of libstdc++, which would print its own lines before it ends the
    // process.
    if let symbol = dlsym(nil, "_ZSt13set_terminatePFvvE") {
      let setTerminate = unsafeBitCast(
        symbol, to: (@convention(c) (Terminate) -> UnsafeRawPointer?).self)
      _ = setTerminate { ResourceShortage.end() }
    }
    for number in [SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGTRAP] {
      signal(number) { _ in ResourceShortage.end() }
    }
  }

  /// Ends the process.
  ///
  /// A signal handler calls this, so it must not allocate memory.
  private static func end() -> Never {
    let message: StaticString =
      "slowmo: error: a library crashed, probably for lack of memory; raise the limit with ulimit -v\n"
    TerminalScreen.restoreNow()
    // Writes only if standard error accepts data now, because waiting could take forever.
    var waited = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    if poll(&waited, 1, 0) > 0 {
      _ = write(STDERR_FILENO, message.utf8Start, message.utf8CodeUnitCount)
    }
    _exit(ExitStatus.internalError.rawValue)
  }
}
