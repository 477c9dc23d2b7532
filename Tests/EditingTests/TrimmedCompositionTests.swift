// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Compositions trimmed to ranges of the source, compared with the untrimmed ones.
struct TrimmedCompositionTests {
  private func source() throws -> MediaSource {
    try MediaSource(
      path: "clip.mov", duration: MediaTime(seconds: 10),
      tracks: [SourceTrack(.video), SourceTrack(.audio)])
  }

  private func range(_ start: Int64, _ end: Int64, _ timescale: Int32 = 240) throws -> TimeRange {
    try TimeRange(
      start: MediaTime(start, over: timescale),
      end: MediaTime(end, over: timescale))
  }

  /// Describes how a trimmed part differs from the whole composition; nil if both play the same.
  private func complaint(
    about trimmed: Composition, of whole: Composition, _ range: TimeRange, isRamped: Bool
  ) throws -> String? {
    let mappings = try #require(trimmed.track(.video)).segments.compactMap(\.mapping)
    guard let first = mappings.first, let last = mappings.last else { return "nothing plays" }
    let (start, end) = (range.start.seconds, range.end.seconds)
    guard first.sourceStart >= start, last.sourceEnd <= end else {
      return "\(first.sourceStart) to \(last.sourceEnd) exceeds \(range)"
    }
    let lost = max(first.sourceStart - start, end - last.sourceEnd)
    // The tolerance is a tick at the highest speed of the test.
    guard lost <= (isRamped ? Rational(2, over: 24_000) : .zero) else {
      return "\(lost) s are lost"
    }
    let original = whole.segments.compactMap(\.mapping)
    let begin = original.first { mapping in
      mapping.motion == .hold
        ? mapping.sourceStart == start : mapping.sourceEnd > first.sourceStart
    }
    let offset = try #require(begin).instant(of: first.sourceStart.doubleValue)
    for position in 0...1_000 {
      let time = trimmed.duration.doubleValue * Double(position) / 1_001
      let (one, other) = (mappings.played(at: time), original.played(at: offset + time))
      if abs(one - other) > 1e-9 { return "\(one) plays for \(other)" }
    }
    return nil
  }

  @Test func `A trimmed range plays as in the untrimmed composition`() throws {
    let source = try source()
    var random = SeededGenerator(seed: 20)
    func next(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }
    for number in 0..<60 {
      let start = next(0...2_300)
      let kept = try self.range(start, start + next(1...(2_400 - start)))
      let (a, b, c) = (next(0...700), next(800...1_500), next(1_600...2_400))
      let speeds = try [1, 2, 3, 8].map { try Speed(Rational(1, over: $0)) } + [Speed(Rational(2))]
      let (one, other) = (speeds[Int(next(0...4))], speeds[Int(next(0...4))])
      let whole: Composition =
        switch number % 3 {
        case 0:
          try .retimed(
            source, changes: [.init(one, in: self.range(a, b)), .init(other, in: self.range(b, c))])
        case 1:
          try .ramped(
            source,
            points: [
              .init(MediaTime(a, over: 240), one),
              .init(MediaTime(b, over: 240), other),
              .init(MediaTime(c, over: 240), one),
            ], easing: number % 2 == 0 ? .linear : .easeInOut)
        default:
          try RetimingPreset.allCases[number / 3 % 4].composition(
            of: source, at: MediaTime(b, over: 240), slowSpeed: one)
        }
      let trimmed = try whole.trimmed(to: [kept], of: source)
      let isRamped = whole.segments.contains {
        if case .ramp? = $0.mapping?.motion { true } else { false }
      }
      let complaint = try complaint(about: trimmed, of: whole, kept, isRamped: isRamped)
      #expect(complaint == nil, "\(number): \(kept)")
      #expect(trimmed.track(.audio)?.duration == trimmed.track(.video)?.duration)
    }
  }

  @Test func `A freeze frame at a cut belongs to the range after the cut`() throws {
    let source = try source()
    let whole = try RetimingPreset.freeze.composition(
      of: source, at: MediaTime(seconds: 4), width: MediaTime(seconds: 3))
    func duration(_ start: Int64, _ end: Int64) throws -> MediaTime {
      try whole.trimmed(to: [range(start, end, 1)], of: source).duration
    }
    #expect(try duration(3, 5) == MediaTime(seconds: 5))
    #expect(try duration(4, 5) == MediaTime(seconds: 4))
    #expect(try duration(3, 4) == MediaTime(seconds: 1))
    let end = try RetimingPreset.freeze.composition(of: source, at: source.duration)
    #expect(try end.trimmed(to: [range(9, 10, 1)], of: source).duration == MediaTime(seconds: 2))
  }

  @Test func `Trimmed ranges play in the given order and may not overlap`() throws {
    let (source, whole) = (try source(), Composition(try source()))
    let parts = try whole.trimmed(to: [range(6, 7, 1), range(1, 2, 1), range(2, 4, 1)], of: source)
    #expect(parts.segments.map(\.mapping?.sourceStart) == [6, 1, 2] as [Rational])
    #expect(parts.duration == MediaTime(seconds: 4))
    #expect(try whole.trimmed(to: [range(0, 10, 1)], of: source) == whole)
    for (ranges, code) in [
      ([(1, 3), (2, 4)], MediaError.Code.overlappingRanges), ([(1, 1)], .emptyRange),
      ([(9, 11)], .outsideSource),
    ] as [([(Int64, Int64)], MediaError.Code)] {
      #expect(throws: MediaError.self) {
        do {
          _ = try whole.trimmed(to: ranges.map { try range($0.0, $0.1, 1) }, of: source)
        } catch let error as MediaError {
          #expect(error.code == code)
          throw error
        }
      }
    }
  }
}

// The definition of a time mapping, in floating point.
extension PlaybackMapping {
  fileprivate func played(at time: Double) -> Double {
    let (start, end) = (sourceStart.doubleValue, sourceEnd.doubleValue)
    let share = (time - target.start.doubleValue) / target.duration.doubleValue
    switch motion {
    case .hold: return start
    case .constant: return start + (end - start) * share
    case .ramp(let ramp):
      let (from, to) = (ramp.from.fraction.doubleValue, ramp.to.fraction.doubleValue)
      let lower = part.lower.doubleValue
      let u = lower + (part.upper.doubleValue - lower) * share
      let risen = ramp.easing == .linear ? u * u / 2 : u * u * u - u * u * u * u / 2
      return whole.start.doubleValue
        + whole.duration.doubleValue * (from * u + (to - from) * risen)
        / ((from + to) / 2)
    }
  }

  /// The instant at which a source time plays, found by bisection.
  fileprivate func instant(of source: Double) -> Double {
    var (low, high) = (target.start.doubleValue, target.end.doubleValue)
    guard motion != .hold, source > sourceStart.doubleValue else { return low }
    for _ in 0..<60 {
      let middle = (low + high) / 2
      if played(at: middle) <= source { low = middle } else { high = middle }
    }
    return low
  }
}

extension [PlaybackMapping] {
  fileprivate func played(at time: Double) -> Double {
    (last { $0.target.start.doubleValue <= time } ?? self[0]).played(at: time)
  }
}
