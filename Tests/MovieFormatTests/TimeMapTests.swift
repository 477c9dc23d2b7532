// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankMovieFormat

/// The code of a time map, against maps that are made at random, and against bytes of strangers.
struct TimeMapTests {
  private static let take = TimeMap.Recording(
    identity: 0xF00D_0000_1234_5678, basis: .driver, timescale: 1_000_000, knowsLosses: true)

  /// A map of one recording that plays at one speed.
  private func map(
    _ frames: [TimeMap.Frame], scale: Rational? = .one, of recording: TimeMap.Recording = take
  ) -> TimeMap {
    var map = TimeMap()
    map.beginSegment(recording: map.index(of: recording), timeScale: scale, isContinued: false)
    for frame in frames { map.append(frame) }
    return map
  }

  /// Frames at a rate, with the capture times that a driver truncates to microseconds.
  private func steady(_ count: Int, rate: Int64 = 240, every step: Int = 1) -> [TimeMap.Frame] {
    stride(from: 0, to: count * step, by: step).map {
      TimeMap.Frame(index: Int64($0), ticks: 7_000_123 + Int64($0) * 1_000_000 / rate)
    }
  }

  private func size(_ map: TimeMap) -> Int { map.code.count }

  @Test func `A code gives the same map back`() throws {
    for seed in 0..<UInt64(RunSize.cases(300, full: 5_000)) {
      let map = RandomMap(seed: seed).map
      let read = TimeMap(code: map.code, frameCount: map.frames.count)
      #expect(read == map, "seed \(seed)")
      #expect(TimeMap(code: map.code, frameCount: map.frames.count + 1) == nil, "seed \(seed)")
    }
  }

  @Test func `A steady take takes a few bytes in all`() {
    for rate: Int64 in [24, 30, 60, 120, 240, 480, 960, 1_000] {
      #expect(size(map(steady(20_000, rate: rate))) < 80, "\(rate) fps")
      #expect(size(map(steady(2_000, rate: rate, every: 8))) < 80, "\(rate) fps, every eighth")
    }
    // Each frame shown twice, as at 1/16 speed in 30 fps.
    let twice = steady(5_000).flatMap { frame -> [TimeMap.Frame] in
      var second = frame
      second.content = .repeated
      return [frame, second]
    }
    #expect(size(map(twice, scale: Rational(1, over: 16))) < 100)
    #expect(size(map(steady(5_000).reversed(), scale: Rational(-1, over: 8))) < 80)
  }

  @Test func `A take that jitters takes three bytes a frame`() {
    var random = SeededGenerator(seed: 3)
    for rate: Int64 in [25, 30, 60, 120, 240, 1_000] {
      var (slot, lost): (Int64, Int64) = (0, 0)
      let frames = (0..<5_000).map { index -> TimeMap.Frame in
        if Int.random(in: 0..<50, using: &random) == 0 {
          let gap = Int64.random(in: 1...4, using: &random)
          (slot, lost) = (slot + gap, lost + gap)
        }
        slot += 1
        let jitter = Int64.random(in: -900...900, using: &random) / max(1, rate / 240)
        return TimeMap.Frame(
          index: Int64(index), lost: lost, ticks: slot * 1_000_000 / rate + jitter)
      }
      #expect(size(map(frames)) <= 3 * frames.count, "\(rate) fps")
    }
  }

  @Test func `Losses count between frames that play on`() {
    var map = TimeMap()
    let recording = map.index(of: Self.take)
    map.beginSegment(recording: recording, timeScale: .one, isContinued: false)
    for (index, lost) in [(0, 0), (1, 3), (2, 3)] {
      map.append(TimeMap.Frame(index: Int64(index), lost: Int64(lost), ticks: Int64(index + lost)))
    }
    map.beginSegment(recording: recording, timeScale: Rational(1, over: 8), isContinued: true)
    map.append(TimeMap.Frame(index: 3, lost: 5, ticks: 8))
    map.beginSegment(recording: recording, timeScale: .one, isContinued: false)
    map.append(TimeMap.Frame(index: 0, lost: 0, ticks: 0))
    #expect((0..<5).map { map.lostBefore(frame: $0) } == [0, 3, 0, 2, 0])
    #expect((0..<5).map { map.segmentIndex(ofFrame: $0) } == [0, 0, 0, 1, 2])
    #expect(map.captureTime(ofFrame: 3) == MediaTime(microseconds: 8))
    #expect(map.captureTime(ofFrame: 5) == nil)
  }

  @Test func `Frames of unknown origin have no time`() {
    var map = TimeMap()
    map.beginSegment(recording: nil, timeScale: .one, isContinued: true)
    map.append(TimeMap.Frame(index: 9, lost: 9, ticks: 9))
    #expect(map.captureTime(ofFrame: 0) == nil)
    #expect(map.lostBefore(frame: 0) == nil)
    #expect(TimeMap(code: map.code, frameCount: 1) == map)
  }

  @Test func `Lists of numbers give the same numbers back`() throws {
    for seed in 0..<UInt64(RunSize.cases(500, full: 20_000)) {
      var random = SeededGenerator(seed: seed)
      let alphabet = Int64.random(in: 1...5, using: &random)
      let list = (0..<Int.random(in: 0...300, using: &random)).map { _ -> Int64 in
        Int.random(in: 0..<40, using: &random) == 0
          ? Int64.random(in: .min ... .max, using: &random)
          : Int64.random(in: -alphabet...alphabet, using: &random)
      }
      var writer = NumberWriter()
      writer.append(list: list)
      var reader = NumberReader(writer.bytes[...])
      #expect(reader.nextList(count: list.count) == list, "seed \(seed)")
      #expect(reader.isAtEnd, "seed \(seed)")
    }
  }

  @Test func `Damaged codes are refused or read as another map`() {
    for seed in 0..<UInt64(RunSize.cases(3_000, full: 200_000)) {
      var random = SeededGenerator(seed: seed)
      let map = RandomMap(seed: seed % 50).map
      var code = map.code
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          code[Int.random(in: code.indices, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        case 1: code.removeLast(min(code.count - 1, Int.random(in: 1...4, using: &random)))
        default:
          code.insert(
            UInt8.random(in: 0...255, using: &random),
            at: Int.random(in: code.indices, using: &random))
        }
      }
      guard let read = TimeMap(code: code, frameCount: map.frames.count) else { continue }
      #expect(read.frames.count == map.frames.count)
      for index in read.frames.indices {
        _ = read.lostBefore(frame: index)
        _ = read.captureTime(ofFrame: index)
      }
    }
  }

  @Test func `A box gives its maps back after other boxes`() throws {
    let scratch = try Scratch()
    let digest = SampleDigest(ticks: [0, 5, 9], timescale: 240)
    let entries = [
      TimeMapBox.Entry(code: RandomMap(seed: 3).map.code),
      TimeMapBox.Entry(pane: .init(x: 0, y: 8, width: 640, height: 4_000), code: [1, 2, 3]),
    ]
    let box = TimeMapBox(digest: digest, entries: entries)
    let path = try scratch.write(MovieIndex.emptyMovie + box.bytes, as: "movie.mov")
    #expect(try TimeMapBox(from: MovieBoxes(opening: path, forWriting: false)) == box)
    // Every box that is cut off or has a changed byte is refused, or has other maps.
    for seed in 0..<UInt64(RunSize.cases(200, full: 5_000)) {
      var random = SeededGenerator(seed: seed)
      var bytes = box.bytes
      bytes[Int.random(in: 24..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      if Bool.random(using: &random) {
        bytes.removeLast(Int.random(in: 0..<20, using: &random))
        for index in 0..<4 {
          bytes[index] = UInt8(truncatingIfNeeded: bytes.count >> (24 - 8 * index))
        }
      }
      let damaged = try scratch.write(MovieIndex.emptyMovie + bytes, as: "damaged.mov")
      let read = try TimeMapBox(from: MovieBoxes(opening: damaged, forWriting: false))
      for entry in read?.entries ?? [] { _ = TimeMap(code: entry.code, frameCount: 100) }
    }
  }

  @Test func `A note gives its map back and stays behind a comment`() throws {
    let ticks = (0..<240).map { Int64($0) * 8_000 }
    for (count, content) in [(240, "map"), (24, "map")] {
      let map = map(steady(count), scale: Rational(1, over: 8))
      var note = TimeMapNote(map, ticks: Array(ticks.prefix(count)), timescale: 240_000)
      note.digest = SampleDigest(ticks: ticks, timescale: 240_000)
      let comment = note.following("my [best] take")
      #expect(comment.hasPrefix("my [best] take Real time: 1 s of this movie shows 1/8 s. ["))
      #expect(comment.contains(content))
      let read = try #require(TimeMapNote(comment: comment))
      #expect(read == note)
      #expect(read.map(ticks: Array(ticks.prefix(count)), timescale: 240_000) == map)
      #expect(TimeMapNote.removed(from: comment) == "my [best] take")
      #expect(note.following(comment) == comment)
    }
    for text in ["", "[overcrank-time 1 ]", "[overcrank-time 1 zz map AQ==]", "[overcrank-time 1 "]
    {
      #expect(TimeMapNote(comment: text) == nil)
    }
  }

  @Test func `A note of a long map has its line or no times`() throws {
    var random = SeededGenerator(seed: 2)
    let captured = (0..<500).map { Int64($0) * 4_167 + .random(in: -900...900, using: &random) }
    let map = map(
      captured.enumerated().map { TimeMap.Frame(index: Int64($0), ticks: 7 + $1) },
      scale: Rational(1, over: 8))
    let ticks = captured.map { ($0 - captured[0]) * 8 }
    let line = TimeMapNote(map, ticks: ticks, timescale: 1_000_000)
    let read = try #require(line.map(ticks: ticks, timescale: 1_000_000))
    #expect(read.frames.map(\.ticks) == map.frames.map(\.ticks))
    var rounded = ticks
    rounded[77] += 9
    let none = TimeMapNote(map, ticks: rounded, timescale: 1_000_000)
    #expect(none.content == .timesLeftOut)
    #expect(none.map(ticks: rounded, timescale: 1_000_000) == nil)
  }

  @Test func `The digest in a finished note is written in place`() throws {
    let map = map(steady(24))
    let note = TimeMapNote(map, ticks: steady(24).map(\.ticks), timescale: 1_000_000)
    let digest = SampleDigest(ticks: [0, 1], timescale: 3)
    for keeps in [true, false] {
      var bytes = Array("moov \(note.text) data \(note.text)".utf8)
      let changes = TimeMapNote.changes(in: bytes, digest: digest, keepsContent: keeps)
      for change in changes {
        bytes.replaceSubrange(
          change.position..<change.position + change.bytes.count, with: change.bytes)
      }
      let read = try #require(TimeMapNote(comment: String(decoding: bytes, as: UTF8.self)))
      #expect(read.digest == digest)
      #expect((read.content == .timesLeftOut) == !keeps)
    }
  }

  @Test func `A digest changes with sizes and times but not the timescale`() {
    let digest = SampleDigest(sizes: [5, 5, 6], ticks: [0, 10, 20], timescale: 240)
    #expect(digest == SampleDigest(sizes: [5, 5, 6], ticks: [0, 20, 40], timescale: 480))
    #expect(digest != SampleDigest(sizes: [5, 6, 5], ticks: [0, 10, 20], timescale: 240))
    #expect(digest != SampleDigest(sizes: [5, 5, 6], ticks: [0, 10, 21], timescale: 240))
    #expect(digest != SampleDigest(sizes: [5, 5, 6], ticks: [0, 10], timescale: 240))
    #expect(SampleDigest(text: digest.text) == digest)
  }

  @Test func `A code cannot claim more frames than the movie has`() {
    var writer = NumberWriter()
    for number: UInt64 in [1, 0, 1, 1 << 40, 0, 0] { writer.append(number) }
    // One run that repeats without end.
    for number: UInt64 in [2, 0, 1 << 41 | 1, 1] { writer.append(number) }
    #expect(TimeMap(code: writer.bytes, frameCount: 100) == nil)
    #expect(TimeMap(code: [], frameCount: 0) == nil)
  }
}

/// A map with random recordings, speeds, losses and contents.
private struct RandomMap {
  let map: TimeMap

  init(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var map = TimeMap()
    let recordings = (0..<Int.random(in: 1...3, using: &random)).map { number in
      map.index(
        of: TimeMap.Recording(
          identity: random.next() &+ UInt64(number),
          basis: TimeMap.Recording.Basis.allCases.randomElement(using: &random) ?? .driver,
          timescale: [30, 90_000, 1_000_000, .max].randomElement(using: &random) ?? 1,
          knowsLosses: Bool.random(using: &random)))
    }
    let isWild = Int.random(in: 0..<10, using: &random) == 0
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      let scale = Rational(
        Int128(Int64.random(in: -9...9, using: &random)),
        over: Int128(Int64.random(in: 1...9, using: &random)))
      map.beginSegment(
        recording: Int.random(in: 0..<6, using: &random) == 0
          ? nil : recordings.randomElement(using: &random),
        timeScale: Bool.random(using: &random) ? scale : nil,
        isContinued: Bool.random(using: &random))
      var frame = TimeMap.Frame(
        index: Int64.random(in: 0...1_000, using: &random),
        lost: Int64.random(in: 0...9, using: &random),
        ticks: Int64.random(in: 0...(1 << 50), using: &random))
      let step = Int64.random(in: -3...8, using: &random)
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        frame.index &+= step
        if Int.random(in: 0..<9, using: &random) == 0 { frame.lost &+= step.signum() }
        frame.ticks &+= step &* 4_166 &+ Int64.random(in: -2...2, using: &random)
        frame.content =
          [
            .genuine, .genuine, .repeated, .blended, .synthesized(confidenceTenths: 7),
          ].randomElement(using: &random) ?? .genuine
        if isWild {
          frame.ticks = Int64.random(in: .min ... .max, using: &random)
          frame.index = Int64.random(in: .min ... .max, using: &random)
        }
        map.append(frame)
      }
    }
    self.map = map
  }
}
