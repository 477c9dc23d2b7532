// SPDX-License-Identifier: Apache-2.0
import Dispatch
import MediaTiming
import Synchronization

/// The program's end of a data output: a thread that takes frames out of the ring and hands them
/// over, one at a time, to whoever asks or to a closure.
final class FrameDeliverer: Sendable {
  private struct Source {
    let ring: LoanRing
    let loans: FrameLoans
    let format: FormatDescription
    /// How long a frame lasts.
    let duration: MediaTime
    let options: DataSink.Options
  }

  private struct State {
    var sources: [Source] = []
    var handler: (@Sendable (SampleBuffer) -> Void)?
    /// Who waits for a frame, and the number of its call.
    var waiting: (number: Int, continuation: CheckedContinuation<SampleBuffer?, Never>)?
    var callCount = 0
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
  func begin(
    _ ring: LoanRing, _ loans: FrameLoans, from input: DeviceInput, _ options: DataSink.Options
  ) {
    let source = Source(
      ring: ring, loans: loans, format: FormatDescription(input.delivery),
      duration: input.negotiatedFrameRate.frameDuration, options: options)
    let needsThread = state.withLock { state in
      state.sources.removeAll { $0.ring.count == 0 }
      state.sources.append(source)
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
  ///
  /// - Parameter number: The call that is meant; nil for whichever waits.
  private func dismiss(_ number: Int? = nil) {
    let waiting = state.withLock { state in
      number == nil || state.waiting?.number == number ? state.waiting.take() : nil
    }
    waiting?.continuation.resume(returning: nil)
  }

  /// The next frame for a task that asks.
  ///
  /// A second task that asks takes the place of the first, which gets none.
  func next() async -> SampleBuffer? {
    let number = state.withLock { state in
      state.callCount += 1
      return state.callCount
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let dismissed: CheckedContinuation<SampleBuffer?, Never>? = state.withLock { state in
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

  private func run() {
    while true {
      wake.wait()
      while giveBackOne() || deliverOne() {}
      let (isFinished, isStopped) = state.withLock { ($0.isFinished, $0.isStopped) }
      if isFinished || isStopped { dismiss() }
      if isStopped { return drain() }
    }
  }

  /// Drops the oldest entry where more is kept than may be: others have joined, and are to get
  /// their share.
  private func giveBackOne() -> Bool {
    guard let source = state.withLock({ $0.sources.first }), source.ring.count > 0,
      source.options.isOverShare
    else { return false }
    guard let entry = source.ring.pop() else { return false }
    guard case .lent(let loan) = entry.passage else {
      tell(entry)
      return true
    }
    giveBack(loan, to: source)
    counters.note(.outOfBuffers)
    tell(LoanRing.Entry(observation: entry.observation, passage: .dropped(.outOfBuffers)))
    return true
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
      waiting.continuation.resume(returning: take(from: source))
    }
    return true
  }

  private func take(from source: Source) -> SampleBuffer? {
    guard let entry = source.ring.pop(), case .lent(let loan) = entry.passage else { return nil }
    source.options.waiting.wrappingSubtract(1, ordering: .releasing)
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return SampleBuffer(
      entry.observation, loan, of: source.loans, format: source.format,
      duration: source.duration, options: source.options, converters: converters)
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
        if case .lent(let loan) = entry.passage { giveBack(loan, to: source) }
      }
    }
  }

  private func giveBack(_ loan: FrameLoans.Loan, to source: Source) {
    source.options.kept.wrappingSubtract(1, ordering: .relaxed)
    source.options.waiting.wrappingSubtract(1, ordering: .relaxed)
    source.loans.release(loan)
  }
}
