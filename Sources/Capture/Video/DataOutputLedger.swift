// SPDX-License-Identifier: Apache-2.0

package import Synchronization

/// The reason why a data output dropped a frame or an audio block that had arrived.
public enum FrameDropReason: String, Hashable, Sendable, CaseIterable {
  /// A previous frame was still in the queue, and the output is set to discard late frames.
  ///
  /// Also the reason for a frame that was not decoded, because decoding was too slow or had to begin
  /// with a later key frame.
  case frameWasLate = "frame_was_late"
  /// The output already holds the greatest permitted number of frames or audio blocks.
  case outOfBuffers = "out_of_buffers"
  /// The frame arrived damaged.
  case corrupt
  /// The frame came sooner after the previous frame than the output's minimum frame duration
  /// allows.
  case tooSoon = "too_soon"
}

/// The number of frames or audio blocks of a data output, by outcome.
public struct DataOutputLedger: Hashable, Sendable {
  /// The number of frames or audio blocks that arrived while the connection was enabled.
  public var offered: Int64 = 0
  /// The number of frames or audio blocks delivered to the program.
  public var delivered: Int64 = 0
  /// The number of frames or audio blocks that wait in the queue.
  public var waiting: Int64 = 0
  /// The number of dropped frames or audio blocks, by reason.
  public var dropped: [FrameDropReason: Int64] = [:]

  /// Whether the numbers of delivered, waiting and dropped frames add up to ``offered``.
  public var isBalanced: Bool { offered == delivered + waiting + dropped.values.reduce(0, +) }
}

/// The counters of a data output.
package final class DataOutputCounters: Sendable {
  package let offered = Atomic<Int64>(0)
  package let delivered = Atomic<Int64>(0)
  private let late = Atomic<Int64>(0)
  private let outOfBuffers = Atomic<Int64>(0)
  private let corrupt = Atomic<Int64>(0)
  private let tooSoon = Atomic<Int64>(0)

  package init() {}

  package func note(_ reason: FrameDropReason) {
    switch reason {
    case .frameWasLate: late.wrappingAdd(1, ordering: .releasing)
    case .outOfBuffers: outOfBuffers.wrappingAdd(1, ordering: .releasing)
    case .corrupt: corrupt.wrappingAdd(1, ordering: .releasing)
    case .tooSoon: tooSoon.wrappingAdd(1, ordering: .releasing)
    }
  }

  /// A snapshot of the counters.
  ///
  /// Frames that are neither delivered nor dropped yet count as waiting.
  package var ledger: DataOutputLedger {
    var ledger = DataOutputLedger()
    // `offered` is read last. A frame is offered before it is delivered or dropped, so those counts
    // cannot exceed the offered count.
    ledger.delivered = delivered.load(ordering: .acquiring)
    ledger.dropped = [
      .frameWasLate: late.load(ordering: .acquiring),
      .outOfBuffers: outOfBuffers.load(ordering: .acquiring),
      .corrupt: corrupt.load(ordering: .acquiring), .tooSoon: tooSoon.load(ordering: .acquiring),
    ].filter { $0.value > 0 }
    ledger.offered = offered.load(ordering: .acquiring)
    ledger.waiting = ledger.offered - ledger.delivered - ledger.dropped.values.reduce(0, +)
    return ledger
  }
}
