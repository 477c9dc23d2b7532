// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The terminal of the process, used to show images: raw input, no cursor, the alternate screen.
///
/// The terminal is restored when the screen is closed, when the process is suspended, and before a
/// second signal ends the process. A terminal that accepts no bytes blocks none of these. Only the
/// main thread may use it.
final class TerminalScreen {
  private let descriptor: Int32
  private var isRaw = false
  /// The bytes that the terminal has not accepted yet.
  private var pending: ArraySlice<UInt8> = []

  /// The time in milliseconds for which the terminal may accept nothing before the remaining bytes
  /// are dropped.
  private static let longestWait: CInt = 1_000

  /// The terminal and its original settings, for the thread that ends the process.
  private struct Saved: @unchecked Sendable {
    let descriptor: Int32
    var settings: termios
  }
  private static let saved = Mutex<Saved?>(nil)
  private static let isStopRequested = Atomic<Bool>(false)

  private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  private static let leave = "\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

  /// Opens the terminal of the process.
  ///
  /// - Throws: `CommandError` if the process has no terminal.
  init() throws {
    // Opens the terminal again, so that O_NONBLOCK does not affect other programs that share it.
    descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw CommandError(
        .unavailable, code: "no_terminal", "the process has no terminal to show images on",
        hint: "run it in a terminal, or in a window: leave out --terminal")
    }
    // SIGTSTP needs a handler and not a waiting thread, because it must interrupt the system call
    // of the main thread.
    signal(SIGTSTP) { _ in TerminalScreen.isStopRequested.store(true, ordering: .releasing) }
    // The main thread may be restoring the terminal at the same time, which restoreNow() allows.
    Interrupt.beforeForcedExit { Self.restoreNow() }
    makeRaw()
  }

  deinit { close() }

  /// Restores the terminal.
  func close() {
    guard isRaw else { return }
    isRaw = false
    restore()
    Self.saved.withLock { $0 = nil }
    signal(SIGTSTP, SIG_DFL)
    Glibc.close(descriptor)
  }

  private func makeRaw() {
    var settings = termios()
    tcgetattr(descriptor, &settings)
    let before = settings
    Self.saved.withLock { $0 = Saved(descriptor: descriptor, settings: before) }
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    // Disables flow control, so that Ctrl-S cannot stop the output. An earlier Ctrl-S is undone.
    settings.c_iflag &= ~tcflag_t(IXON)
    // Ctrl-Z must not discard pending output: an image would be cut off, and the request for an
    // answer lost.
    settings.c_lflag |= tcflag_t(NOFLSH)
    // Disables Ctrl-\, whose core dump would leave the terminal unrestored.
    withUnsafeMutableBytes(of: &settings.c_cc) { characters in
      characters[Int(VQUIT)] = 0
      characters[Int(VMIN)] = 0
      characters[Int(VTIME)] = 0
    }
    setAttributes(&settings)
    write(Array(Self.enter.utf8))
    isRaw = true
  }

  /// Changes the settings and discards the input, as TCSAFLUSH does, but without waiting for the
  /// terminal to accept the output.
  private func setAttributes(_ settings: inout termios) {
    tcsetattr(descriptor, TCSANOW, &settings)
    tcflush(descriptor, TCIFLUSH)
  }

  /// Restores the terminal; waits as long as the terminal accepts bytes.
  private func restore() {
    write(Array(Self.leave.utf8))
    var isTaking = true
    while !flush(), isTaking {
      var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      isTaking = poll(&waited, 1, Self.longestWait) > 0
    }
    pending = []
    if var settings = Self.saved.withLock({ $0 })?.settings { setAttributes(&settings) }
  }

  /// Restores the terminal in a process that is being ended or is crashing, unless another thread
  /// is already restoring it.
  static func restoreNow() {
    saved.withLockIfAvailable { saved in
      guard var saved else { return }
      // If the terminal does not accept all bytes, the rest is lost: there is no time to wait.
      _ = leave.utf8.withContiguousStorageIfAvailable {
        Glibc.write(saved.descriptor, $0.baseAddress, $0.count)
      }
      tcsetattr(saved.descriptor, TCSANOW, &saved.settings)
    }
  }

  /// Suspends the process if the user has requested it, with the terminal restored meanwhile.
  ///
  /// - Returns: True if the process was suspended, so that the image must be drawn again.
  func suspendIfRequested() -> Bool {
    guard Self.isStopRequested.exchange(false, ordering: .acquiringAndReleasing) else {
      return false
    }
    restore()
    // SIGSTOP is sent to this thread, so that it stops before the call returns.
    raise(SIGSTOP)
    makeRaw()
    return true
  }

  /// The greatest size that is drawn, because a terminal may claim up to 65 535 columns and rows.
  private static let largest = (columns: 1_000, rows: 500)

  /// The size in columns and rows, at most 1000 by 500; 80 by 24 if the terminal does not report it.
  var size: (columns: Int, rows: Int) {
    guard let size = Self.size(of: descriptor), size.rows > 0 else { return (80, 24) }
    return (min(Self.largest.columns, size.columns), min(Self.largest.rows, size.rows))
  }

  /// The size that a terminal reports; nil if the descriptor is not a terminal or if it reports no
  /// width.
  ///
  /// A terminal without a screen, such as that of script(1), may report zero rows.
  static func size(of descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// Writes bytes, and keeps the bytes that the terminal does not accept yet.
  func write(_ bytes: [UInt8]) {
    pending += bytes
    flush()
  }

  /// Writes as many of the kept bytes as the terminal accepts now.
  ///
  /// - Returns: Whether all bytes have been written.
  @discardableResult
  func flush() -> Bool {
    while !pending.isEmpty {
      let count = pending.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        pending.removeFirst(count)
      } else if count == 0 || errno != EINTR {
        // A closed terminal never accepts any bytes, so they are dropped.
        if count == 0 || errno != EAGAIN { pending = [] }
        break
      }
    }
    return pending.isEmpty
  }

  /// Returns the bytes that have arrived, without waiting.
  func read() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return count > 0 ? Array(bytes[..<count]) : []
  }
}
