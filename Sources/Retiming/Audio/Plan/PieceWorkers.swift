// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import OvercrankMediaCore
import Synchronization

/// Renders pieces of audio ahead, each on its own thread, and returns them in order.
///
/// Only the caller's thread reads the source. It reads long blocks, because switching to another
/// piece means a seek, which is expensive in compressed audio.
///
/// Each running piece buffers up to 32 MiB of samples. Finished pieces buffer up to 32 MiB more in
/// total. A worker without buffer space waits until samples are taken.
struct PieceWorkers {
  private let retimer: AudioRetimer
  private let limit: Int
  private let events = DispatchSemaphore(value: 0)
  /// The pieces that still need a worker, in order.
  private var waiting: Deque<(index: Int, piece: AudioPiece)>
  private var started: [(index: Int, worker: PieceWorker)] = []

  /// A closure that returns samples of a source.
  typealias Reader = (_ source: AudioSegment.Source, _ start: Int64, _ count: Int) throws -> Planes

  /// Prepares the workers for the pieces of a plan; at most `limit` run at once.
  init(_ pieces: [AudioPiece], retimer: AudioRetimer, limit: Int) {
    (self.retimer, self.limit) = (retimer, limit)
    // Only retimed pieces get a worker, because copies and silence cost little. A single retimed
    // piece gets no worker, because nothing else would be rendered at the same time.
    let costly = pieces.enumerated().filter { $0.element.content == .retimed }
    waiting =
      limit > 1 && costly.count > 1 && retimer.algorithm != .mute
      ? Deque(costly.map { (index: $0.offset, piece: $0.element) }) : []
  }

  /// Starts workers up to the limit.
  ///
  /// Returns the worker of a piece, or nil if the piece is rendered without a worker.
  mutating func start(_ index: Int) -> PieceWorker? {
    started.removeAll { $0.index < index }
    _ = startMore()
    return started.first { $0.index == index }?.worker
  }

  /// Starts workers up to the limit and answers the read requests of all workers.
  ///
  /// - Returns: True if any worker is running, false if none is.
  mutating func serve(_ read: Reader) throws -> Bool {
    let isBusy = startMore()
    for (_, worker) in started { try worker.answer(read) }
    return isBusy
  }

  /// Starts workers up to the limit.
  ///
  /// Only running workers count toward the limit. No worker is started while finished pieces hold
  /// 32 MiB or more of samples, which wait for earlier pieces.
  ///
  /// - Returns: True if any worker is running, false if none is.
  private mutating func startMore() -> Bool {
    var (busy, kept) = (0, 0)
    for (_, worker) in started {
      if worker.isOver { kept += worker.waitingSamples } else { busy += 1 }
    }
    while busy < limit, kept < PieceWorker.maximumWaiting, let next = waiting.popFirst() {
      started.append((next.index, PieceWorker(next.piece, retimer, events)))
      busy += 1
    }
    return busy > 0
  }

  /// Returns the next samples of a piece: `count` samples, or fewer at its end.
  mutating func next(
    _ count: Int, from worker: PieceWorker, into queue: inout SampleQueue,
    isCancelled: () -> Bool, _ read: Reader
  ) throws -> Planes {
    while queue.count < count {
      _ = try serve(read)
      if let block = try worker.take() {
        queue.append(block)
      } else if worker.isOver {
        // The worker may have delivered its last block and finished just after `take()` found no
        // block, so `take()` is called once more.
        guard let block = try worker.take() else { break }
        queue.append(block)
      } else if events.wait(timeout: .now() + .milliseconds(10)) == .timedOut, isCancelled() {
        throw MediaError(.cancelled, "audio rendering was cancelled")
      }
    }
    return queue.take(count)
  }

  /// Stops all workers without waiting for their threads.
  func stop() { for (_, worker) in started { worker.stop() } }
}

/// A worker that renders one piece on its own thread.
final class PieceWorker: Sendable {
  private struct State {
    var request: (start: Int64, count: Int)?
    var reply: Planes?
    var blocks: Deque<Planes> = []
    var waitingSamples = 0
    var lacksSpace = false
    var failure: (any Error)?
    var isOver = false
    var isStopped = false
  }

  /// The error that ends the rendering on the worker's thread after `stop()`.
  private struct Stopped: Error {}

  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)
  private let events: DispatchSemaphore
  private let source: AudioSegment.Source

  /// Samples per rendered block; smaller blocks cause too many thread switches.
  private static let blockLength = 16_384
  /// Samples per read request.
  private static let readLength = 32_768
  /// The limit on buffered samples, summed over all channels; these samples take 32 MiB.
  static let maximumWaiting = 8 << 20

  init(_ piece: AudioPiece, _ retimer: AudioRetimer, _ events: DispatchSemaphore) {
    self.events = events
    source = piece.source
    DispatchQueue(label: "retiming.piece").async {
      do { try self.make(piece, retimer) } catch is Stopped {} catch {
        self.state.withLock { $0.failure = error }
      }
      self.state.withLock { $0.isOver = true }
      events.signal()
    }
  }

  // MARK: On the worker's thread

  private func make(_ piece: AudioPiece, _ retimer: AudioRetimer) throws {
    var renderer = try retimer.renderer(for: piece)
    // The source is read ahead at most to the end of the piece. If the source position of that end
    // cannot be computed, zero is used, so nothing is read ahead.
    let end = (try? piece.position(at: piece.length - piece.lead)) ?? .zero
    var kept: (start: Int64, samples: Planes) = (0, .silence(0, channelCount: retimer.channelCount))
    var keptEnd: Int64 { kept.start + Int64(kept.samples.sampleCount) }
    // True if the samples after `kept` are already requested, false if not.
    var isAhead = false
    func read(_ start: Int64, _ count: Int) throws -> Planes {
      if start < kept.start || start > keptEnd {
        if isAhead { _ = try reply() }
        isAhead = false
        kept = (start, .silence(0, channelCount: retimer.channelCount))
      }
      while keptEnd < start + Int64(count) {
        if !isAhead { request(keptEnd, Self.readLength) }
        let unneeded = Int(start - kept.start)
        kept = (start, kept.samples.map { Array($0.dropFirst(unneeded)) })
        kept.samples.append(samples: try reply())
        isAhead = Rational(keptEnd) < end
        if isAhead { request(keptEnd, Self.readLength) }
      }
      let offset = Int(start - kept.start)
      return kept.samples.map { Array($0[offset..<offset + count]) }
    }
    var made: Int64 = 0
    while made < piece.length {
      let count = Int(min(piece.length - made, Int64(Self.blockLength)))
      let block = try renderer.next(count, read)
      try put(block)
      guard block.sampleCount == count else { return }
      made += Int64(count)
    }
  }

  private func request(_ start: Int64, _ count: Int) {
    state.withLock { $0.request = (start, count) }
    events.signal()
  }

  /// Waits for the requested samples.
  private func reply() throws -> Planes {
    while true {
      var reply: Planes?
      let isStopped = state.withLock { state in
        reply = state.reply
        state.reply = nil
        return state.isStopped
      }
      if isStopped { throw Stopped() }
      if let reply { return reply }
      wake.wait()
    }
  }

  private func put(_ block: Planes) throws {
    let size = block.sampleCount * block.count
    while true {
      let (isStopped, isPut) = state.withLock { state in
        let fits = state.waitingSamples + size <= Self.maximumWaiting
        state.lacksSpace = !fits
        if fits {
          state.blocks.append(block)
          state.waitingSamples += size
        }
        return (state.isStopped, fits)
      }
      if isStopped { throw Stopped() }
      if isPut { break }
      wake.wait()
    }
    events.signal()
  }

  // MARK: On the caller's thread

  /// True if the worker has finished, false if it is still rendering.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// The number of buffered samples, summed over all channels.
  var waitingSamples: Int { state.withLock { $0.waitingSamples } }

  /// True if the worker waits for buffer space, false otherwise.
  var lacksSpace: Bool { state.withLock { $0.lacksSpace } }

  /// Answers the pending read request of a running worker, if any.
  func answer(_ read: PieceWorkers.Reader) throws {
    guard let wanted = state.withLock({ $0.isOver ? nil : $0.request }) else { return }
    let samples = try read(source, wanted.start, wanted.count)
    state.withLock { state in
      state.request = nil
      state.reply = samples
    }
    wake.signal()
  }

  /// Returns the next block, or nil if none is ready.
  func take() throws -> Planes? {
    var block: Planes?
    let (failure, lacksSpace) = state.withLock { state -> ((any Error)?, Bool) in
      guard let first = state.blocks.popFirst() else { return (state.failure, false) }
      state.waitingSamples -= first.sampleCount * first.count
      block = first
      return (nil, state.lacksSpace)
    }
    if let failure { throw failure }
    if lacksSpace { wake.signal() }
    return block
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    wake.signal()
  }
}
