// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore
import TestSupport

/// The source file and time that are visible at an instant.
struct VisibleFrame: Equatable {
  var path: String
  var time: Rational
}

/// A reference model of a composition as a function of time.
///
/// It is slow and simple.
struct Model {
  var duration = Rational.zero
  var visibleFrame: (Rational) throws -> VisibleFrame? {
    get { exactVisibleFrame }
    // An instant that does not fit in a `Rational` is not compared with the composition.
    set { exactVisibleFrame = { try newValue($0.checked("an instant of the model")) } }
  }
  private var exactVisibleFrame: (Rational) throws -> VisibleFrame? = { _ in nil }

  private mutating func insert(
    _ length: Rational, at time: Rational, _ new: @escaping (Rational) throws -> VisibleFrame?
  ) throws {
    let (old, oldDuration) = (visibleFrame, duration)
    duration = max(duration, time) + length
    visibleFrame = { instant in
      if instant < time { return instant < oldDuration ? try old(instant) : nil }
      let offset = instant - time
      return offset < length ? try new(offset) : try old(instant - length)
    }
  }

  mutating func insert(_ range: TimeRange, of source: MediaSource, at time: MediaTime) throws {
    try insert(range.duration, at: time.seconds) {
      VisibleFrame(path: source.path, time: range.start.seconds + $0)
    }
  }

  mutating func insertEmpty(_ range: TimeRange) throws {
    try insert(range.duration, at: range.start.seconds) { _ in nil }
  }

  mutating func remove(_ range: TimeRange) throws {
    let old = visibleFrame
    duration = duration - range.duration
    visibleFrame = { instant in
      instant < range.start.seconds
        ? try old(instant) : try old(instant + range.duration)
    }
  }

  mutating func scale(_ range: TimeRange, to length: MediaTime) throws {
    let old = visibleFrame
    let start = range.start.seconds
    let change = length.seconds - range.duration
    duration = duration + change
    visibleFrame = { instant in
      if instant < start { return try old(instant) }
      let offset = instant - start
      if offset >= length.seconds { return try old(instant - change) }
      return try old(
        offset * range.duration / length.seconds + start)
    }
  }

  mutating func ramp(_ ramp: SpeedRamp, _ range: TimeRange) throws {
    let old = visibleFrame
    let (from, to) = (ramp.from.fraction, ramp.to.fraction)
    let start = range.start.seconds
    // With both easings, the mean speed of a ramp is the mean of its first and last speed.
    let length = range.duration * Rational(2) / (from + to)
    let change = length - range.duration
    duration = duration + change
    visibleFrame = { instant in
      if instant < start { return try old(instant) }
      let offset = instant - start
      if offset >= length { return try old(instant - change) }
      let u = offset / length
      let square = u * u
      let gained =
        ramp.easing == .linear
        ? square / Rational(2)
        : square * u - square * square / Rational(2)
      let played = ((to - from) * gained + from * u) * length
      return try old(start + played)
    }
  }

  mutating func freeze(at time: MediaTime, for length: MediaTime) throws {
    let held = try visibleFrame(time.seconds)
    try insert(length.seconds, at: time.seconds) { _ in held }
  }

  mutating func reverse(_ range: TimeRange) throws {
    let old = visibleFrame
    let sum = range.start.seconds + range.end.seconds
    visibleFrame = { instant in
      range.start.seconds <= instant && instant < range.end.seconds
        ? try old(sum - instant) : try old(instant)
    }
  }
}

extension Composition {
  /// The source time that the segments show at an instant between zero and the end.
  func visibleFrame(at instant: Rational) throws -> VisibleFrame? {
    for segment in segments
    where segment.target.start.seconds <= instant && instant < segment.target.end.seconds {
      guard let source = segment.source, let mapping = segment.mapping else { return nil }
      return VisibleFrame(path: source.path, time: try mapping.sourceSeconds(of: instant))
    }
    return nil
  }
}
