// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// Where samples wait for whoever takes them; one thread at a time takes them out.
protocol SampleQueue<Sample>: AnyObject, Sendable {
  associatedtype Sample: Sendable

  /// Entries that wait, notes included.
  var count: Int { get }

  /// Takes the oldest entry out if it is a note, and passes that on; false for a sample.
  func passNoteOn() -> Bool

  /// Drops the oldest sample where more is kept than may be; false where it is not.
  func dropSurplus() -> Bool

  /// Takes the oldest entry out; nil where there is none to be had.
  func take() -> Sample?

  /// Releases everything: nobody will take it any more.
  func drain()
}

extension SampleQueue {
  func dropSurplus() -> Bool { false }
}

/// The program's end of a data output.
///
/// A thread takes samples out of a queue and hands them over, one at a time, to whoever asks or to a
/// closure; a thread that waits for one takes it out itself.
final class SampleDeliverer<Sample: Sendable>: Sendable {
  private struct State {
    var queues: [any SampleQueue<Sample>] = []
    var handler: (@Sendable (Sample) -> Void)?
    /// Who waits for a sample, and the number of its call.
    var waiting: (number: Int, continuation: CheckedContinuation<Sample?, Never>)?
    var callCount = 0
    /// Threads that wait to take a sample out themselves.
    var pullerCount = 0
    var hasThread = false
    /// Whether no more samples will come, until the output joins a session again.
    var isFinished = false
    var isStopped = false
  }

  /// Signalled for each entry of the queue, and when something else changed.
  let wake = DispatchSemaphore(value: 0)
  /// Whether anyone has ever asked for samples.
  let hasTaker = Atomic<Bool>(false)
  private let state = Mutex(State())
  /// Held by who takes something out of a queue, and by nobody for long.
  private let taking = Mutex(())
  /// Signalled for a thread that waits.
  private let pulled = DispatchSemaphore(value: 0)

  /// Takes samples from a queue from now on, after those of queues before.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  func begin(_ queue: some SampleQueue<Sample>) throws(MediaError) {
    let result = state.withLock { state in
      Result { () throws(MediaError) in
        if !state.hasThread { try BlockingThread.started { [self] in run() }.detach() }
        state.hasThread = true
        state.queues.removeAll { $0.count == 0 }
        state.queues.append(queue)
        state.isFinished = false
      }
    }
    try result.get()
  }

  /// Has a closure called with each sample, on an executor or on this thread.
  func setHandler(
    on executor: (any SerialExecutor)?, _ handler: @escaping @Sendable (Sample) -> Void
  ) {
    let handler = executor.map { HandlerActor.wrap(handler, on: $0) } ?? handler
    state.withLock { $0.handler = handler }
    hasTaker.store(true, ordering: .releasing)
    wake.signal()
  }

  /// Ends the thread; whoever waits for a sample gets none.
  func stop() {
    state.withLock { $0.isStopped = true }
    dismiss()
    wake.signal()
  }

  /// Tells whoever waits for a sample, or will, that no more come than wait already.
  func finish() {
    let hasThread = state.withLock { state in
      state.isFinished = true
      return state.hasThread
    }
    if hasThread { wake.signal() } else { dismiss() }
  }

  /// Tells whoever waits for a sample that none will come.
  ///
  /// - Parameter number: The call that is meant; nil for whichever waits.
  private func dismiss(_ number: Int? = nil) {
    let waiting = state.withLock { state in
      number == nil || state.waiting?.number == number ? state.waiting.take() : nil
    }
    waiting?.continuation.resume(returning: nil)
    guard number == nil else { return }
    for _ in 0..<state.withLock({ $0.pullerCount }) { pulled.signal() }
  }

  /// The next sample for a task that asks.
  ///
  /// A second task that asks takes the place of the first, which gets none.
  func next() async -> Sample? {
    hasTaker.store(true, ordering: .releasing)
    let number = state.withLock { state in
      state.callCount += 1
      return state.callCount
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let dismissed: CheckedContinuation<Sample?, Never>? = state.withLock { state in
          if state.isStopped || Task.isCancelled { return continuation }
          defer { state.waiting = (number, continuation) }
          return state.waiting?.continuation
        }
        dismissed?.resume(returning: nil)
        wake.signal()
      }
    } onCancel: {
      dismiss(number)
    }
  }

  /// Waits until there is a sample, and takes it out on the calling thread.
  ///
  /// - Parameter take: Takes the oldest entry out of a queue; nil where that is no sample.
  /// - Returns: Nil when no more samples come.
  func waitForNext<Taken: ~Copyable & Sendable>(
    _ take: (any SampleQueue<Sample>) -> Taken?
  ) -> Taken? {
    hasTaker.store(true, ordering: .releasing)
    while true {
      while let queue = currentQueue(), queue.count > 0 {
        let taken = taking.withLock { _ in
          while queue.passNoteOn() || queue.dropSurplus() {}
          return take(queue)
        }
        if let taken { return taken }
      }
      let hasEnded = state.withLock { state in
        if !state.isStopped, !state.isFinished || state.queues.contains(where: { $0.count > 0 }) {
          state.pullerCount += 1
          return false
        }
        return true
      }
      if hasEnded { return nil }
      wake.signal()
      pulled.wait()
      state.withLock { $0.pullerCount -= 1 }
    }
  }

  private func run() {
    while true {
      wake.wait()
      while deliverOne() {}
      let (isFinished, isStopped) = state.withLock { ($0.isFinished, $0.isStopped) }
      if isFinished || isStopped { dismiss() }
      if isStopped {
        for queue in state.withLock({ $0.queues }) { taking.withLock { _ in queue.drain() } }
        return
      }
    }
  }

  /// The queue whose samples come next.
  private func currentQueue() -> (any SampleQueue<Sample>)? {
    state.withLock { state in
      if state.queues.count > 1, state.queues[0].count == 0 { state.queues.removeFirst() }
      return state.queues.first
    }
  }

  /// Hands over the oldest entry, if there is one and someone to take it.
  private func deliverOne() -> Bool {
    guard let queue = currentQueue(), queue.count > 0 else { return false }
    let (handler, pullerCount) = state.withLock { ($0.handler, $0.pullerCount) }
    if pullerCount > 0 {
      pulled.signal()
      return false
    }
    if taking.withLock({ _ in queue.passNoteOn() || queue.dropSurplus() }) { return true }
    if let handler {
      if let sample = taking.withLock({ _ in queue.take() }) { handler(sample) }
    } else {
      // Who asks is known before a sample is taken for it: one that was cancelled takes none.
      guard let waiting = state.withLock({ $0.waiting.take() }) else { return false }
      waiting.continuation.resume(returning: taking.withLock { _ in queue.take() })
    }
    return true
  }
}

/// Calls a closure on an executor of the caller's.
private actor HandlerActor<Sample: Sendable> {
  nonisolated let executor: any SerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let handler: @Sendable (Sample) -> Void

  init(_ handler: @escaping @Sendable (Sample) -> Void, on executor: any SerialExecutor) {
    self.handler = handler
    self.executor = executor
  }

  func call(_ sample: Sample) { handler(sample) }

  /// A closure that returns when the handler has, on its executor.
  static func wrap(
    _ handler: @escaping @Sendable (Sample) -> Void, on executor: any SerialExecutor
  ) -> @Sendable (Sample) -> Void {
    let actor = HandlerActor(handler, on: executor)
    return { sample in
      let isDone = DispatchSemaphore(value: 0)
      Task {
        await actor.call(sample)
        isDone.signal()
      }
      isDone.wait()
    }
  }
}
