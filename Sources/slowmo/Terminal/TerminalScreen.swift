// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import Synchronization

/// The terminal of the process as a screen for images: raw input, no cursor, the alternate screen.
///
/// The terminal is restored when the value is closed, when the process is suspended, and before a
/// second signal ends it. Only the main thread may use it.
final class TerminalScreen {
  private let descriptor: Int32
  private var isRaw = false

  /// The settings to restore, and the terminal, for the thread that ends the process.
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
  /// - Throws: `CommandError` if the process has none.
  init() throws {
    descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else {
      throw CommandError(
        .unavailable, code: "no_terminal", "the process has no terminal to show images on",
        hint: "run it in a terminal, or in a window: leave out --terminal")
    }
    // A handler, not a thread: the signal has to reach a thread that waits in a system call.
    signal(SIGTSTP) { _ in TerminalScreen.isStopRequested.store(true, ordering: .releasing) }
    Interrupt.beforeForcedExit { Self.restore(waits: false) }
    makeRaw()
  }

  deinit { close() }

  /// Restores the terminal.
  func close() {
    guard isRaw else { return }
    isRaw = false
    Self.restore()
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
    // Ctrl-Z must not cut an image, and with it the request for an answer.
    settings.c_lflag |= tcflag_t(NOFLSH)
    // A core dump would leave the terminal as it is.
    withUnsafeMutableBytes(of: &settings.c_cc) { characters in
      characters[Int(VQUIT)] = 0
      characters[Int(VMIN)] = 0
      characters[Int(VTIME)] = 0
    }
    tcsetattr(descriptor, TCSAFLUSH, &settings)
    write(Array(Self.enter.utf8))
    isRaw = true
  }

  /// Restores the terminal.
  ///
  /// A terminal that takes no bytes must not keep the process from ending.
  private static func restore(waits: Bool = true) {
    saved.withLock { saved in
      guard var saved else { return }
      if !waits {
        _ = fcntl(saved.descriptor, F_SETFL, fcntl(saved.descriptor, F_GETFL) | O_NONBLOCK)
      }
      Output.write(Array(leave.utf8), to: saved.descriptor)
      tcsetattr(saved.descriptor, waits ? TCSAFLUSH : TCSANOW, &saved.settings)
    }
  }

  /// Restores the terminal in a process that is crashing, unless another thread is doing so.
  static func restoreAfterCrash() {
    saved.withLockIfAvailable { saved in
      guard var saved else { return }
      Output.write(Array(leave.utf8), to: saved.descriptor)
      tcsetattr(saved.descriptor, TCSANOW, &saved.settings)
    }
  }

  /// Suspends the process if the user has asked for it, with the terminal as it was.
  ///
  /// - Returns: True if the process was suspended, so that the image must be drawn again.
  func suspendIfRequested() -> Bool {
    guard Self.isStopRequested.exchange(false, ordering: .acquiringAndReleasing) else {
      return false
    }
    Self.restore()
    // Only this thread is sure to stop before the call returns.
    raise(SIGSTOP)
    makeRaw()
    return true
  }

  /// The greatest size that is drawn; a terminal may claim 65 535 columns and rows.
  private static let largest = (columns: 1_000, rows: 500)

  /// The size in columns and rows, at most 1000 by 500; 80 by 24 if the terminal does not report it.
  var size: (columns: Int, rows: Int) {
    guard let size = Self.size(of: descriptor), size.rows > 0 else { return (80, 24) }
    return (min(Self.largest.columns, size.columns), min(Self.largest.rows, size.rows))
  }

  /// The size that a terminal reports; nil for another file, or if it reports no width.
  ///
  /// A terminal without a screen, such as that of script(1), may report zero rows.
  static func size(of descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// Writes bytes; blocks while the terminal does not take them.
  func write(_ bytes: [UInt8]) { Output.write(bytes, to: descriptor) }

  /// Returns the bytes that have arrived, without waiting.
  func read() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return count > 0 ? Array(bytes[..<count]) : []
  }
}
