// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// Numbers at the edge of what fits: each public call gives a valid result or a typed error, and an
/// edit that fails changes nothing.
struct OverflowTests {
  @Test(
    "Values of time never trap and never hold an invalid number", arguments: 0..<40 as Range<UInt64>
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
        return [try mapping.speed().fraction]
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

  @Test("An edit fits, or throws and changes nothing", arguments: 0..<60 as Range<UInt64>)
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
      // What cannot be told apart from a trap later on.
      for segment in composition.segments {
        #expect(segment.mapping.map { $0.sourceStart.isValid && $0.sourceEnd.isValid } ?? true)
      }
    }
    #expect(done > 0 && refused > 0)
  }

  private static let expected: Set<MediaError.Code> = [
    .overflow, .notExact, .notPositive, .emptyRange, .outsideSource, .outsideComposition,
    .cutInRamp, .overlappingRanges,
  ]

  private static func edit(
    _ composition: inout Composition, _ source: MediaSource, _ random: inout SeededGenerator
  ) throws(MediaError) {
    let (time, duration) = (random.extremeTime(), random.extremeTime())
    let times = [random.extremeTime(), random.extremeTime()].sorted()
    let range = try TimeRange(start: times[0], end: times[1])
    switch random.next() % 11 {
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
    default:
      composition = try .retimed(source, changes: [.init(random.extremeSpeed(), in: range)])
    }
  }
}

extension SeededGenerator {
  /// A time that is small and round, or at the edge of what fits.
  fileprivate mutating func extremeTime() -> MediaTime {
    let value = Int64(bitPattern: next()) >> Int64(next() % 64)
    let scale = Int32(truncatingIfNeeded: next() >> 33) >> Int32(next() % 31)
    return switch next() % 4 {
    case 0: MediaTime(seconds: Int64(next() % 5))
    case 1: MediaTime(Int64(next() % 1_000), over: max(1, scale))
    case 2: MediaTime(value.magnitude > 1 << 62 ? .max : value, over: .max)
    default: MediaTime(value, over: max(1, scale))
    }
  }

  /// A speed that is customary, or at the edge of what fits.
  fileprivate mutating func extremeSpeed() -> Speed {
    let (above, below) = (Int128(next()), Int128(next()))
    return switch next() % 3 {
    case 0: Speed(1, over: 8)
    case 1: Speed(1 + Int(next() % 100), over: 1 + Int(next() % 100))
    default: Speed(exactly: Rational(above << 60 + 1, over: below + 1)) ?? .normal
    }
  }
}
