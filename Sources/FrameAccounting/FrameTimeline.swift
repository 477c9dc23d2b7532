// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Converts the sequence numbers and timestamps of frames into numbers of frame periods.
///
/// Neither source is reliable. A counter may count a frame twice, skip numbers, or show a gap one
/// frame late. A clock may jitter or stop. Frames are therefore assigned to slots of a regular time
/// grid, so that the assignment contradicts counter and clock as little as possible
/// (``SlotAssignment``). If counter and clock agree on a frame, its slot is decided at once.
/// Otherwise it is decided a few frames later.
///
/// The period of the grid is estimated from timestamps, because the driver's stated rate may be
/// wrong. Only this estimate uses floating point; the numbers of periods are integers.
struct FrameTimeline {
  /// The sequence number and the timestamp of one frame.
  struct Reading {
    var sequence: UInt32
    /// The timestamp in microseconds, made continuous across wraps and jumps of the driver's clock.
    var microseconds: Int64
    /// Whether the time since the previous frame is meaningless, because the driver's clock jumped at
    /// this frame or the camera paused before it.
    var isClockJump = false
    /// The least possible number of frame periods since the previous frame.
    ///
    /// The number exceeds 1 if frames arrived in between but could not be recorded.
    var minimumStep: Int64 = 1
  }

  /// The number of frames to collect before the slots of the stream's first frames are decided.
  ///
  /// A driver's first timestamps may be wrong, so one frame is not enough.
  private static let warmUp = 16
  /// If counter and clock disagree, the number of frames to collect before the slots of these
  /// frames are decided.
  private static let lookahead = 12
  /// How many of the latest collected frames stay undecided, because later frames may change their
  /// slots.
  private static let held = 4
  /// The numbers of frames to collect and to keep undecided if the driver's timestamps have coarse
  /// steps, which show a loss only after some frames.
  private static let coarseLookahead = (collected: 32, held: 8)

  /// Whether the sequence numbers are reliable, as they are for a file played as a camera.
  ///
  /// Timestamps are then ignored.
  let trustsCounter: Bool
  /// The steps that the last call decided, in order.
  ///
  /// A step is the number of periods from the previous frame. The step of the first frame is 0.
  private(set) var steps: [Int64] = []
  /// The frame period in microseconds, estimated from timestamps.
  var period: Double { grid.period }
  /// The step of the driver's timestamps in microseconds, or nil if none is apparent.
  var quantum: Double? { trustsCounter ? nil : grid.quantum }

  /// The total time of the camera's pauses in microseconds.
  private(set) var pausedMicroseconds: Int64 = 0

  private var grid: PeriodTracker
  private var pending: [Reading] = []
  private var last: (reading: Reading, slot: Int64)?
  private var isWarm = false

  /// Makes a timeline without frames.
  ///
  /// - Parameters:
  ///   - period: The frame duration that the driver granted, in microseconds.
  ///   - trustsCounter: True to compute the numbers of periods from the sequence numbers alone,
  ///     false to use the timestamps too.
  init(period: Double, trustsCounter: Bool = false) {
    grid = PeriodTracker(period: period)
    self.trustsCounter = trustsCounter
    steps.reserveCapacity(Self.coarseLookahead.collected)
    pending.reserveCapacity(Self.coarseLookahead.collected)
  }

  /// Adds the next frame.
  ///
  /// Afterwards ``steps`` contains the steps that this call decided, oldest first. ``steps`` may be
  /// empty.
  mutating func add(_ reading: Reading) {
    steps.removeAll(keepingCapacity: true)
    if trustsCounter { return trust(reading) }
    if isWarm, pending.isEmpty, let last, let step = grid.agreedStep(from: last, to: reading) {
      return decide(reading, step)
    }
    pending.append(reading)
    if !isWarm {
      if pending.count >= Self.warmUp { beginGrid() }
    } else if pending.count >= (grid.hasWindow ? Self.coarseLookahead.collected : Self.lookahead) {
      decideSteps(keeping: grid.hasWindow ? Self.coarseLookahead.held : Self.held)
    }
  }

  /// Decides the steps, in frame periods, of all frames that are still undecided.
  mutating func finish() {
    steps.removeAll(keepingCapacity: true)
    if !isWarm { beginGrid() }
    decideSteps(keeping: 0)
  }

  private mutating func trust(_ reading: Reading) {
    let step = last.map { max(1, PeriodTracker.counted(from: $0.reading, to: reading) ?? 1) } ?? 0
    decide(reading, max(step, last == nil ? 0 : reading.minimumStep))
  }

  private mutating func beginGrid() {
    isWarm = true
    guard let first = pending.first else { return }
    grid.begin(with: pending)
    pending.removeFirst()
    last = (first, 0)
    steps.append(0)
    decideSteps(keeping: Self.held)
  }

  /// Decides the steps of the undecided frames, which are their numbers of periods since the
  /// previous frame.
  ///
  /// If the last `held` frames are still uncertain, these frames stay undecided, because later
  /// frames may change their slots.
  private mutating func decideSteps(keeping held: Int) {
    guard let last, !pending.isEmpty else { return }
    grid.reconsider(after: last.reading, pending)
    if let changed = grid.changedPeriod(of: pending, after: last.reading) {
      grid.restart(period: changed, after: last)
    } else if grid.hasPaused(before: pending, after: last.reading) {
      pausedMicroseconds &+=
        pending[0].microseconds &- last.reading.microseconds
        &- Int64(saturating: grid.period.rounded())
      pending[0].isClockJump = true
    }
    var search = SlotAssignment(grid: grid)
    let found = search.steps(from: last, to: pending)
    let isOpen = found.suffix(held).contains(where: \.isOpen)
    let count = isOpen ? max(0, pending.count - held) : pending.count
    for index in 0..<count { decide(pending[index], found[index].step) }
    pending.removeFirst(count)
  }

  private mutating func decide(_ reading: Reading, _ step: Int64) {
    steps.append(step)
    let slot = (last?.slot ?? 0) &+ step
    grid.follow(reading, slot: slot)
    last = (reading, slot)
  }
}
