// SPDX-License-Identifier: Apache-2.0

import CLibraryGuard
import Dispatch
import Glibc
import OvercrankLinuxSystem

/// The resources that the command needs before it starts, and its end if a limit of the system stops
/// a library.
///
/// Libdispatch traps if it cannot open its descriptors, and waits forever if it cannot start its
/// threads. Libraries for codecs and audio throw or crash if they get no memory. None of this can be
/// caught as an error.
enum ResourceShortage {
  /// The descriptors that a verb needs, measured: six of its own and of libdispatch's timers, and two
  /// that are open for moments.
  ///
  /// One of the latter is libdispatch's: it reads the state of its threads in /proc while they are busy,
  /// and traps if it cannot.
  private static let neededDescriptors = 8
  /// The timer for which libdispatch keeps its descriptors open.
  nonisolated(unsafe) private static var timer: (any DispatchSourceTimer)?

  /// The threads that every verb needs at the same time: that of the signals, and two of
  /// libdispatch.
  private static let neededThreads = 3

  /// Returns an error if too little memory, or too few descriptors or threads are left to start.
  ///
  /// Nil if the command can start.
  static func found() -> CommandError? { arguments() ?? memory() ?? descriptors() ?? threads() }

  /// Swift finds the arguments by the memory map of the process, which is in /proc.
  private static func arguments() -> CommandError? {
    guard CommandLine.argc < 1 else { return nil }
    return CommandError(
      .unavailable, code: "no_process_information",
      "could not read the arguments: /proc is not mounted",
      hint: "mount it with sudo mount -t proc proc /proc")
  }

  /// Without memory for its stack, a thread does not start, and the thread that waits for it would
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

  /// Libdispatch would wait forever for a thread that the system does not start.
  private static func threads() -> CommandError? {
    let end = DispatchSemaphore(value: 0)
    var started: [BlockingThread] = []
    defer {
      for _ in started { end.signal() }
      for thread in started { thread.join() }
    }
    do throws(SystemError) {
      for _ in 0..<neededThreads { started.append(try BlockingThread { end.wait() }) }
      return nil
    } catch {
      return tooManyThreads(error)
    }
  }

  static func tooManyThreads(_ error: SystemError) -> CommandError {
    CommandError(
      .unavailable, code: "too_many_threads", "\(error)",
      hint: "end other programs of this user, or raise the limit with ulimit -u")
  }

  /// Replaces the endless wait of libdispatch for a thread by one line and an exit code.
  static func reportMissingThreads() {
    lg_end_without_threads {
      // A thread also needs memory, for its stack.
      if AddressSpace.bytesLeft.map({ $0 < 80 << 20 }) ?? false { ResourceShortage.end() }
      TerminalScreen.restoreNow()
      let error = SystemError("start", "a thread", EAGAIN)
      Output.error(ResourceShortage.tooManyThreads(error))
      ProgressEvents.end(.unavailable)
      _exit(ExitStatus.unavailable.rawValue)
    }
  }

  /// Lets libdispatch open its descriptors while they can still be had.
  ///
  /// Call this after the signals are blocked, because it starts threads.
  static func reserveDescriptors() {
    let hasFired = DispatchSemaphore(value: 0)
    let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "descriptors"))
    source.setEventHandler { hasFired.signal() }
    source.schedule(deadline: .now())
    source.activate()
    timer = source
    _ = hasFired.wait(timeout: .now() + .seconds(5))
  }

  /// Under a limit on memory, replaces the crash of a library by one line and exit code 70.
  static func reportCrashes() {
    guard AddressSpace.bytesLeft != nil else { return }
    // The first use of a static property requests memory.
    TerminalScreen.restoreNow()
    typealias Terminate = @convention(c) () -> Void
    // Libstdc++ prints lines of its own before it ends the process.
    if let symbol = dlsym(nil, "_ZSt13set_terminatePFvvE") {
      let setTerminate = unsafeBitCast(
        symbol, to: (@convention(c) (Terminate) -> UnsafeRawPointer?).self)
      _ = setTerminate { ResourceShortage.end() }
    }
    for number in [SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGTRAP] {
      signal(number) { _ in ResourceShortage.end() }
    }
  }

  /// Ends the process; called by a signal handler, so it must not request memory.
  private static func end() -> Never {
    let message: StaticString =
      "slowmo: error: a library crashed, probably for lack of memory; raise the limit with ulimit -v\n"
    TerminalScreen.restoreNow()
    // A terminal that is not read must not keep the process.
    var waited = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    if poll(&waited, 1, 0) > 0 {
      _ = write(STDERR_FILENO, message.utf8Start, message.utf8CodeUnitCount)
    }
    _exit(ExitStatus.internalError.rawValue)
  }
}
