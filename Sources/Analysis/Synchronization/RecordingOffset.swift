// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The measured time offset between two recordings of the same event.
public struct RecordingOffset: Hashable, Sendable, Codable {
  /// The kind of event that the offset was measured with.
  public enum Method: String, Hashable, Sendable, Codable, CaseIterable {
    /// The audio of both recordings.
    case audio
    /// A light that was switched on or off, or a flash.
    case flash
  }

  /// The time in the reference at which the other recording starts.
  ///
  /// An event at the time `t` of the other recording is at `t + offset` in the reference. If
  /// ``drift`` is not zero, this holds exactly only at ``time``. Audio arrives 2.9 ms later for
  /// each meter of distance, which the offset includes.
  public let offset: MediaTime
  /// Half the width of the interval around ``offset`` that contains the true value with a
  /// probability of at least 95 %.
  public let uncertainty: MediaTime
  /// The kind of event with which the offset was measured.
  public let method: Method
  /// 1 minus the height of the second-best match relative to the best one, from 0 to 1.
  public let confidence: Double
  /// The time in the other recording at which the offset was measured: the middle of the common
  /// part, or the mean time of the flashes.
  public let time: MediaTime
  /// The change of the offset over time in millionths; nil if it was not measured.
  ///
  /// Above zero, the clock of the reference is faster.
  public let drift: Double?
  /// The number of audio blocks or flashes that were used.
  public let matchCount: Int

  init(
    offset: Double, uncertainty: Double, method: Method, confidence: Double, time: Double,
    drift: Double?, matchCount: Int
  ) {
    func nanoseconds(_ seconds: Double, _ rule: FloatingPointRoundingRule) -> MediaTime {
      MediaTime(nanoseconds: Int64(exactly: (seconds * 1e9).rounded(rule)) ?? .max)
    }
    self.offset = nanoseconds(offset, .toNearestOrAwayFromZero)
    // The result is in whole nanoseconds, so the uncertainty is at least 1 ns.
    self.uncertainty = nanoseconds(max(uncertainty, 1e-9), .up)
    self.method = method
    self.confidence = min(1, max(0, confidence))
    self.time = nanoseconds(time, .toNearestOrAwayFromZero)
    (self.drift, self.matchCount) = (drift, matchCount)
  }
}
