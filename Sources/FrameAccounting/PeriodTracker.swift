// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A regular grid of frame periods, fitted to a driver's timestamps.
///
/// An alpha-beta filter tracks phase and period. The grid therefore follows a slow clock drift and
/// corrects a slightly wrong rate.
///
/// If the driver's timestamps have coarse steps (``TimestampQuantum``), a filter would follow the
/// rounding instead of the camera. The grid then keeps the granted period as long as the steps
/// explain all timestamps (``LatenessWindow``), and corrects it only as far as they do not.
struct PeriodTracker {
  /// The greatest distance, in periods, between a frame's timestamp and its slot at which the slot
  /// is accepted at once.
  var near: Double { window == nil ? 0.3 : 0.08 }
  /// The share of a period from which steps of timestamps matter to the grid.
  ///
  /// The filter and its tolerance of jitter cope with shorter steps.
  private static let coarse = 0.25
  /// The least shift of the mean interval at which different intervals are reported as rounded.
  ///
  /// If it is less, some frames are late.
  private static let shift = 0.1
  /// The same for a grid with a window.
  ///
  /// At 240 fps and a step of 4 ms, the mean is shifted by a 24th of the step. A late frame at either
  /// end of the history shifts it by a 127th.
  private static let shiftInWindow = 0.02
  /// The greatest relative difference between the granted period and that of a working camera.
  private static let crystals = 0.0004
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
  /// The period that the driver granted, in microseconds.
  private let granted: Double
  /// The range of timestamps around the grid, or nil if the timestamps have no coarse steps.
  private var window: LatenessWindow?
  /// Whether the step of the window was taken from equal intervals.
  private var isQuantumAssumed = false
  /// The frame from which the period of a grid with a window is measured.
  private var anchor: (microseconds: Int64, slot: Int64) = (0, 0) {
    didSet { lastBounds = nil }
  }
  /// The bounds of the period after the last frame.
  private var lastBounds: (least: Double, greatest: Double)?
  /// The part of the last frame's lateness that steps do not explain, in microseconds.
  private var lastExcess = 0.0
  private var history = FrameHistory()

  init(period: Double) {
    self.period = period.isFinite && period > 0 ? period : 1
    shortest = self.period
    granted = self.period
  }

  /// Whether the timestamps have coarse steps.
  var hasWindow: Bool { window != nil }

  /// The step of the driver's timestamps in microseconds, or nil if none is apparent.
  var quantum: Double? {
    let found = history.quantum(granted: granted)
    guard let found, !found.isAssumed else { return window?.quantum }
    guard let window else { return found.meanShift >= Self.shift ? found.microseconds : nil }
    return found.meanShift >= Self.shiftInWindow ? window.quantum : nil
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

  /// The part of a frame's lateness, in periods, that steps of the driver's timestamps do not
  /// explain.
  func excess(of late: Double) -> Double {
    window.map { $0.excess(of: late * period) / period } ?? late
  }

  /// The slots that suit a timestamp, relative to the slot from which it has the given distance.
  ///
  /// The distance is in periods.
  func candidates(late: Double) -> ClosedRange<Int64> {
    guard let bounds = window?.bounds else {
      let low = Int64(saturating: late.rounded(.down))
      return low...(low &+ 1)
    }
    let low = (late - bounds.upperBound / period).rounded(.down)
    let high = (late - bounds.lowerBound / period).rounded(.up)
    return Int64(saturating: low)...Int64(saturating: min(high, low + 12))
  }

  /// The number of frame periods to the next frame if counter and clock agree on this number;
  /// otherwise nil.
  func agreedStep(
    from last: (reading: FrameTimeline.Reading, slot: Int64), to next: FrameTimeline.Reading
  ) -> Int64? {
    guard !next.isClockJump, let step = Self.counted(from: last.reading, to: next),
      abs(excess(of: offset(of: next, from: last.slot &+ step))) <= near
    else { return nil }
    // Coarse steps may also explain a counter that has counted one frame twice, so only later
    // frames show whether a frame is missing.
    return window == nil || step == 1 ? step : nil
  }

  /// Fits the grid of frame periods to the first frames.
  mutating func begin(with readings: [FrameTimeline.Reading]) {
    guard let first = readings.first else { return }
    if beginQuantized(with: readings) { return }
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

  /// Fits the grid to the first frames if their timestamps have coarse steps.
  ///
  /// Returns whether they have.
  private mutating func beginQuantized(with readings: [FrameTimeline.Reading]) -> Bool {
    var first = FrameHistory()
    var slot: Int64 = 0
    for (last, next) in zip(readings.prefix(1) + readings, readings) {
      slot &+= first.isEmpty ? 0 : Self.counted(from: last, to: next) ?? 1
      first.add(next.microseconds, slot: slot, isCounted: !next.isClockJump)
    }
    guard fitWindow(to: first) else { return false }
    // The frames are decided one after the other from the first one on.
    time -= Double(self.slot) * period
    self.slot = 0
    return true
  }

  /// Changes to a grid with a window if the timestamps of past frames have coarse steps.
  ///
  /// - Returns: Whether the grid has such a window now.
  private mutating func fitWindow(to frames: FrameHistory) -> Bool {
    guard let found = frames.quantum(granted: granted) else { return false }
    let quantum = found.microseconds
    guard quantum >= Self.coarse * granted else { return false }
    let all = frames
    let frames = all.withoutLateFrames(step: quantum)
    guard let last = frames.last, frames.isMost(of: all) else { return false }
    let slack = quantum * 1.1
    // If the steps explain the times of all frames in a grid of the granted period, the camera
    // runs at the granted rate.
    var period = granted
    if frames.spread(period: granted) > slack {
      guard !found.isAssumed, let evenest = frames.evenestPeriod,
        frames.spread(period: evenest) <= slack
      else { return false }
      period = evenest
    }
    // Rounding spreads the times of a steady camera over the step. Late frames do not.
    guard frames.count == all.count || frames.spread(period: period) >= quantum / 4 else {
      return false
    }
    self.period = period
    shortest = min(shortest, period)
    var window = LatenessWindow(quantum: quantum, around: 0)
    frames.forEachLateness(period: period) { window.include($0) }
    isQuantumAssumed = found.isAssumed
    self.window = window
    origin = last.microseconds
    time = 0
    slot = last.slot
    anchor = frames.first ?? last
    strays = 0
    return true
  }

  /// Looks for coarse steps in the timestamps of the latest frames, after a frame had an unexpected
  /// time.
  ///
  /// The slots of the `pending` frames are undecided.
  mutating func reconsider(after last: FrameTimeline.Reading, _ pending: [FrameTimeline.Reading]) {
    var frames = history
    var (before, slot) = (last, self.slot)
    var isGapless = true
    for reading in pending {
      guard let step = Self.counted(from: before, to: reading) else { break }
      if step > 1 { isGapless = false }
      slot &+= step
      frames.add(reading.microseconds, slot: slot, isCounted: !reading.isClockJump)
      before = reading
    }
    refit(to: frames, isGapless: isGapless)
  }

  /// Fits the window again to frames from before and after the current slot, if their timestamps
  /// show shorter steps than the window has.
  ///
  /// `isGapless` is true if the counter shows no loss among the latest frames.
  private mutating func refit(to frames: FrameHistory, isGapless: Bool) {
    if let window {
      let found = frames.quantum(granted: granted)?.microseconds
      guard let found, found < window.quantum * 0.9 else {
        if isGapless { refitPeriod(to: frames, window.quantum) }
        return
      }
      // The filter copes with such short steps.
      guard found >= Self.coarse * granted else { return endWindow() }
    }
    let current = self.slot
    guard fitWindow(to: frames) else { return }
    time -= Double(self.slot &- current) * period
    self.slot = current
  }

  /// Corrects the period if frames without a loss, at another period, have the times of `frames`.
  ///
  /// A driver may grant a rate that the camera does not deliver. Without the correction, the first
  /// frames outside the window would look like losses.
  private mutating func refitPeriod(to frames: FrameHistory, _ quantum: Double) {
    guard let first = frames.first, let last = frames.last,
      frames.spread(period: period) > quantum * 1.1,
      let evenest = frames.evenestPeriod, frames.spread(period: evenest) <= quantum * 1.05
    else { return }
    period = evenest
    shortest = min(shortest, period)
    var window = LatenessWindow(quantum: quantum, around: 0)
    frames.forEachLateness(period: period) { window.include($0) }
    self.window = window
    origin = last.microseconds
    time = Double(slot &- last.slot) * period
    anchor = first
    strays = 0
  }

  /// Changes from a grid with a window to one with a filter.
  private mutating func endWindow() {
    guard let window else { return }
    // The middle of the window is the best estimate of the phase.
    time += (window.bounds.lowerBound + window.bounds.upperBound) / 2
    memory = 12
    strays = 0
    isQuantumAssumed = false
    self.window = nil
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
    history.add(reading.microseconds, slot: next, isCounted: passed == 1 && !reading.isClockJump)
    time += passed * period
    slot = next
    if window != nil {
      followWindow(reading, late, passed: passed)
    } else if reading.isClockJump || abs(late) >= 0.5 {
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

  /// Moves the window, and corrects the period, by a frame in the current slot.
  private mutating func followWindow(
    _ reading: FrameTimeline.Reading, _ late: Double, passed steps: Double
  ) {
    guard var window else { return }
    // The period is known within the error of crystals, and in time from the steps themselves.
    let known = Double(slot &- anchor.slot)
    window.forget(steps * min(Self.crystals * period, window.quantum / max(1, known)))
    if reading.isClockJump || abs(excess(of: late)) >= 0.5 {
      strays += 1
      guard reading.isClockJump || strays >= Self.timeout else { return }
      strays = 0
      self.window = LatenessWindow(quantum: window.quantum, around: late * period)
      anchor = (reading.microseconds, slot)
      return
    }
    strays = 0
    // A window that moved further would follow a loss that the steps hide at first. One late frame
    // moves it no further than crystals drift in a few frames.
    let limit = 2 * max(Self.crystals * period, window.quantum / max(1, known))
    let excess = window.excess(of: late * period)
    let confirmed = max(0, min(excess, lastExcess)) + min(0, max(excess, lastExcess))
    lastExcess = excess
    let drift = 16 * Self.crystals * period
    let moved = confirmed + max(-drift, min(excess - confirmed, drift))
    window.include(late * period - excess + moved, movingBy: limit)
    self.window = window
    if isQuantumAssumed, history.endsUnequally(to: window.quantum) {
      refit(to: history, isGapless: true)
    }
    let passed = Double(slot &- anchor.slot)
    guard passed >= 16 else { return }
    // Two times with an error of one step each, far apart, bound the period on both sides. The bounds
    // of two frames are compared, so that one late frame does not change the period.
    let elapsed = Double(reading.microseconds &- anchor.microseconds)
    let slack = window.quantum
    let bounds = (least: (elapsed - slack) / passed, greatest: (elapsed + slack) / passed)
    let before = lastBounds ?? bounds
    lastBounds = bounds
    let greatest = max(bounds.greatest, before.greatest)
    period = max(min(bounds.least, before.least), min(period, greatest))
    if passed >= 32_768 { anchor = (reading.microseconds, slot) }
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
    if window != nil { return changedMean(of: readings, after: first) }
    periods.sort()
    let median = periods[periods.count / 2]
    let (low, high) = (periods[periods.count / 4], periods[periods.count * 3 / 4])
    guard median > shortest * 0.9, low > median * 0.8, high < median * 1.2 else { return nil }
    return median > period * 1.3 || median < period * 0.77 ? median : nil
  }

  /// Whether the camera paused before the first of these frames, and then went on as before.
  ///
  /// All frames are then late by the same part of a period. After a loss, they would be on time for
  /// later slots. Only frames with little jitter show the difference.
  func hasPaused(
    before readings: [FrameTimeline.Reading], after last: FrameTimeline.Reading
  ) -> Bool {
    guard window == nil, readings.count >= 8, !readings.contains(where: \.isClockJump),
      history.spread(period: period, ofLast: 16) < 0.1 * period
    else { return false }
    var latenesses: [Double] = []
    var before = last
    for (index, reading) in readings.enumerated() {
      guard Self.counted(from: before, to: reading) == 1 else { return false }
      latenesses.append(offset(of: reading, from: slot &+ Int64(index) &+ 1))
      before = reading
    }
    guard let least = latenesses.min(), let greatest = latenesses.max(), least > near,
      greatest - least < 0.1
    else { return false }
    let mean = (least + greatest) / 2
    // A loss also looks late by a part of a period if the driver's times have short steps.
    return abs(mean - mean.rounded()) > 0.3
  }

  /// The period of these frames if both halves of them show the same clear change of the period;
  /// otherwise nil.
  ///
  /// Single intervals do not show the period if timestamps have coarse steps.
  private func changedMean(
    of readings: [FrameTimeline.Reading], after first: FrameTimeline.Reading
  ) -> Double? {
    let half = readings.count / 2
    guard half >= 5, let quantum = window?.quantum else { return nil }
    func mean(_ ends: (FrameTimeline.Reading, FrameTimeline.Reading)) -> Double? {
      Self.counted(from: ends.0, to: ends.1).map {
        Double(ends.1.microseconds &- ends.0.microseconds) / Double($0)
      }
    }
    guard !readings.contains(where: \.isClockJump),
      let start = mean((first, readings[half - 1])),
      let end = mean((readings[half - 1], readings[readings.count - 1])),
      let whole = mean((first, readings[readings.count - 1])),
      abs(start - end) <= 2 * quantum / Double(half), whole > shortest * 0.9
    else { return nil }
    let slack = quantum / Double(half)
    let isLonger = min(start, end) - slack > period * 1.15 && whole > period * 1.3
    let isShorter = max(start, end) + slack < period * 0.87 && whole < period * 0.77
    return isLonger || isShorter ? whole : nil
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
    history = FrameHistory()
    if let quantum = window?.quantum {
      window = LatenessWindow(quantum: quantum, around: 0)
      anchor = (origin, slot)
    }
  }
}

/// The range in which the timestamps of a driver with quantized time may lie, relative to the grid.
///
/// The driver rounds times up to its step, so the latest timestamp is at most one step later than
/// the earliest one. The range is known completely when the frames have passed through a whole
/// step. Until then, the unseen part of the step is permitted on both sides.
struct LatenessWindow {
  /// The step of the timestamps in microseconds.
  var quantum: Double
  /// The lateness of the earliest and of the latest timestamp in the window, in microseconds.
  private var (earliest, latest): (Double, Double)

  init(quantum: Double, around lateness: Double) {
    self.quantum = quantum
    (earliest, latest) = (lateness, lateness)
  }

  /// The least and the greatest permitted lateness in microseconds.
  var bounds: ClosedRange<Double> { (latest - quantum)...(earliest + quantum) }

  /// The distance of a timestamp from the permitted range, in microseconds.
  ///
  /// Positive if the timestamp is too late, negative if it is too early, and zero if the step
  /// explains it.
  func excess(of lateness: Double) -> Double {
    max(0, lateness - bounds.upperBound) + min(0, lateness - bounds.lowerBound)
  }

  /// Forgets a part of the known range on both sides.
  ///
  /// Call this as time passes, because the period of the grid is not exactly the camera's.
  mutating func forget(_ microseconds: Double) {
    let amount = min(microseconds, (latest - earliest) / 2)
    earliest += amount
    latest -= amount
  }

  /// Includes a timestamp.
  ///
  /// If the timestamp is outside the permitted range, the window moves, but at most by `limit`.
  mutating func include(_ lateness: Double, movingBy limit: Double = .infinity) {
    let lateness = max(bounds.lowerBound - limit, min(lateness, bounds.upperBound + limit))
    if lateness > latest {
      latest = lateness
      earliest = max(earliest, latest - quantum)
    } else if lateness < earliest {
      earliest = lateness
      latest = min(latest, earliest + quantum)
    }
  }
}
