// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
public import OvercrankMediaCore
import Synchronization

extension CaptureSession {
  /// Stops the session when the program is asked to end (SIGINT, SIGTERM, SIGHUP), and then lets it end.
  ///
  /// A program that such a signal ends at once leaves its cameras with the controls that a capture has
  /// set, and its movies unfinished. After this call, recordings are finished first, and the
  /// session stops, which restores the controls. The signal then acts as it did before this call, and so
  /// does a second signal that arrives meanwhile. A signal that the program ignores stays ignored.
  ///
  /// ```swift
  /// try session.stopRunningOnSignals()
  /// ```
  ///
  /// Several sessions of a program may call this. The session is not kept alive.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no pipe or thread can be created.
  public func stopRunningOnSignals() throws(MediaError) {
    try stopRunning(onSignals: [SIGINT, SIGTERM, SIGHUP])
  }

  /// Stops the session when the program receives one of these signals.
  package func stopRunning(onSignals signals: [Int32]) throws(MediaError) {
    try SignalStop.install(signals, for: core)
  }
}

/// The sessions that signals stop, and the thread that waits for the signals.
private enum SignalStop {
  private struct Member {
    weak var core: SessionCore?
  }

  private struct State {
    var members: [Member] = []
    /// The actions of the signals before the first session asked for them.
    var before: [Int32: sigaction] = [:]
    /// The end of the pipe from which the thread reads; nil before the thread was started.
    var readEnd: Int32?
  }

  private static let state = Mutex(State())
  /// The end of the pipe to which the signal handler writes.
  private static let writeEnd = Atomic<Int32>(-1)

  static func install(_ signals: [Int32], for core: SessionCore) throws(MediaError) {
    try state.withLock { (state) throws(MediaError) in
      if state.readEnd == nil { state.readEnd = try startThread() }
      state.members.removeAll { $0.core == nil || $0.core === core }
      state.members.append(Member(core: core))
      for signal in signals where state.before[signal] == nil && !SignalAction.isIgnored(signal) {
        // The handler may only call functions that are safe in a signal handler.
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
          let error = errno
          var byte = UInt8(truncatingIfNeeded: number)
          _ = write(SignalStop.writeEnd.load(ordering: .relaxed), &byte, 1)
          errno = error
        }
        action.sa_flags = SA_RESTART
        var before = sigaction()
        sigaction(signal, &action, &before)
        state.before[signal] = before
      }
    }
  }

  /// Creates the pipe, and the thread that reads signals from it.
  private static func startThread() throws(MediaError) -> Int32 {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw MediaError(
        .outOfMemory, "could not create a pipe: \(String(cString: strerror(errno)))",
        recovery: "close files or other programs")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let readEnd = ends[0]
    writeEnd.store(ends[1], ordering: .relaxed)
    try BlockingThread.started {
      var byte: UInt8 = 0
      while true {
        if read(readEnd, &byte, 1) == 1 { handle(Int32(byte)) }
      }
    }.detach()
    return readEnd
  }

  /// Stops the sessions, and lets the signal act.
  private static func handle(_ number: Int32) {
    let (members, before) = state.withLock { state in
      defer { (state.members, state.before) = ([], [:]) }
      return (state.members, state.before)
    }
    for (signal, action) in before {
      var action = action
      sigaction(signal, &action, nil)
    }
    for member in members {
      guard let session = member.core?.session else { continue }
      for output in session.outputs { (output as? any FrameOutput)?.finishRecordings() }
      session.stopRunning()
    }
    kill(getpid(), number)
  }
}
