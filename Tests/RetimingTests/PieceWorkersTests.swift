// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRetiming

struct PieceWorkersTests {
  /// Pieces of audio with the given counts of source samples.
  ///
  /// Each plays at speed 2 and is separate from the others.
  private func workers(
    _ lengths: [Int64], channelCount: Int, limit: Int
  ) throws -> (workers: PieceWorkers, pieces: [AudioPiece]) {
    var end = MediaTime.zero
    let mappings = try lengths.enumerated().map { index, length in
      let mapping = try TimeMapping.of(
        Int64(lengths.count - index) * 1_000_000, length, at: .of(2), from: end)
      end = mapping.target.end
      return PlaybackMapping(mapping)
    }
    let retimer = try AudioRetimer(
      algorithm: .varispeed, sampleRate: 48_000, channelCount: channelCount)
    var plan = try AudioPlan(
      mappings.map { AudioSegment($0) }, duration: nil, sampleRate: 48_000, algorithm: .varispeed,
      otherSpeeds: .refused)
    try plan.join(.varispeed, fade: 240)
    return (PieceWorkers(plan.pieces, retimer: retimer, limit: limit), plan.pieces)
  }

  /// Reads a piece to its end, and returns its number of samples.
  private func takeAll(
    from worker: PieceWorker, _ workers: inout PieceWorkers, channelCount: Int,
    _ read: PieceWorkers.Reader
  ) throws -> Int64 {
    var queue = SampleQueue(channelCount: channelCount, dropping: 0)
    var taken: Int64 = 0
    while case let block = try workers.next(
      4096, from: worker, into: &queue, isCancelled: { false }, read), block.sampleCount > 0
    { taken += Int64(block.sampleCount) }
    return taken
  }

  @Test func `An audio render thread pauses when its output buffer is full`() throws {
    let channelCount = 64
    var (workers, pieces) = try workers([320_000, 1000], channelCount: channelCount, limit: 2)
    let started = workers.start(0)
    let worker = try #require(started)
    // Nothing is taken from the output, as if writing were slower than rendering.
    func read(_ source: AudioSegment.Source, _ start: Int64, _ count: Int) -> Planes {
      .silence(count, channelCount: channelCount)
    }
    while try workers.serve(read), !worker.lacksSpace { sched_yield() }
    #expect(worker.lacksSpace)
    #expect(worker.waitingSamples <= PieceWorker.maximumWaiting)
    #expect(worker.waitingSamples > PieceWorker.maximumWaiting / 2)
    let taken = try takeAll(from: worker, &workers, channelCount: channelCount, read)
    #expect(taken == pieces[0].length)
    #expect(worker.isOver && worker.waitingSamples == 0)
    workers.stop()
  }

  @Test func `Audio pieces are rendered ahead only up to a memory limit`() throws {
    let channelCount = 64
    // Two of the short pieces need more memory than the limit.
    let lengths: [Int64] = [320_000] + [Int64](repeating: 140_000, count: 8)
    var (workers, pieces) = try workers(lengths, channelCount: channelCount, limit: 2)
    let started = workers.start(0)
    let first = try #require(started)
    var begun: Set<Int64> = []
    func read(_ source: AudioSegment.Source, _ start: Int64, _ count: Int) -> Planes {
      begun.insert((start + 500_000) / 1_000_000)
      return .silence(count, channelCount: channelCount)
    }
    while begun.count < 3 || !first.lacksSpace {
      _ = try workers.serve(read)
      sched_yield()
    }
    // Without the memory limit, other audio pieces would begin within 20 000 iterations.
    for _ in 0..<20_000 where begun.count < 9 {
      _ = try workers.serve(read)
      sched_yield()
    }
    #expect(begun == [9, 8, 7])
    for (index, piece) in pieces.enumerated() {
      let begun = workers.start(index)
      let worker = try #require(begun)
      let taken = try takeAll(from: worker, &workers, channelCount: channelCount, read)
      #expect(taken == piece.length)
    }
    workers.stop()
  }

  @Test func `Short audio pieces are rendered ahead on several threads`() throws {
    let lengths = [Int64](repeating: 1000, count: 6)
    var (workers, pieces) = try workers(lengths, channelCount: 1, limit: 2)
    var begun: Set<Int64> = []
    let started = workers.start(0)
    let first = try #require(started)
    while try workers.serve({ _, start, count in
      // The source of each audio piece starts at a multiple of a million samples, except for a few
      // samples that are read before.
      begun.insert((start + 500_000) / 1_000_000)
      return .silence(count, channelCount: 1)
    }) { sched_yield() }
    // All pieces are rendered before any sample of the first is taken.
    #expect(begun == [1, 2, 3, 4, 5, 6])
    #expect(first.waitingSamples == pieces[0].length)
    workers.stop()
  }
}
