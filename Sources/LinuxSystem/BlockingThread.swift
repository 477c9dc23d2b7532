// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A thread of its own for work that blocks, which Swift's shared pool must not do.
package final class BlockingThread: Sendable {
  private let thread: pthread_t

  /// Whether the thread asks to run before ordinary ones.
  package enum Urgency: Sendable {
    case ordinary
    /// SCHED_FIFO where the system allows it (root, or an rtprio limit); ordinary elsewhere.
    case realTime
  }

  /// Starts a thread that runs `body` once.
  ///
  /// - Throws: `SystemError` when the system has no thread left.
  package init(
    urgency: Urgency = .ordinary, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    var made = pthread_t()
    let box = Unmanaged.passRetained(Body(run: body))
    let result = pthread_create(
      &made, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard result == 0 else {
      box.release()
      throw SystemError("start", "a thread", result)
    }
    thread = made
    if urgency == .realTime {
      var parameters = sched_param(sched_priority: 10)
      // Refused to ordinary users on most systems, which is fine: it only makes losses rarer.
      _ = pthread_setschedparam(made, SCHED_FIFO, &parameters)
    }
  }

  /// Waits until the body has returned; to be called once.
  package func join() { pthread_join(thread, nil) }

  /// Lets the thread go on by itself, in place of joining it.
  package func detach() { pthread_detach(thread) }
}

extension BlockingThread {
  /// Does work that blocks on a thread of its own, and suspends the task meanwhile.
  ///
  /// - Parameters:
  ///   - body: The work. It is given a closure that tells whether the task was cancelled, which may
  ///     be called from any thread.
  ///   - onCancel: Called at once when the task is cancelled, from any thread.
  /// - Returns: What the work returned or threw.
  /// - Throws: `SystemError` when the system has no thread left.
  package static func run<Value: Sendable, Failure: Error>(
    _ body:
      @escaping @Sendable (_ isCancelled: @escaping @Sendable () -> Bool) throws(Failure) -> Value,
    onCancel: @escaping @Sendable () -> Void = {}
  ) async throws(SystemError) -> Result<Value, Failure> {
    let isCancelled = CancellationFlag()
    let result: Result<Result<Value, Failure>, SystemError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        do throws(SystemError) {
          try BlockingThread {
            let result = Result { () throws(Failure) in try body { isCancelled.isSet } }
            continuation.resume(returning: .success(result))
          }.detach()
        } catch { continuation.resume(returning: .failure(error)) }
      }
    } onCancel: {
      isCancelled.set()
      onCancel()
    }
    return try result.get()
  }
}

private final class CancellationFlag: Sendable {
  private let flag = Atomic<Bool>(false)
  var isSet: Bool { flag.load(ordering: .acquiring) }
  func set() { flag.store(true, ordering: .releasing) }
}

private final class Body: Sendable {
  let run: @Sendable () -> Void
  init(run: @escaping @Sendable () -> Void) { self.run = run }
}
