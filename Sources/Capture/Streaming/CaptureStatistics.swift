// SPDX-License-Identifier: Apache-2.0

import Glibc
import Histogram

/// What capturing cost: how long buffers were kept from the driver, and how much work it was.
public struct CaptureStatistics: Hashable, Sendable {
  /// Half of the buffers were back with the driver after this long, in nanoseconds.
  public var p50: Int64 = 0
  /// 99 in 100 were.
  public var p99: Int64 = 0
  /// 999 in 1 000 were.
  public var p999: Int64 = 0
  /// All were.
  public var max: Int64 = 0
  /// Processor time of the capture thread, in nanoseconds.
  public var captureThread: Int64 = 0
  /// Processor time of the thread that stores, in nanoseconds.
  public var writerThread: Int64 = 0

  /// Makes costs of nothing.
  public init() {}

  /// The processor time of the calling thread so far, in nanoseconds.
  package static func threadNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// Counts how long each buffer was kept, from dequeueing to giving back, without allocating.
struct LatencyRecorder {
  /// In microseconds; longer ones count as the longest.
  private static let limit: UInt64 = 10_000_000
  private var histogram = Histogram<UInt32>(
    highestTrackableValue: limit, numberOfSignificantValueDigits: .two)

  mutating func record(microseconds: Int64) {
    histogram.record(min(Self.limit, UInt64(max(0, microseconds))))
  }

  /// What was recorded; zeros where nothing was.
  var cost: CaptureStatistics {
    var cost = CaptureStatistics()
    guard histogram.totalCount > 0 else { return cost }
    func nanoseconds(_ percentile: Double) -> Int64 {
      Int64(histogram.valueAtPercentile(percentile)) * 1_000
    }
    (cost.p50, cost.p99, cost.p999) = (nanoseconds(50), nanoseconds(99), nanoseconds(99.9))
    cost.max = Int64(histogram.max) * 1_000
    return cost
  }
}
