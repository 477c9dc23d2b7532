// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// A snapshot of how many frames have arrived at a preview so far.
///
/// The frame rate is the difference between two frame counts, divided by the difference between the
/// times of the newest frames.
public struct PreviewArrivals: Hashable, Sendable {
  /// The number of frames that arrived.
  public let frameCount: Int64
  /// The number of frames that the driver's frame counter skipped.
  ///
  /// Zero for a driver that does not count lost frames. The ledger of a movie is more exact, because
  /// it also compares times.
  public let missingCount: Int64
  /// The capture time of the newest frame, or nil before the first.
  public let newestTime: MediaTime?

  /// The frame rate between an earlier snapshot and this one, in frames per second.
  ///
  /// - Returns: The rate, or nil if no frame arrived between the two snapshots.
  public func frameRate(since earlier: PreviewArrivals) -> Double? {
    guard let end = newestTime, let start = earlier.newestTime, end > start,
      frameCount > earlier.frameCount
    else { return nil }
    return Double(frameCount - earlier.frameCount) / (end.doubleValue - start.doubleValue)
  }
}

/// Counts the frames that arrive; the capture thread writes, and all threads may read.
final class ArrivalCounter: Sendable {
  private let frameCount = Atomic<Int64>(0)
  private let missingCount = Atomic<Int64>(0)
  private let newest = Atomic<Int64>(.min)
  /// The sequence number of the previous frame, used only by the capture thread.
  private let sequence = Atomic<UInt32>(0)

  /// Counts a frame.
  ///
  /// Call this on the capture thread.
  func note(_ observation: FrameObservation) {
    if newest.load(ordering: .relaxed) != .min {
      let step = observation.sequence &- sequence.load(ordering: .relaxed)
      // If the sequence number goes backward, the counter was restarted, and no frame counts as
      // missing.
      if step > 1, step < 1 << 31 {
        missingCount.wrappingAdd(Int64(step) - 1, ordering: .relaxed)
      }
    }
    sequence.store(observation.sequence, ordering: .relaxed)
    newest.store(observation.microseconds, ordering: .relaxed)
    frameCount.wrappingAdd(1, ordering: .releasing)
  }

  /// A snapshot of the counts.
  var arrivals: PreviewArrivals {
    let count = frameCount.load(ordering: .acquiring)
    let time = newest.load(ordering: .relaxed)
    return PreviewArrivals(
      frameCount: count, missingCount: missingCount.load(ordering: .relaxed),
      newestTime: time == .min ? nil : MediaTime(microseconds: time))
  }
}
