// SPDX-License-Identifier: Apache-2.0

import Glibc
import Histogram

/// The latency and processor time of a capture.
///
/// The latency is the time from dequeueing a buffer to requeueing it.
public struct CaptureStatistics: Hashable, Sendable, Codable {
  /// The median latency of a buffer.
  public var p50 = Duration.zero
  /// The 99th percentile of the latency of a buffer.
  public var p99 = Duration.zero
  /// The 99.9th percentile of the latency of a buffer.
  public var p999 = Duration.zero
  /// The greatest latency of a buffer.
  public var max = Duration.zero
  /// Processor time of the capture thread.
  public var captureThread = Duration.zero
  /// Processor time of the writer thread.
  public var writerThread = Duration.zero

  /// Creates statistics with zero values.
  public init() {}

  /// The processor time that the calling thread has used so far.
  package static func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

/// Records buffer latencies in a histogram, without allocation.
struct LatencyRecorder {
  /// The greatest latency that the histogram can record, in microseconds.
  ///
  /// Greater latencies are recorded as this value.
  private static let limit: UInt64 = 10_000_000
  private var histogram = Histogram<UInt32>(
    highestTrackableValue: limit, numberOfSignificantValueDigits: .two)

  mutating func record(microseconds: Int64) {
    histogram.record(min(Self.limit, UInt64(max(0, microseconds))))
  }

  /// The percentiles of the recorded latencies, or zeros if no latency was recorded.
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
