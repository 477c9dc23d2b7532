// SPDX-License-Identifier: Apache-2.0

/// Turns sequence numbers and times, each known to lie, into frame periods.
///
/// A counter may count a frame twice, miss two of them, or show a gap one frame late; a clock
/// jitters and may stand still. So each frame is given a slot of an even grid in time, and of
/// all ways to do that the one is taken that needs the fewest contradictions between counter
/// and clock (``SlotAssignment``). As long as the two agree, a frame is judged at once; where they
/// do not, a few frames later.
///
/// The grid's period is estimated from the times, since a driver's word on it may be wrong. It
/// is the one place here where numbers are not whole: it decides which whole number is meant.
struct FrameTimeline {
  /// What is known of one frame.
  struct Reading {
    var sequence: UInt32
    /// Continuous time.
    var microseconds: Int64
    /// Whether the time since the frame before means nothing.
    var isClockJump = false
    /// How many periods must have passed at least, because so many frames were seen.
    var minimumStep: Int64 = 1
  }

  /// Frames to look at before the first is judged: a driver's first times may be off.
  private static let warmUp = 16
  /// Frames to look at once counter and clock disagree, and how many of them stay open.
  private static let lookahead = 12
  private static let held = 4

  /// Whether the counter is known to be right, as that of a file is; time is then not asked.
  let trustsCounter: Bool
  /// The periods from one frame to the next that were decided by the last call, in order.
  ///
  /// The first frame's own is 0.
  private(set) var steps: [Int64] = []
  /// The time from one frame to the next in microseconds, as estimated so far.
  var period: Double { grid.period }

  private var grid: PeriodTracker
  private var pending: [Reading] = []
  private var last: (reading: Reading, slot: Int64)?
  private var isWarm = false

  /// Begins a timeline.
  ///
  /// - Parameters:
  ///   - period: The frame duration that the driver granted, in microseconds.
  ///   - trustsCounter: Whether the sequence alone decides.
  init(period: Double, trustsCounter: Bool = false) {
    grid = PeriodTracker(period: period)
    self.trustsCounter = trustsCounter
    steps.reserveCapacity(Self.warmUp)
    pending.reserveCapacity(Self.warmUp)
  }

  /// Takes the next frame in; ``steps`` then holds what that decided, oldest first.
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

  /// Decides all that is still open.
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

  /// Decides the open frames, but for the last few where the disagreement may still go on.
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
