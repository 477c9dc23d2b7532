// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankEditing
import OvercrankMediaCore
import TestSupport

/// So many cases with `Tests/run.sh --full`, else a quarter.
func full(_ count: Int) -> Int { getenv("OVERCRANK_FULL") == nil ? count / 4 : count }

/// What is seen at an instant.
struct Sight: Equatable {
  var path: String
  var time: Rational
}

/// A composition as a function of time: slow, and too plain to be wrong.
struct Model {
  var duration = Rational.zero
  var sight: (Rational) throws -> Sight? = { _ in nil }

  private mutating func insert(
    _ length: Rational, at time: Rational, _ new: @escaping (Rational) throws -> Sight?
  ) throws {
    let (old, oldDuration) = (sight, duration)
    duration = try max(duration, time).adding(length)
    sight = { instant in
      if instant < time { return instant < oldDuration ? try old(instant) : nil }
      let offset = try instant.subtracting(time)
      return offset < length ? try new(offset) : try old(instant.subtracting(length))
    }
  }

  mutating func insert(_ range: TimeRange, of source: MediaSource, at time: MediaTime) throws {
    try insert(range.duration, at: time.seconds) {
      Sight(path: source.path, time: try range.start.seconds.adding($0))
    }
  }

  mutating func insertEmpty(_ range: TimeRange) throws {
    try insert(range.duration, at: range.start.seconds) { _ in nil }
  }

  mutating func remove(_ range: TimeRange) throws {
    let old = sight
    duration = try duration.subtracting(range.duration)
    sight = { instant in
      instant < range.start.seconds
        ? try old(instant) : try old(instant.adding(range.duration))
    }
  }

  mutating func scale(_ range: TimeRange, to length: MediaTime) throws {
    let old = sight
    let start = range.start.seconds
    let change = try length.seconds.subtracting(range.duration)
    duration = try duration.adding(change)
    sight = { instant in
      if instant < start { return try old(instant) }
      let offset = try instant.subtracting(start)
      if offset >= length.seconds { return try old(instant.subtracting(change)) }
      return try old(
        offset.multiplied(by: range.duration).divided(by: length.seconds).adding(start))
    }
  }

  mutating func ramp(_ ramp: SpeedRamp, _ range: TimeRange) throws {
    let old = sight
    let (from, to) = (ramp.from.fraction, ramp.to.fraction)
    let start = range.start.seconds
    // The mean of the speeds, by either way of going from one to the other.
    let length = try range.duration.multiplied(by: Rational(2))
      .divided(by: from.adding(to))
    let change = try length.subtracting(range.duration)
    duration = try duration.adding(change)
    sight = { instant in
      if instant < start { return try old(instant) }
      let offset = try instant.subtracting(start)
      if offset >= length { return try old(instant.subtracting(change)) }
      let u = try offset.divided(by: length)
      let square = try u.multiplied(by: u)
      let gained =
        try ramp.easing == .linear
        ? square.divided(by: Rational(2))
        : square.multiplied(by: u).subtracting(
          square.multiplied(by: square).divided(by: Rational(2)))
      let played = try to.subtracting(from).multiplied(by: gained)
        .adding(from.multiplied(by: u)).multiplied(by: length)
      return try old(start.adding(played))
    }
  }

  mutating func freeze(at time: MediaTime, for length: MediaTime) throws {
    let held = try sight(time.seconds)
    try insert(length.seconds, at: time.seconds) { _ in held }
  }

  mutating func reverse(_ range: TimeRange) throws {
    let old = sight
    let sum = try range.start.seconds.adding(range.end.seconds)
    sight = { instant in
      range.start.seconds <= instant && instant < range.end.seconds
        ? try old(sum.subtracting(instant)) : try old(instant)
    }
  }
}

extension Composition {
  /// What the segments show at an instant from zero up to the end.
  func sight(at instant: Rational) throws -> Sight? {
    for segment in segments
    where segment.target.start.seconds <= instant && instant < segment.target.end.seconds {
      guard let source = segment.source, let mapping = segment.mapping else { return nil }
      return Sight(path: source.path, time: try mapping.sourceSeconds(of: instant))
    }
    return nil
  }
}

extension TimeRange {
  /// From one whole number of units to another.
  static func of(_ start: Int64, _ end: Int64, per timescale: Int32 = 1) throws -> TimeRange {
    try TimeRange(
      start: MediaTime(value: start, timescale: timescale),
      end: MediaTime(value: end, timescale: timescale))
  }
}

extension Speed {
  /// A speed of two whole numbers.
  static func of(_ above: Int128, _ below: Int128 = 1) throws -> Speed {
    try Speed(Rational(above, below))
  }
}
