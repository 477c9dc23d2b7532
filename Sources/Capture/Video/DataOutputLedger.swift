// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Why an output did not get a frame, or a block of sound, that arrived.
public enum FrameDropReason: String, Hashable, Sendable, CaseIterable {
  /// A frame before it was still waiting, and late ones are discarded.
  case frameWasLate = "frame_was_late"
  /// As many frames are kept, or blocks wait, as may be.
  case outOfBuffers = "out_of_buffers"
  /// It arrived damaged.
  case corrupt
  /// It came sooner than the shortest frame duration that was asked for.
  case tooSoon = "too_soon"
}

/// What became of the frames, or the blocks of sound, that were offered to an output.
public struct DataOutputLedger: Hashable, Sendable {
  /// Frames that came while the connection was enabled.
  public var offered: Int64 = 0
  /// Frames that were handed over.
  public var delivered: Int64 = 0
  /// Frames that still wait.
  public var waiting: Int64 = 0
  /// Frames that were not handed over, by reason.
  public var dropped: [FrameDropReason: Int64] = [:]

  /// Whether each frame offered is in just one of the other figures.
  public var isBalanced: Bool { offered == delivered + waiting + dropped.values.reduce(0, +) }
}

/// The figures behind a ledger, one thread each.
final class DataOutputCounters: Sendable {
  let offered = Atomic<Int64>(0)
  let delivered = Atomic<Int64>(0)
  private let late = Atomic<Int64>(0)
  private let outOfBuffers = Atomic<Int64>(0)
  private let corrupt = Atomic<Int64>(0)
  private let tooSoon = Atomic<Int64>(0)

  func note(_ reason: FrameDropReason) {
    switch reason {
    case .frameWasLate: late.wrappingAdd(1, ordering: .relaxed)
    case .outOfBuffers: outOfBuffers.wrappingAdd(1, ordering: .relaxed)
    case .corrupt: corrupt.wrappingAdd(1, ordering: .relaxed)
    case .tooSoon: tooSoon.wrappingAdd(1, ordering: .relaxed)
    }
  }

  /// The ledger now; what is under way at this moment counts as waiting.
  var ledger: DataOutputLedger {
    var ledger = DataOutputLedger()
    // What was handed over before it is asked how many were offered: never more than those.
    ledger.delivered = delivered.load(ordering: .acquiring)
    ledger.dropped = [
      .frameWasLate: late.load(ordering: .relaxed),
      .outOfBuffers: outOfBuffers.load(ordering: .relaxed),
      .corrupt: corrupt.load(ordering: .relaxed), .tooSoon: tooSoon.load(ordering: .relaxed),
    ].filter { $0.value > 0 }
    ledger.offered = offered.load(ordering: .acquiring)
    ledger.waiting = ledger.offered - ledger.delivered - ledger.dropped.values.reduce(0, +)
    return ledger
  }
}
