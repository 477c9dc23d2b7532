// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A Viterbi search that assigns frames to slots of a regular time grid, where the driver's frame
/// counter and clock disagree.
///
/// Each frame may take the slot that the counter gives or one of the two slots around its
/// timestamp.
///
/// | Cost per frame | Amount |
/// |---|---|
/// | Time error | its square in periods, at most 1 |
/// | Counter error | 0.25 per period, at most 1 |
/// | Counter too high | twice the counter error, unless it repays an earlier undercount |
///
/// The counter error is doubled if the counter is too high, because cameras report a gap late but
/// never early. If one frame is late and the next is on time, the late frame keeps its slot. If a
/// frame stays a whole period late, or if the counter later catches up, the frame moves to the
/// later slot.
struct SlotAssignment {
  private static let contradictionCost = 0.25
  private static let pathLimit = 6

  /// The result of the slot search for one frame.
  struct Step {
    /// The number of frame periods since the previous frame.
    let step: Int64
    /// Whether later frames may still change the step.
    ///
    /// True if the frame is far from its slot, or if the counter disagrees with the slot or is
    /// unusable.
    let isOpen: Bool
  }

  /// A node of the slot search: a frame in a slot, and the node of the previous frame on the path.
  private struct Node {
    let slot: Int64
    let cost: Double
    let parent: Int
    let isOpen: Bool
    /// The number of periods on this path that the counter has missed so far.
    ///
    /// The number is negative if the counter has counted too many periods.
    let owed: Int64
  }

  private let grid: PeriodTracker
  private var nodes: [Node] = []
  /// The index in `nodes` of the first candidate for the frame that is being assigned.
  private var stage = 0
  /// The distance, in periods, by which a jump of the driver's clock moved the timestamps relative
  /// to the grid.
  private var shift = 0.0

  init(grid: PeriodTracker) { self.grid = grid }

  /// Returns, for each frame, the number of frame periods since the previous frame.
  mutating func steps(
    from last: (reading: FrameTimeline.Reading, slot: Int64), to readings: [FrameTimeline.Reading]
  ) -> [Step] {
    nodes.reserveCapacity(1 + readings.count * 3 * Self.pathLimit)
    nodes.append(Node(slot: last.slot, cost: 0, parent: 0, isOpen: false, owed: 0))
    var before = last.reading
    for reading in readings {
      let parents = stage..<nodes.count
      stage = nodes.count
      let counted = PeriodTracker.counted(from: before, to: reading)
      for parent in parents { extend(parent, to: reading, counted) }
      keepBest()
      if reading.isClockJump { shift = grid.offset(of: reading, from: nodes[stage].slot) }
      before = reading
    }
    var steps: [Step] = []
    steps.reserveCapacity(readings.count)
    var index = stage
    while index > 0 {
      let node = nodes[index]
      steps.append(Step(step: node.slot &- nodes[node.parent].slot, isOpen: node.isOpen))
      index = node.parent
    }
    return steps.reversed()
  }

  /// Extends a path of the search by one frame, once for each plausible slot of the frame.
  private mutating func extend(
    _ parent: Int, to reading: FrameTimeline.Reading, _ counted: Int64?
  ) {
    let from = nodes[parent].slot
    let lowest = from &+ max(1, reading.minimumStep)
    if let counted {
      let slot = from &+ counted
      let late = self.late(reading, slot)
      let isFar = abs(grid.excess(of: late)) > grid.near
      // A grid with coarse times suits several slots, so the counter is checked even there.
      let isOpen = isFar || (counted > 1 && grid.hasWindow)
      add(slot, parent, late, isOpen: isOpen, owed: nodes[parent].owed)
      guard isOpen else { return }
      let range = grid.candidates(late: late)
      for extra in range where extra != 0 && slot &+ extra >= lowest {
        let candidate = slot &+ extra
        let share = extra < 0 && nodes[parent].owed <= 0 ? 2 : 1
        add(
          candidate, parent, self.late(reading, candidate), isOpen: true,
          price: min(1, Self.contradictionCost * Double(share) * abs(Double(extra))),
          owed: nodes[parent].owed &+ extra)
      }
    } else {
      // The counter stopped or went backward, so only the clock suggests slots.
      let nearest = from &+ Int64(saturating: late(reading, from).rounded())
      for candidate in [nearest, nearest &+ 1, nearest &- 1] {
        let slot = max(candidate, lowest)
        add(slot, parent, late(reading, slot), isOpen: true, owed: 0)
      }
    }
  }

  /// The delay of a frame's timestamp relative to a slot, in periods.
  ///
  /// If the clock jumped at this frame, the delay is unknown and counts as 0.
  private func late(_ reading: FrameTimeline.Reading, _ slot: Int64) -> Double {
    reading.isClockJump ? 0 : grid.offset(of: reading, from: slot) - shift
  }

  /// Adds a path of the search, but keeps only the cheapest path to each slot.
  private mutating func add(
    _ slot: Int64, _ parent: Int, _ late: Double, isOpen: Bool, price: Double = 0,
    owed: Int64
  ) {
    let excess = grid.excess(of: late)
    let node = Node(
      slot: slot, cost: nodes[parent].cost + min(1, excess * excess) + price, parent: parent,
      isOpen: isOpen, owed: owed)
    if let index = nodes[stage...].firstIndex(where: { $0.slot == slot }) {
      if node.cost < nodes[index].cost { nodes[index] = node }
    } else {
      nodes.append(node)
    }
  }

  /// Sorts the paths of the search by cost, and keeps only the few cheapest ones.
  private mutating func keepBest() {
    nodes[stage...].sort { $0.cost < $1.cost }
    let extra = nodes.count - stage - Self.pathLimit
    if extra > 0 { nodes.removeLast(extra) }
  }
}
