// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A regular grid of frame periods, fitted to a driver's timestamps.
///
/// An alpha-beta filter tracks phase and period. The grid therefore follows a slow clock drift and
/// corrects a slightly wrong rate.
struct PeriodTracker {
  /// The greatest distance, in periods, between a frame's timestamp and its slot at which the slot
  /// is accepted at once.
  static let near = 0.3
  /// The number of consecutive frames, each at least half a period away from its slot, after which
  /// the grid itself is considered wrong.
  private static let timeout = 8

  /// The grid's period in microseconds.
  private(set) var period: Double
  /// The shortest plausible period in microseconds: the granted period, or the measured period of
  /// the first frames if that is shorter.
  private var shortest: Double
  /// The time at which the slot with the number `slot` lies, in microseconds after `origin`.
  private var time = 0.0
  private var slot: Int64 = 0
  /// The driver time, in microseconds, from which the grid's times are counted.
  ///
  /// It stays close to the current frame, so that differences are exact as `Double`.
  private var origin: Int64 = 0
  /// The number of past frames that the filter effectively averages over.
  private var memory = 12.0
  private var strays = 0

  init(period: Double) {
    self.period = period.isFinite && period > 0 ? period : 1
    shortest = self.period
  }

  /// The number of frame periods between two frames according to their sequence numbers.
  ///
  /// Nil if the sequence number went backward, stayed equal, or advanced by less than the least
  /// possible number of periods.
  static func counted(
    from last: FrameTimeline.Reading, to next: FrameTimeline.Reading
  ) -> Int64? {
    let steps = Int64(Int32(bitPattern: next.sequence &- last.sequence))
    return steps >= max(1, next.minimumStep) ? steps : nil
  }

  /// The distance of a frame's timestamp from the time of a slot, in periods.
  ///
  /// Positive if the frame is late.
  func offset(of reading: FrameTimeline.Reading, from slot: Int64) -> Double {
    let time = Double(reading.microseconds &- origin) - self.time
    return time / period - Double(slot &- self.slot)
  }

  /// The number of frame periods to the next frame if counter and clock agree on this number;
  /// otherwise nil.
  func agreedStep(
    from last: (reading: FrameTimeline.Reading, slot: Int64), to next: FrameTimeline.Reading
  ) -> Int64? {
    guard !next.isClockJump, let step = Self.counted(from: last.reading, to: next),
      abs(offset(of: next, from: last.slot &+ step)) <= Self.near
    else { return nil }
    return step
  }

  /// Fits the grid of frame periods to the first frames.
  mutating func begin(with readings: [FrameTimeline.Reading]) {
    guard let first = readings.first else { return }
    if let real = Self.medianPeriod(of: readings), abs(real / period - 1) > 0.04 {
      period = real
      shortest = min(shortest, real)
    }
    origin = first.microseconds
    // The first frame may have a wrong time, so the phase of the grid is taken from all frames.
    var phases: [Double] = []
    var counted: Int64 = 0
    for (last, next) in zip([first] + readings, readings) {
      counted &+= phases.isEmpty ? 0 : Self.counted(from: last, to: next) ?? 1
      let time = Double(next.microseconds &- origin) / period
      let phase = time - Double(counted)
      phases.append(phase - phase.rounded(.down))
    }
    // Phases, as fractions of a period, are cyclic: 0.9 and 0.1 are close, so a mean would be
    // wrong. The chosen phase has the smallest total distance to all other phases.
    let nearest = phases.min { spread(of: phases, around: $0) < spread(of: phases, around: $1) }
    let phase = nearest ?? 0
    // Slot 0 belongs to the first frame. A phase above half a period means that the frame is early,
    // so the phase is made negative.
    time = (phase > 0.5 ? phase - 1 : phase) * period
    slot = 0
  }

  private func spread(of phases: [Double], around centre: Double) -> Double {
    phases.reduce(0) {
      let distance = abs($1 - centre)
      return $0 + min(distance, 1 - distance)
    }
  }

  /// Updates phase and period of the grid with a frame and its assigned slot.
  mutating func follow(_ reading: FrameTimeline.Reading, slot next: Int64) {
    let late = offset(of: reading, from: next)
    let passed = Double(next &- slot)
    time += passed * period
    slot = next
    if reading.isClockJump || abs(late) >= 0.5 {
      strays += 1
      // After a clock jump, or after many frames far from their slots, the grid's phase is wrong.
      // The grid therefore restarts at this frame.
      if reading.isClockJump || strays >= Self.timeout {
        time = Double(reading.microseconds &- origin)
        strays = 0
      }
    } else {
      strays = 0
      memory = min(memory + 1, 31)
      let count = memory
      time += 2 * (2 * count + 1) / ((count + 1) * (count + 2)) * late * period
      if passed > 0 { period += 6 / ((count + 1) * (count + 2)) * late * period / passed }
    }
    // From time to time, the origin is moved to the current slot, so that differences of times stay
    // exact.
    if slot & 0xFFFF == 0 || abs(time) > 1e12 {
      let whole = Int64(saturating: time)
      origin &+= whole
      time -= Double(whole)
    }
  }

  /// The median period of the frames (Theil 1950, Sen 1968), or nil if the periods differ too much.
  ///
  /// With eight or more frames, the middle half of the periods must be within 10 % of the median;
  /// with fewer frames, all periods.
  private static func medianPeriod(of readings: [FrameTimeline.Reading]) -> Double? {
    guard readings.count >= 3 else { return nil }
    let half = readings.count / 2
    let slopes = zip(readings, readings.dropFirst(half)).enumerated().compactMap {
      index, ends -> Double? in
      var counted: Int64 = 0
      for position in index..<(index + half) {
        let (last, next) = (readings[position], readings[position + 1])
        guard !next.isClockJump, let steps = Self.counted(from: last, to: next) else { return nil }
        counted &+= steps
      }
      return Double(ends.1.microseconds &- ends.0.microseconds) / Double(counted)
    }.filter { $0 > 0 }.sorted()
    guard slopes.count >= 2 else { return nil }
    let median = slopes[slopes.count / 2]
    let spare = readings.count >= 8 ? slopes.count / 4 : 0
    let agree = slopes[spare] > median * 0.9 && slopes[slopes.count - 1 - spare] < median * 1.1
    return agree ? median : nil
  }

  /// Returns the period of these frames if it is steady and clearly differs from the period of the
  /// grid; otherwise nil.
  ///
  /// In low light, a camera exposes longer and delivers fewer frames. No frame is lost then; only
  /// the period is longer. A period far below the shortest plausible one is rejected, because it
  /// means that frames were delayed and then arrived close together.
  func changedPeriod(
    of readings: [FrameTimeline.Reading], after first: FrameTimeline.Reading
  ) -> Double? {
    var periods: [Double] = []
    var last = first
    for reading in readings {
      if let steps = Self.counted(from: last, to: reading), !reading.isClockJump {
        periods.append(Double(reading.microseconds &- last.microseconds) / Double(steps))
      }
      last = reading
    }
    guard periods.count >= 7 else { return nil }
    periods.sort()
    let median = periods[periods.count / 2]
    let (low, high) = (periods[periods.count / 4], periods[periods.count * 3 / 4])
    guard median > shortest * 0.9, low > median * 0.8, high < median * 1.2 else { return nil }
    return median > period * 1.3 || median < period * 0.77 ? median : nil
  }

  /// Restarts the grid at a frame, with a new period.
  mutating func restart(
    period: Double, after last: (reading: FrameTimeline.Reading, slot: Int64)
  ) {
    self.period = period
    origin = last.reading.microseconds
    time = 0
    slot = last.slot
    memory = 12
    strays = 0
  }
}
