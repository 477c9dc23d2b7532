// SPDX-License-Identifier: Apache-2.0

import Glibc
import Histogram

/// What capturing cost: how long buffers were kept from the driver, and how much work it was.
public struct CaptureStatistics: Hashable, Sendable, Codable {
  /// Half of the buffers were back with the driver after this long.
  public var p50 = Duration.zero
  /// 99 in 100 were.
  public var p99 = Duration.zero
  /// 999 in 1 000 were.
  public var p999 = Duration.zero
  /// All were.
  public var max = Duration.zero
  /// Processor time of the capture thread.
  public var captureThread = Duration.zero
  /// Processor time of the thread that stores.
  public var writerThread = Duration.zero

  /// Makes costs of nothing.
  public init() {}

  /// The processor time of the calling thread so far.
  package static func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
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
    func latency(_ percentile: Double) -> Duration {
      .microseconds(histogram.valueAtPercentile(percentile))
    }
    (cost.p50, cost.p99, cost.p999) = (latency(50), latency(99), latency(99.9))
    cost.max = .microseconds(histogram.max)
    return cost
  }
}
