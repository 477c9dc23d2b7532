// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Finds the slots of a few frames that counter and clock disagree about.
///
/// It is a shortest path (Viterbi 1967): each frame may take the slot that the counter says or
/// one of the two that its time is between, slots rise, a frame costs the square of its distance
/// from its slot, and a contradiction of the counter a quarter for each period, but neither more
/// than one. That the counter counted too many costs twice as much, unless it makes up for too
/// few before: cameras tell gaps late, and never early. So a frame that comes late
/// and is followed by one in time is late; one that is a whole period late and stays so, or
/// whose counter makes up for it afterwards, is not where the counter says.
struct SlotAssignment {
  private static let contradictionCost = 0.25
  private static let pathLimit = 6

  /// What was found of a frame.
  struct Step {
    /// Periods from the frame before.
    let step: Int64
    /// Whether the frames after this one may still say otherwise: it is far from its slot, or
    /// the counter contradicts it or says nothing.
    let isOpen: Bool
  }

  /// The end of a path: a frame in a slot, and where it came from.
  private struct Node {
    let slot: Int64
    let cost: Double
    let parent: Int
    let isOpen: Bool
    /// Periods that the counter still has to make up for.
    let owed: Int64
  }

  private let grid: PeriodTracker
  private var nodes: [Node] = []
  /// The first node of the frame that is being placed.
  private var stage = 0
  /// Where the clock jumped, what follows is measured from there; in periods.
  private var shift = 0.0

  init(grid: PeriodTracker) { self.grid = grid }

  /// The periods from each frame to the next.
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

  /// Goes on from a path by one frame, in every way worth a look.
  private mutating func extend(
    _ parent: Int, to reading: FrameTimeline.Reading, _ counted: Int64?
  ) {
    let from = nodes[parent].slot
    let lowest = from &+ max(1, reading.minimumStep)
    if let counted {
      let slot = from &+ counted
      let late = self.late(reading, slot)
      add(slot, parent, late, isOpen: abs(late) > PeriodTracker.near, owed: nodes[parent].owed)
      guard abs(late) > PeriodTracker.near else { return }
      let low = slot &+ Int64(saturating: late.rounded(.down))
      for candidate in [low, low &+ 1] where candidate != slot && candidate >= lowest {
        let extra = candidate &- slot
        let share = extra < 0 && nodes[parent].owed <= 0 ? 2 : 1
        add(
          candidate, parent, self.late(reading, candidate), isOpen: true,
          price: min(1, Self.contradictionCost * Double(share) * abs(Double(extra))),
          owed: nodes[parent].owed &+ extra)
      }
    } else {
      // The counter says nothing: the clock alone decides.
      let nearest = from &+ Int64(saturating: late(reading, from).rounded())
      for candidate in [nearest, nearest &+ 1, nearest &- 1] {
        let slot = max(candidate, lowest)
        add(slot, parent, late(reading, slot), isOpen: true, owed: 0)
      }
    }
  }

  /// How late a frame is for a slot, in periods; not at all where its clock jumped.
  private func late(_ reading: FrameTimeline.Reading, _ slot: Int64) -> Double {
    reading.isClockJump ? 0 : grid.offset(of: reading, from: slot) - shift
  }

  /// Keeps the cheapest way to a slot.
  private mutating func add(
    _ slot: Int64, _ parent: Int, _ late: Double, isOpen: Bool, price: Double = 0,
    owed: Int64
  ) {
    let node = Node(
      slot: slot, cost: nodes[parent].cost + min(1, late * late) + price, parent: parent,
      isOpen: isOpen, owed: owed)
    if let index = nodes[stage...].firstIndex(where: { $0.slot == slot }) {
      if node.cost < nodes[index].cost { nodes[index] = node }
    } else {
      nodes.append(node)
    }
  }

  /// Leaves the few cheapest paths, the cheapest first.
  private mutating func keepBest() {
    nodes[stage...].sort { $0.cost < $1.cost }
    let extra = nodes.count - stage - Self.pathLimit
    if extra > 0 { nodes.removeLast(extra) }
  }
}
