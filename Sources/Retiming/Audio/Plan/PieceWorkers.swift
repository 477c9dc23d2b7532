// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankMediaCore
import Synchronization

/// Pieces of sound that are made ahead, each on a thread of its own, and taken in order.
///
/// Only the caller's thread reads the source, for all of them, and only a good stretch at a time:
/// where the source is compressed, each change of place costs.
///
/// Up to 32 MiB wait to be taken of each piece that is being made, and 32 MiB more of those that were
/// made before; a piece without room keeps its place until some is taken.
struct PieceWorkers {
  private let retimer: AudioRetimer
  private let limit: Int
  private let events = DispatchSemaphore(value: 0)
  /// The pieces that are made on threads, the first of them next.
  private var waiting: [(index: Int, piece: AudioPiece)]
  private var started: [(index: Int, worker: PieceWorker)] = []

  /// Gives samples of a source by number.
  typealias Reader = (_ source: AudioSegment.Source, _ start: Int64, _ count: Int) throws -> Planes

  /// Prepares for the pieces of a plan of which so many are made at a time.
  init(_ pieces: [AudioPiece], retimer: AudioRetimer, limit: Int) {
    self.retimer = retimer
    self.limit = limit
    // Copies cost nothing; and with one piece there is nothing to make beside it.
    let costly = pieces.enumerated().filter { $0.element.content == .retimed }
    waiting =
      limit > 1 && costly.count > 1 && retimer.algorithm != .mute
      ? costly.map { (index: $0.offset, piece: $0.element) } : []
  }

  /// The source of a piece's samples, where it is made on a thread; it and the next ones are begun.
  mutating func start(_ index: Int) -> PieceWorker? {
    started.removeAll { $0.index < index }
    _ = startMore()
    return started.first { $0.index == index }?.worker
  }

  /// Begins what may be begun, and reads what the threads wait for.
  ///
  /// - Returns: Whether any piece is being made.
  mutating func serve(_ read: Reader) throws -> Bool {
    let isBusy = startMore()
    for (_, worker) in started { try worker.answer(read) }
    return isBusy
  }

  /// Begins pieces until as many are being made as may be: what is made already, and waits for a
  /// long piece before it, leaves its processor to the next one, until 32 MiB wait so.
  ///
  /// - Returns: Whether any is being made.
  private mutating func startMore() -> Bool {
    var (busy, kept) = (0, 0)
    for (_, worker) in started {
      if worker.isOver { kept += worker.waitingSamples } else { busy += 1 }
    }
    while busy < limit, kept < PieceWorker.mostWaiting, let next = waiting.first {
      waiting.removeFirst()
      started.append((next.index, PieceWorker(next.piece, retimer, events)))
      busy += 1
    }
    return busy > 0
  }

  /// The next samples of a piece: as many as are asked for, or fewer at its end.
  mutating func next(
    _ count: Int, from worker: PieceWorker, into queue: inout SampleQueue,
    isCancelled: () -> Bool, _ read: Reader
  ) throws -> Planes {
    while queue.count < count {
      _ = try serve(read)
      if let block = try worker.take() {
        queue.append(block)
      } else if worker.isOver {
        // It may have put its last just before.
        guard let block = try worker.take() else { break }
        queue.append(block)
      } else if events.wait(timeout: .now() + .milliseconds(10)) == .timedOut, isCancelled() {
        throw MediaError(.cancelled, "the sound was cancelled")
      }
    }
    return queue.take(count)
  }

  /// Ends all threads, which wait for nothing then.
  func stop() { for (_, worker) in started { worker.stop() } }
}

/// A piece that is made on a thread of its own.
final class PieceWorker: Sendable {
  private struct State {
    var request: (start: Int64, count: Int)?
    var reply: Planes?
    var blocks: [Planes] = []
    var waitingSamples = 0
    var lacksSpace = false
    var failure: (any Error)?
    var isOver = false
    var isStopped = false
  }

  /// Nobody wants it any more.
  private struct Stopped: Error {}

  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)
  private let events: DispatchSemaphore
  private let source: AudioSegment.Source

  /// How much is made at a time: threads that hand over less change places more often than it pays.
  private static let blockLength = 16_384
  /// How much of the source is read at a time.
  private static let readLength = 32_768
  /// How many samples, of all channels, may wait to be taken: 32 MiB.
  static let mostWaiting = 8 << 20

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
    // What lies beyond is not asked for ahead; nor is anything where that is no number.
    let end = (try? piece.position(at: piece.length - piece.lead)) ?? .zero
    var kept: (start: Int64, samples: Planes) = (0, .silence(0, channelCount: retimer.channelCount))
    var keptEnd: Int64 { kept.start + Int64(kept.samples.sampleCount) }
    // Whether what comes behind the kept is asked for already, so that it is there in time.
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
      let place = Int(start - kept.start)
      return kept.samples.map { Array($0[place..<place + count]) }
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

  /// Waits for what was requested.
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
        let fits = state.waitingSamples + size <= Self.mostWaiting
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

  /// Whether nothing more comes.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// How many samples, of all channels, wait to be taken.
  var waitingSamples: Int { state.withLock { $0.waitingSamples } }

  /// Whether it stands still until some are taken.
  var lacksSpace: Bool { state.withLock { $0.lacksSpace } }

  /// Reads what the worker asked for, if it did, and still wants it.
  func answer(_ read: PieceWorkers.Reader) throws {
    guard let wanted = state.withLock({ $0.isOver ? nil : $0.request }) else { return }
    let samples = try read(source, wanted.start, wanted.count)
    state.withLock { state in
      state.request = nil
      state.reply = samples
    }
    wake.signal()
  }

  /// The next block, if it is made.
  func take() throws -> Planes? {
    var block: Planes?
    let (failure, lacksSpace) = state.withLock { state -> ((any Error)?, Bool) in
      guard !state.blocks.isEmpty else { return (state.failure, false) }
      let first = state.blocks.removeFirst()
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
