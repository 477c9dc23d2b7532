// SPDX-License-Identifier: Apache-2.0

/// Converts sequence numbers and timestamps, neither of them reliable, into frame periods.
///
/// A counter may count a frame twice, skip counts, or show a gap one frame late. A clock may jitter
/// or stop. Frames are therefore assigned to slots of a regular time grid. The chosen assignment
/// contradicts counter and clock least (``SlotAssignment``). Where both agree, a frame is decided
/// at once; otherwise a few frames later.
///
/// The grid's period is estimated from timestamps, because the driver's stated rate may be wrong.
/// Only this estimate uses floating point; the resulting steps are whole.
struct FrameTimeline {
  /// The counter and the clock of one frame.
  struct Reading {
    var sequence: UInt32
    /// The continuous timestamp in microseconds.
    var microseconds: Int64
    /// Whether the time since the previous frame is meaningless.
    var isClockJump = false
    /// The minimum number of periods since the previous frame, from frames seen but not recorded.
    var minimumStep: Int64 = 1
  }

  /// Frames to collect before the first decision, because a driver's first timestamps may be off.
  private static let warmUp = 16
  /// Frames to collect once counter and clock disagree, and how many of them stay undecided.
  private static let lookahead = 12
  private static let held = 4

  /// Whether the counter is reliable, as in a file.
  ///
  /// Timestamps are then ignored.
  let trustsCounter: Bool
  /// The steps that the last call decided, in order: periods from each frame to the next.
  ///
  /// The step of the first frame is 0.
  private(set) var steps: [Int64] = []
  /// The estimated frame period in microseconds.
  var period: Double { grid.period }

  private var grid: PeriodTracker
  private var pending: [Reading] = []
  private var last: (reading: Reading, slot: Int64)?
  private var isWarm = false

  /// Makes a timeline.
  ///
  /// - Parameters:
  ///   - period: The frame duration that the driver granted, in microseconds.
  ///   - trustsCounter: Whether the sequence number alone decides.
  init(period: Double, trustsCounter: Bool = false) {
    grid = PeriodTracker(period: period)
    self.trustsCounter = trustsCounter
    steps.reserveCapacity(Self.warmUp)
    pending.reserveCapacity(Self.warmUp)
  }

  /// Adds the next frame.
  ///
  /// Afterwards ``steps`` holds the decided steps, oldest first.
  mutating func add(_ reading: Reading) {
    steps.removeAll(keepingCapacity: true)
    if trustsCounter { return trust(reading) }
    if isWarm, pending.isEmpty, let last, let step = grid.agreedStep(from: last, to: reading) {
      return decide(reading, step)
    }
    pending.append(reading)
    if !isWarm {
      if pending.count >= Self.warmUp { beginGrid() }
    } else if pending.count >= Self.lookahead {
      settle(keeping: Self.held)
    }
  }

  /// Decides all frames that are still open.
  mutating func finish() {
    steps.removeAll(keepingCapacity: true)
    if !isWarm { beginGrid() }
    settle(keeping: 0)
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
    settle(keeping: Self.held)
  }

  /// Decides the open frames, except the last few, where the disagreement may continue.
  private mutating func settle(keeping held: Int) {
    guard let last, !pending.isEmpty else { return }
    if let changed = grid.changedPeriod(of: pending, after: last.reading) {
      grid.restart(period: changed, after: last)
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
