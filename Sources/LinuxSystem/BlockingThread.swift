// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore
import Synchronization

/// A dedicated thread for blocking work, which must not run on Swift's cooperative thread pool.
package final class BlockingThread: Sendable {
  private let thread: pthread_t

  /// The scheduling policy of the thread.
  package enum Urgency: Sendable {
    case ordinary
    /// SCHED_FIFO if the system permits it (root, or an RLIMIT_RTPRIO); otherwise ordinary
    /// scheduling.
    case realTime
    /// SCHED_IDLE: runs only if the processors have nothing else to do. Threads that it starts inherit
    /// this.
    case idle
  }

  /// `SCHED_IDLE` of sched(7), whose macro Swift does not import.
  private static let idlePolicy: Int32 = 5

  /// Starts a thread that runs `body` once.
  ///
  /// - Throws: `CallFailure` if the system cannot create a thread.
  package init(
    urgency: Urgency = .ordinary, _ body: @escaping @Sendable () -> Void
  ) throws(CallFailure) {
    var made = pthread_t()
    let box = Unmanaged.passRetained(
      Body {
        if urgency == .idle {
          // A thread may always choose it for itself. A failure only makes the thread less patient.
          var parameters = sched_param(sched_priority: 0)
          _ = sched_setscheduler(0, Self.idlePolicy, &parameters)
        }
        body()
      })
    let result = pthread_create(
      &made, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard result == 0 else {
      box.release()
      throw CallFailure("start", "a thread", result)
    }
    thread = made
    if urgency == .realTime {
      var parameters = sched_param(sched_priority: 10)
      // Most systems deny SCHED_FIFO to ordinary users. Real-time scheduling only makes frame
      // losses rarer, so a failure is ignored.
      _ = pthread_setschedparam(made, SCHED_FIFO, &parameters)
    }
  }

  /// Waits until `body` has returned.
  ///
  /// Call at most once.
  package func join() { pthread_join(thread, nil) }

  /// Makes the thread release its resources by itself when it ends.
  ///
  /// Call this instead of ``join()``.
  package func detach() { pthread_detach(thread) }

  /// Runs blocking work on a dedicated thread and suspends the calling task until the work ends.
  ///
  /// When the task resumes, the thread no longer holds the objects that `body` captures.
  ///
  /// - Parameters:
  ///   - body: The work. It receives a closure that returns whether the task was cancelled. This
  ///     closure may be called from any thread.
  ///   - onCancel: Called at once when the task is cancelled, on any thread.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or `MediaError` with `.outOfMemory` if the system cannot create a
  ///   thread.
  package static func run<Value: Sendable>(
    _ body:
      @escaping @Sendable (
        _ isCancelled: @escaping @Sendable () -> Bool
      ) throws(MediaError) -> Value,
    onCancel: @escaping @Sendable () -> Void = {}
  ) async throws(MediaError) -> Value {
    let isCancelled = CancellationFlag()
    let work = SingleRun { () throws(MediaError) in try body { isCancelled.isSet } }
    let result: Result<Value, MediaError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        do throws(CallFailure) {
          try BlockingThread { continuation.resume(returning: work.run()) }.detach()
        } catch { continuation.resume(returning: .failure(MediaError(error, at: .resources))) }
      }
    } onCancel: {
      isCancelled.set()
      onCancel()
    }
    return try result.get()
  }
}

/// A flag that any thread may set once, to end the work of another thread.
package final class CancellationFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  package init() {}

  package var isSet: Bool { flag.load(ordering: .acquiring) }
  package func set() { flag.store(true, ordering: .releasing) }
}

/// A closure that runs once, and is released before its result is used.
private final class SingleRun<Value: Sendable>: Sendable {
  private struct Closure {
    let body: @Sendable () throws(MediaError) -> Value
  }
  private let closure: Mutex<Closure?>

  init(_ body: @escaping @Sendable () throws(MediaError) -> Value) {
    closure = Mutex(Closure(body: body))
  }

  /// Runs the closure, which may be done only once.
  func run() -> Result<Value, MediaError> {
    guard let closure = closure.withLock({ $0.take() }) else {
      preconditionFailure("the closure runs once")
    }
    return Result { () throws(MediaError) in try closure.body() }
  }
}

private final class Body: Sendable {
  let run: @Sendable () -> Void
  init(run: @escaping @Sendable () -> Void) { self.run = run }
}

extension BlockingThread {
  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - urgency: The scheduling priority of the thread.
  ///   - body: The closure that the thread runs once.
  /// - Returns: The thread. The caller must join or detach it.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot create a thread.
  package static func started(
    urgency: Urgency = .ordinary, _ body: @escaping @Sendable () -> Void
  ) throws(MediaError) -> BlockingThread {
    try CallStage.resources.converting { () throws(CallFailure) in
      try BlockingThread(urgency: urgency, body)
    }
  }
}
