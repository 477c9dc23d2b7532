// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Numbers near the limits of their types.
///
/// Each public call gives a valid result or a typed error, and a failed edit changes nothing.
struct OverflowTests {
  @Test(
    "Time arithmetic never traps and never returns invalid values",
    arguments: 0..<40 as Range<UInt64>
  )
  func values(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (done, refused) = (0, 0)
    func attempt(_ body: () throws(MediaError) -> [Rational]) {
      do {
        for number in try body() { #expect(number.isValid) }
        done += 1
      } catch {
        refused += 1
        #expect(Self.expected.contains(error.code), "\(error)")
      }
    }
    for _ in 0..<200 {
      let (one, two, three) = (random.extremeTime(), random.extremeTime(), random.extremeTime())
      let (speed, other) = (random.extremeSpeed(), random.extremeSpeed())
      attempt { () throws(MediaError) in [try MediaTime(one + two).seconds] }
      attempt { () throws(MediaError) in [try MediaTime(one - two).seconds] }
      attempt { () throws(MediaError) in [try MediaTime(one * two.seconds).seconds] }
      attempt { () throws(MediaError) in [try MediaTime(one / two.seconds).seconds] }
      attempt { () throws(MediaError) in [try TimeRange(start: one, duration: two).duration] }
      attempt { () throws(MediaError) in [try TimeRange(start: one, end: two).duration] }
      attempt { () throws(MediaError) in
        [try one.converted(to: two.timescale, rounding: .halfAwayFromZero).seconds]
      }
      attempt { () throws(MediaError) in [Rational(try one.nanoseconds(.awayFromZero))] }
      attempt { () throws(MediaError) in [try FrameRate(frameDuration: one).framesPerSecond] }
      attempt { () throws(MediaError) in [try speed.targetDuration(of: one).seconds] }
      let ramp = SpeedRamp(
        from: speed, to: other, easing: random.next() % 2 == 0 ? .linear : .easeInOut)
      attempt { () throws(MediaError) in [try ramp.targetDuration(of: one).seconds] }
      let ranges = [one, two, three, random.extremeTime()].sorted()
      guard
        let source = try? TimeRange(start: ranges[0], end: ranges[1]),
        let target = try? TimeRange(start: ranges[2], end: ranges[3])
      else { continue }
      attempt { () throws(MediaError) in
        let mapping = try TimeMapping(source: source, target: target)
        // A result that does not fit in a `Rational` is an invalid number. Converting it to a time
        // throws.
        for moved in [
          mapping.targetSeconds(of: one.seconds), mapping.sourceSeconds(of: two.seconds),
        ]
        where moved.isValid {
          _ = try? MediaTime(moved)
        }
        return [try mapping.speed().fraction]
      }
      attempt { () throws(MediaError) in
        try Self.resolved(one, two, of: max(three, .zero), &random).map(\.seconds)
      }
      attempt { () throws(MediaError) in
        let mapping = try PlaybackMapping(ramp, source: source, target: target)
        let (before, after) = try mapping.split(at: three)
        return try [
          mapping.sourceSeconds(of: one.seconds), mapping.speed(at: two.seconds),
          before.sourceEnd, after.reversed().sourceStart,
          Rational(mapping.ticks(ofSource: two.seconds, timescale: 600, rounding: .towardZero)),
        ]
      }
    }
    #expect(done > 200 && refused > 200)
  }

  /// The resolved times of expressions in a source of the given duration.
  private static func resolved(
    _ time: MediaTime, _ length: MediaTime, of duration: MediaTime,
    _ random: inout SeededGenerator
  ) throws(MediaError) -> [MediaTime] {
    let count = Int64(bitPattern: random.next()) >> Int64(random.next() % 64)
    let start =
      switch random.next() % 4 {
      case 0: try TimeExpression(time)
      case 1: try TimeExpression(beforeEnd: time)
      case 2: try TimeExpression(frame: count)
      default: try TimeExpression(framesBeforeEnd: count)
      }
    let range =
      random.next() % 2 == 0
      ? try TimeRangeExpression(start: start, duration: length)
      : try TimeRangeExpression(start: start, frameCount: count)
    let frames = Int64(random.next() >> random.next() % 64 >> 1)
    func frameTime(_ index: Int64) throws(MediaError) -> MediaTime {
      try MediaTime(Rational(index) / Rational(240))
    }
    let found = try range.resolved(
      sourceDuration: duration, frameCount: frames, frameTime: frameTime)
    return [found.start, found.end]
  }

  @Test("Mapping any source time gives a valid time or throws", arguments: 0..<40 as Range<UInt64>)
  func targetTimes(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let source = try MediaSource(path: "a", duration: MediaTime(.max, over: .max))
    for _ in 0..<50 {
      let composition =
        (try? Composition.retimed(
          source,
          changes: [
            .init(
              random.extremeSpeed(),
              in: TimeRange(start: .zero, end: max(random.extremeTime(), .zero)))
          ])) ?? Composition(source)
      do throws(MediaError) {
        let instants = try composition.targetTimes(
          ofSource: random.extremeTime().seconds, in: source,
          timescale: max(1, random.extremeTime().timescale), rounding: .halfAwayFromZero)
        for instant in instants { #expect(instant >= .zero && instant <= composition.duration) }
      } catch { #expect(Self.expected.contains(error.code), "\(error)") }
    }
  }

  @Test(
    "An edit with extreme times succeeds or changes nothing", arguments: 0..<60 as Range<UInt64>)
  func edits(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let source = try MediaSource(path: "a", duration: MediaTime(.max, over: .max))
    var composition = Composition(source)
    var (done, refused) = (0, 0)
    for _ in 0..<60 {
      let before = composition
      do throws(MediaError) {
        try Self.edit(&composition, source, &random)
        try composition.validateSegments()
        done += 1
      } catch {
        #expect(Self.expected.contains(error.code), "\(error)")
        #expect(composition == before)
        refused += 1
      }
      // An invalid number would crash the program later.
      for segment in composition.segments {
        #expect(segment.mapping.map { $0.sourceStart.isValid && $0.sourceEnd.isValid } ?? true)
      }
    }
    #expect(done > 0 && refused > 0)
  }

  private static let expected: Set<MediaError.Code> = [
    .overflow, .notExact, .notPositive, .emptyRange, .outsideSource, .outsideComposition,
    .cutInRamp, .overlappingRanges, .syntax,
  ]

  private static func edit(
    _ composition: inout Composition, _ source: MediaSource, _ random: inout SeededGenerator
  ) throws(MediaError) {
    let (time, duration) = (random.extremeTime(), random.extremeTime())
    let times = [random.extremeTime(), random.extremeTime()].sorted()
    let range = try TimeRange(start: times[0], end: times[1])
    switch random.next() % 17 {
    case 0: try composition.insertTimeRange(range, of: source, at: time)
    case 1: try composition.insertTimeRange(range, of: composition, at: time)
    case 2: try composition.insertEmptyTimeRange(range)
    case 3: try composition.removeTimeRange(range)
    case 4: try composition.scaleTimeRange(range, toDuration: duration)
    case 5: try composition.setSpeed(random.extremeSpeed(), in: range)
    case 6:
      let ramp = SpeedRamp(from: random.extremeSpeed(), to: random.extremeSpeed())
      try composition.setSpeedRamp(ramp, in: range)
    case 7: try composition.freezeFrame(at: time, for: duration)
    case 8: try composition.reverse(range)
    case 9:
      let rate = FrameRate(1 + Int(random.next() % 1_000_000), over: 1 + Int(random.next() % 1_001))
      composition = try .conformed(source, frameCount: .max >> Int64(random.next() % 63), to: rate)
    case 10:
      composition = try .retimed(source, changes: [.init(random.extremeSpeed(), in: range)])
    case 11: try composition.append(source, range: random.next() % 2 == 0 ? nil : range)
    case 12:
      let parts = [Composition.Part(range, of: source), Composition.Part(range, of: nil)]
      try composition.insertTimeRanges(parts, at: time)
    case 13:
      let points = times.map { Composition.SpeedPoint($0, random.extremeSpeed()) }
      composition = try .ramped(source, points: points, easing: .easeInOut)
    case 14: composition = try Composition(source).trimmed(to: [range], of: source)
    case 15:
      let presets = RetimingPreset.allCases
      composition = try presets[Int(random.next() % UInt64(presets.count))].composition(
        of: source, at: time, slowSpeed: random.extremeSpeed(), width: duration)
    default: try edit(&composition, trackOf: source, range, time, duration, &random)
    }
  }

  /// An edit of only one track.
  private static func edit(
    _ composition: inout Composition, trackOf source: MediaSource, _ range: TimeRange,
    _ time: MediaTime, _ duration: MediaTime, _ random: inout SeededGenerator
  ) throws(MediaError) {
    guard var track = composition.tracks.first else { return }
    switch random.next() % 9 {
    case 0: try track.insertTimeRange(range, of: source, at: time)
    case 1: try track.insertTimeRange(range, of: track, at: time)
    case 2: try track.insertEmptyTimeRange(range)
    case 3: try track.removeTimeRange(range)
    case 4: try track.scaleTimeRange(range, toDuration: duration)
    case 5: try track.setSpeed(random.extremeSpeed(), in: range)
    case 6:
      let ramp = SpeedRamp(from: random.extremeSpeed(), to: random.extremeSpeed())
      try track.setSpeedRamp(ramp, in: range)
    case 7: try track.freezeFrame(at: time, for: duration)
    default: try track.reverse(range)
    }
    composition.tracks[0] = track
  }
}
