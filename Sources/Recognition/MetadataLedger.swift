// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The numbers of frames that a metadata output received, by outcome.
public struct MetadataLedger: Hashable, Sendable {
  /// Frames that arrived while the connection was enabled.
  public var offered: Int64 = 0
  /// Frames that were searched for objects.
  public var examined: Int64 = 0
  /// Frames that were not searched, because a newer frame replaced them or no buffer was free.
  public var skipped: Int64 = 0
  /// Frames that arrived damaged, or could not be decoded.
  public var corrupt: Int64 = 0
  /// Frames that wait for the search or are being searched.
  public var waiting: Int64 = 0

  /// Whether the numbers of frames of all outcomes add up to ``offered``.
  public var isBalanced: Bool { offered == examined + skipped + corrupt + waiting }
}

/// The counters of a metadata output, which any thread may read.
final class MetadataCounters: Sendable {
  let offered = Atomic<Int64>(0)
  let examined = Atomic<Int64>(0)
  let skipped = Atomic<Int64>(0)
  let corrupt = Atomic<Int64>(0)

  /// A snapshot of the counters.
  var ledger: MetadataLedger {
    var ledger = MetadataLedger()
    // A frame is counted as offered before its outcome is counted. Outcomes are read first, so
    // their sum never exceeds the offered frames.
    ledger.examined = examined.load(ordering: .acquiring)
    ledger.skipped = skipped.load(ordering: .acquiring)
    ledger.corrupt = corrupt.load(ordering: .acquiring)
    ledger.offered = offered.load(ordering: .acquiring)
    ledger.waiting = ledger.offered - ledger.examined - ledger.skipped - ledger.corrupt
    return ledger
  }
}
