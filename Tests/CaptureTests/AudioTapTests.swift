// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// One channel of 1000 samples per second, in blocks of at most 20 samples.
private let format = AudioFormat(.s16, sampleRate: 1_000, channelCount: 1)

/// Audio blocks as a capture thread produces them; each sample encodes its number and its stream.
private struct Source {
  var position: Int64 = 0
  var stream = 0

  static func value(_ sample: Int64, _ stream: Int) -> Int16 {
    Int16((sample * 5 + Int64(stream) * 7_919) % 32_749)
  }

  /// The capture time of a sample; streams are an hour apart.
  static func nanoseconds(_ sample: Int64, _ stream: Int) -> Int64 {
    (sample + Int64(stream) * 3_600_000) * 1_000_000
  }

  mutating func give(_ count: Int, missing: AudioGap? = nil, to tap: AudioTap) {
    if let missing { position = missing.position + missing.sampleCount }
    let samples = (0..<count).map { Self.value(position + Int64($0), stream).littleEndian }
    samples.withUnsafeBytes { bytes in
      tap.take(
        AudioBlock(
          position: position, sampleCount: count,
          nanoseconds: Self.nanoseconds(position, stream), gap: missing, bytes: bytes))
    }
    position += Int64(count)
  }
}

struct AudioTapTests {
  /// An audio block in the reference model, which lists all blocks of the stream.
  private struct Known {
    let position: Int64
    let stream: Int
    let count: Int
    let gap: AudioGap.Cause?
  }

  /// The reference model of the audio tap.
  ///
  /// It keeps the newest blocks whose total length does not exceed the capacity.
  private struct Model {
    var blocks: [Known] = []
    let seconds: Int

    var oldest: Int {
      var (kept, first) = (0, blocks.count)
      while first > 0, blocks.count - first < 400 * seconds,
        kept + blocks[first - 1].count <= 1_000 * seconds
      {
        first -= 1
        kept += blocks[first].count
      }
      return first
    }
  }

  @Test(arguments: 0..<8)
  func `Each reader gets every retained audio block and gap once`(seed: Int)
    throws
  {
    var random = SeededGenerator(seed: UInt64(seed) &+ 70)
    let seconds = 1 + seed % 2
    let tap = try AudioTap(format, seconds: seconds)
    var (source, model) = (Source(), Model(seconds: seconds))
    var readers: [(cursor: AudioTap.Cursor, next: Int, last: Known?)] = []
    for _ in 0..<3_000 {
      switch Int.random(in: 0..<40, using: &random) {
      case 0:
        let gap = AudioGap(
          cause: Bool.random(using: &random) ? .overrun : .suspended, position: source.position,
          sampleCount: Int64.random(in: 0..<90, using: &random))
        let count = Int.random(in: 1...20, using: &random)
        source.give(count, missing: gap, to: tap)
        model.blocks.append(
          Known(
            position: source.position - Int64(count), stream: source.stream, count: count,
            gap: gap.cause))
      case 1:
        tap.end()
        #expect(tap.hasEnded)
        source = Source(stream: source.stream + 1)
      case 2..<30:
        let count = Int.random(in: 0..<8, using: &random) == 0 ? 1 : 20
        source.give(count, to: tap)
        model.blocks.append(
          Known(
            position: source.position - Int64(count), stream: source.stream, count: count,
            gap: nil))
        #expect(!tap.hasEnded)
      case 30 where readers.count < 5:
        let last = model.blocks.last
        let time =
          Source.nanoseconds(last?.position ?? 0, last?.stream ?? 0)
          - Int64.random(in: 0..<3_000_000_000, using: &random)
        let number = (model.oldest..<model.blocks.count).first {
          let block = model.blocks[$0]
          return Source.nanoseconds(block.position + Int64(block.count), block.stream) >= time
        }
        readers.append(
          (tap.cursor(atNanoseconds: time), number ?? model.blocks.count, nil))
      default:
        guard let index = readers.indices.randomElement(using: &random) else { continue }
        if Int.random(in: 0..<200, using: &random) == 0 {
          readers.remove(at: index)
          continue
        }
        for _ in 0..<Int.random(in: 0..<80, using: &random) {
          let number = max(readers[index].next, model.oldest)
          let piece = tap.read(&readers[index].cursor)
          guard number < model.blocks.count else {
            #expect(piece == nil)
            break
          }
          let (block, last) = (model.blocks[number], readers[index].last)
          let isLate = number > readers[index].next
          let expected: AudioInterruption? =
            if let last {
              if last.stream != block.stream {
                .restart
              } else if isLate {
                .missing(.outOfBuffers)
              } else {
                block.gap.map { .missing($0) }
              }
            } else {
              nil
            }
          #expect(piece?.interruption == expected)
          #expect(piece?.nanoseconds == Source.nanoseconds(block.position, block.stream))
          let values = (0..<block.count).map {
            Float(Source.value(block.position + Int64($0), block.stream)) / 32_768
          }
          #expect(piece?.channels == [values])
          (readers[index].next, readers[index].last) = (number + 1, block)
        }
      }
    }
    #expect(model.blocks.count > 1_500)
  }

  @Test func `Concurrent readers get every audio block exactly once`() async throws {
    let tap = try AudioTap(format, seconds: 30)
    let count: Int64 = 20_000
    let thread = try BlockingThread {
      var source = Source()
      while source.position < count {
        source.give(4, to: tap)
        // Making a cursor empties the ring, even while no reader gets processor time.
        if source.position % 200 == 0 { _ = tap.cursor(atNanoseconds: .max) }
      }
      tap.end()
    }
    await withTaskGroup(of: (Int64, Bool).self) { group in
      for _ in 0..<3 {
        group.addTask {
          var cursor = tap.cursor(atNanoseconds: 0)
          var (next, isRight) = (Int64(0), true)
          while next < count {
            guard let piece = tap.read(&cursor) else {
              if !tap.wait(for: cursor, milliseconds: 1_000_000_000) { break }
              continue
            }
            isRight = isRight && piece.interruption == nil
            for (offset, value) in piece.channels[0].enumerated() {
              let wanted = Source.value(next + Int64(offset), 0)
              isRight = isRight && value == Float(wanted) / 32_768
            }
            next += Int64(piece.sampleCount)
          }
          return (next, isRight)
        }
      }
      for await result in group { #expect(result == (count, true)) }
    }
    thread.join()
  }

  @Test func `Audio missed while a connection is disabled becomes a gap`()
    throws
  {
    let gate = ConnectionGate()
    let tap = try AudioTap(format, gate: gate, seconds: 1)
    var source = Source()
    for _ in 0..<10 { source.give(10, to: tap) }
    #expect(tap.levels.count == 1 && tap.levels[0].peakDBFS > -60)
    var cursor = tap.cursor(atNanoseconds: 0)
    for _ in 0..<10 { #expect(tap.read(&cursor)?.interruption == nil) }
    gate.isOpen.store(false, ordering: .relaxed)
    source.give(10, to: tap)
    #expect(tap.read(&cursor) == nil && !tap.wait(for: cursor, milliseconds: 1))
    gate.isOpen.store(true, ordering: .relaxed)
    source.give(10, to: tap)
    #expect(tap.wait(for: cursor, milliseconds: 1))
    #expect(tap.read(&cursor)?.interruption == .switchedOff)
    tap.end()
    #expect(tap.hasEnded && tap.levels[0].peakDBFS == -.infinity)
    #expect(!tap.wait(for: cursor, milliseconds: 100_000))
  }
}
