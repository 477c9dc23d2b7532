// SPDX-License-Identifier: Apache-2.0
import Dispatch
import MediaTiming
import Synchronization

/// The program's end of a data output: a thread that takes frames out of the ring and hands them
/// over, one at a time, to whoever asks or to a closure.
final class FrameDeliverer: Sendable {
  private struct Source {
    let ring: LoanRing
    let input: DeviceInput
    let options: DataSink.Options
  }

  private struct State {
    var sources: [Source] = []
    var handler: (@Sendable (SampleBuffer) -> Void)?
    var waiting: CheckedContinuation<SampleBuffer?, Never>?
    var hasThread = false
    /// Whether no more frames will come, until the output joins a session again.
    var isFinished = false
    var isStopped = false
  }

  let drops = EventHub<DroppedFrame>()
  /// Signalled for each entry of the ring, and when something else changed.
  let wake = DispatchSemaphore(value: 0)
  private let counters: DataOutputCounters
  private let converters = PictureConverters()
  private let state = Mutex(State())

  init(_ counters: DataOutputCounters) { self.counters = counters }

  /// Takes frames from a ring from now on, after those of rings before.
  func begin(_ ring: LoanRing, from input: DeviceInput, _ options: DataSink.Options) {
    let needsThread = state.withLock { state in
      state.sources.removeAll { $0.ring.count == 0 }
      state.sources.append(Source(ring: ring, input: input, options: options))
      state.isFinished = false
      defer { state.hasThread = true }
      return !state.hasThread
    }
    guard needsThread else { return }
    // Without a thread to be had nothing is delivered, and the ledger says so.
    try? PlatformThread { [self] in run() }.detach()
  }

  func setHandler(_ handler: (@Sendable (SampleBuffer) -> Void)?) {
    state.withLock { $0.handler = handler }
    wake.signal()
  }

  /// Ends the thread; whoever waits for a frame gets none.
  func stop() {
    state.withLock { $0.isStopped = true }
    dismiss()
    wake.signal()
  }

  /// Tells whoever waits for a frame, or will, that no more come than wait already.
  func finishFrames() {
    let hasThread = state.withLock { state in
      state.isFinished = true
      return state.hasThread
    }
    if hasThread { wake.signal() } else { dismiss() }
  }

  /// Tells whoever waits for a frame that none will come.
  private func dismiss() { state.withLock { $0.waiting.take() }?.resume(returning: nil) }

  /// The next frame for a task that asks.
  func next() async -> SampleBuffer? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let before = state.withLock { state in
          defer { state.waiting = state.isStopped || Task.isCancelled ? nil : continuation }
          return state.isStopped || Task.isCancelled ? continuation : state.waiting
        }
        // A second task that asks takes the place of the first.
        before?.resume(returning: nil)
        wake.signal()
      }
    } onCancel: {
      dismiss()
    }
  }

  private func run() {
    while true {
      wake.wait()
      while deliverOne() {}
      let (isFinished, isStopped) = state.withLock { ($0.isFinished, $0.isStopped) }
      if isFinished || isStopped { dismiss() }
      if isStopped { return drain() }
    }
  }

  /// Hands over the oldest entry, if there is one and someone to take it.
  private func deliverOne() -> Bool {
    let (source, handler) = state.withLock { state in
      if state.sources.count > 1, state.sources[0].ring.count == 0 { state.sources.removeFirst() }
      return (state.sources.first, state.handler)
    }
    guard let source, source.ring.count > 0 else { return false }
    if source.ring.beginsWithNote {
      tell(source.ring.pop())
    } else if let handler {
      if let sample = take(from: source) { handler(sample) }
    } else {
      // Who asks is known before a frame is taken for it: one that was cancelled takes none.
      guard let waiting = state.withLock({ $0.waiting.take() }) else { return false }
      waiting.resume(returning: take(from: source))
    }
    return true
  }

  private func take(from source: Source) -> SampleBuffer? {
    guard let entry = source.ring.pop(), case .lent(let loan) = entry.passage else { return nil }
    source.options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return SampleBuffer(
      entry.observation, loan, of: source.input, options: source.options, converters: converters)
  }

  private func tell(_ entry: LoanRing.Entry?) {
    guard let entry, case .dropped(let reason) = entry.passage else { return }
    drops.send(
      DroppedFrame(
        presentationTimeStamp: MediaTime(microseconds: entry.observation.microseconds),
        sequence: entry.observation.stamp.sequence, reason: reason))
  }

  /// Gives back what nobody will take any more.
  private func drain() {
    for source in state.withLock({ $0.sources }) {
      while let entry = source.ring.pop() {
        guard case .lent(let loan) = entry.passage else { continue }
        source.options.kept.wrappingSubtract(1, ordering: .relaxed)
        source.options.waiting.wrappingSubtract(1, ordering: .relaxed)
        source.input.loans.release(loan)
      }
    }
  }
}
