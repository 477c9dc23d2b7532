// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// A queue of samples between the capture thread and the consumer.
///
/// One thread at a time removes entries.
protocol DeliveryQueue<Sample>: AnyObject, Sendable {
  associatedtype Sample: Sendable

  /// The number of queued entries: samples, and notes of dropped samples.
  var count: Int { get }

  /// If the oldest entry is a note of a dropped sample, removes it and reports the drop.
  ///
  /// Returns true in that case, and false for a sample or an empty queue.
  func passNoteOn() -> Bool

  /// If the output holds more samples than its share, drops the oldest one and returns true.
  ///
  /// Otherwise returns false.
  func dropSurplus() -> Bool

  /// Prepares the oldest sample for the consumer that waits for it.
  ///
  /// Returns true if the sample could not be prepared and was dropped.
  func prepare() -> Bool

  /// Removes and returns the oldest sample. Returns nil if the oldest entry is a note or the queue
  /// is empty.
  func take() -> Sample?

  /// Releases all queued samples. Called when no consumer is left.
  func drain()
}

extension DeliveryQueue {
  func dropSurplus() -> Bool { false }
  func prepare() -> Bool { false }
}

/// Delivers the samples of a data output to the program.
///
/// A thread removes samples from a queue and delivers them one at a time to a waiting task or to a
/// handler. If a thread of the program waits in a blocking call, that thread removes the sample
/// itself.
final class SampleDeliverer<Sample: Sendable>: Sendable {
  /// A queue, and whether entries may still be added to it.
  fileprivate final class Source: Sendable {
    let queue: any DeliveryQueue<Sample>
    let hasEnded = Atomic<Bool>(false)

    init(_ queue: any DeliveryQueue<Sample>) { self.queue = queue }

    /// Whether the queue is empty, and no more entries will be added.
    var isOver: Bool { hasEnded.load(ordering: .acquiring) && queue.count == 0 }
  }

  /// A sink's permission to add entries to a queue.
  ///
  /// A sink that was replaced may get a last frame from its capture thread. So the deliverer keeps
  /// the queue until the sink has released its feed.
  final class Feed: Sendable {
    private let source: Source
    private let ready: DispatchSemaphore

    fileprivate init(_ source: Source, _ ready: DispatchSemaphore) {
      (self.source, self.ready) = (source, ready)
    }

    deinit {
      source.hasEnded.store(true, ordering: .releasing)
      ready.signal()
    }

    /// Wakes the deliverer, to deliver a new entry or to drop a surplus entry.
    func wake() { ready.signal() }
  }

  private struct State {
    var sources: [Source] = []
    var handler: (@Sendable (Sample) -> Void)?
    /// The task that waits for a sample, and the number that identifies its call of `next()`.
    var waiting: (number: Int, continuation: CheckedContinuation<Sample?, Never>)?
    var callCount = 0
    /// The number of threads that are blocked until a sample arrives.
    var pullerCount = 0
    var hasThread = false
    /// Whether no more samples will arrive until the output joins a session again.
    var isFinished = false
    var isStopped = false
  }

  /// Signaled for each new queue entry and after each change of state.
  private let wake = DispatchSemaphore(value: 0)
  /// Whether any task, thread or handler has ever requested samples.
  let hasTaker = Atomic<Bool>(false)
  private let state = Mutex(State())
  /// The lock that is held while an entry is removed from a queue.
  private let taking = Mutex(())
  /// Signaled for each thread that is blocked until a sample arrives.
  private let pulled = DispatchSemaphore(value: 0)

  /// Starts to deliver this queue's samples, after the samples that wait in earlier queues.
  ///
  /// - Returns: The feed of the sink that adds the samples to the queue.
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  func begin(_ queue: some DeliveryQueue<Sample>) throws(MediaError) -> Feed {
    let source = Source(queue)
    try state.withLock { (state) throws(MediaError) in
      if !state.hasThread { try BlockingThread.started { [self] in run() }.detach() }
      state.hasThread = true
      state.sources.removeAll(where: \.isOver)
      state.sources.append(source)
      state.isFinished = false
    }
    return Feed(source, wake)
  }

  /// Sets a handler for each sample, called on an executor or on the delivery thread.
  func setHandler(
    on executor: (any SerialExecutor)?, _ handler: @escaping @Sendable (Sample) -> Void
  ) {
    let handler = executor.map { HandlerActor.wrap(handler, on: $0) } ?? handler
    state.withLock { $0.handler = handler }
    hasTaker.store(true, ordering: .releasing)
    wake.signal()
  }

  /// Ends the delivery thread.
  ///
  /// A waiting consumer gets nil, and no further call of the handler begins.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      state.handler = nil
    }
    dismiss()
    wake.signal()
  }

  /// Ends the delivery once the queued samples are delivered.
  ///
  /// Consumers then get nil.
  func finish() {
    let hasThread = state.withLock { state in
      state.isFinished = true
      return state.hasThread
    }
    if hasThread { wake.signal() } else { dismiss() }
  }

  /// Makes the call of a waiting consumer return nil.
  ///
  /// - Parameter number: The number of the call of `next()` to end. Nil ends any waiting call.
  private func dismiss(_ number: Int? = nil) {
    let waiting = state.withLock { state in
      number == nil || state.waiting?.number == number ? state.waiting.take() : nil
    }
    waiting?.continuation.resume(returning: nil)
    guard number == nil else { return }
    for _ in 0..<state.withLock({ $0.pullerCount }) { pulled.signal() }
  }

  /// Suspends the task until the next sample arrives.
  ///
  /// Only one task can wait. If another task is already waiting, that other task gets nil.
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

  /// Blocks until a sample arrives and removes it on the calling thread.
  ///
  /// - Parameter take: Removes and returns the oldest sample of a queue, or returns nil if the
  ///   oldest entry is not a sample.
  /// - Returns: The sample, or nil when no more samples arrive.
  func waitForNext<Taken: ~Copyable & Sendable>(
    _ take: (any DeliveryQueue<Sample>) -> Taken?
  ) -> Taken? {
    hasTaker.store(true, ordering: .releasing)
    while true {
      while let queue = currentQueue(), queue.count > 0 {
        let taken = taking.withLock { _ in
          while queue.passNoteOn() || queue.dropSurplus() || queue.prepare() {}
          return take(queue)
        }
        if let taken { return taken }
      }
      let hasEnded = state.withLock { state in
        let isEmpty = state.sources.allSatisfy { $0.queue.count == 0 }
        if !state.isStopped, !state.isFinished || !isEmpty {
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
      guard isStopped else { continue }
      let sources = state.withLock { $0.sources }
      for source in sources { taking.withLock { _ in source.queue.drain() } }
      // This thread ends only when every sink has released its feed. Until then, a sink may still
      // add a frame that holds a camera's buffer.
      if sources.allSatisfy(\.isOver) { return }
    }
  }

  /// The oldest queue that still has entries or, if all queues are empty, the newest queue.
  private func currentQueue() -> (any DeliveryQueue<Sample>)? {
    state.withLock { state in
      while state.sources.count > 1, state.sources[0].isOver { state.sources.removeFirst() }
      return (state.sources.first { $0.queue.count > 0 } ?? state.sources.last)?.queue
    }
  }

  /// Delivers the oldest entry to a waiting consumer.
  ///
  /// Returns true if the entry was removed, and false if there is no entry or no consumer.
  private func deliverOne() -> Bool {
    guard let queue = currentQueue(), queue.count > 0 else { return false }
    let (pullerCount, hasHandler, isAwaited) = state.withLock {
      ($0.pullerCount, $0.handler != nil, $0.handler != nil || $0.waiting != nil)
    }
    if pullerCount > 0 {
      pulled.signal()
      return false
    }
    if taking.withLock({ _ in queue.passNoteOn() || queue.dropSurplus() }) { return true }
    guard isAwaited else { return false }
    if taking.withLock({ _ in queue.prepare() }) { return true }
    if hasHandler {
      guard let sample = taking.withLock({ _ in queue.take() }) else { return true }
      // If no handler is set any more, the output was stopped meanwhile. The sample is then
      // released and not delivered.
      state.withLock { $0.handler }?(sample)
    } else {
      // The waiting continuation is claimed before a sample is removed from the queue. If a
      // cancellation claims the continuation first, the sample stays in the queue.
      guard let waiting = state.withLock({ $0.waiting.take() }) else { return false }
      waiting.continuation.resume(returning: taking.withLock { _ in queue.take() })
    }
    return true
  }
}

/// An actor that calls a handler on the executor that the program supplied.
private actor HandlerActor<Sample: Sendable> {
  nonisolated let executor: any SerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let handler: @Sendable (Sample) -> Void

  init(_ handler: @escaping @Sendable (Sample) -> Void, on executor: any SerialExecutor) {
    (self.handler, self.executor) = (handler, executor)
  }

  func call(_ sample: Sample) { handler(sample) }

  /// Returns a closure that runs the handler on its executor and blocks until the handler returns.
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
