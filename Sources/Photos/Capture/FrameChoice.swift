// SPDX-License-Identifier: Apache-2.0

/// The choice of the frame for a requested time.
///
/// The frame is the last one before the request, because the program saw this one. If that frame is
/// older than a frame period, frames were lost, and the nearest frame is chosen.
enum FrameChoice: Equatable {
  /// A later frame may be a better choice.
  case wait
  /// The current frame.
  case current
  /// A recent frame, by its position.
  case recent(Int)

  /// Decides at the arrival of a frame.
  ///
  /// - Parameters:
  ///   - request: The requested time. All times are in microseconds of the driver's clock.
  ///   - current: The time of the frame that just arrived.
  ///   - arrival: The time of its arrival.
  ///   - recent: The times of earlier frames that are still held, oldest first.
  ///   - period: The frame period, rounded down.
  /// - Returns: The choice.
  static func decide(
    _ request: Int64, current: Int64, arrival: Int64, recent: some RandomAccessCollection<Int64>,
    period: Int64
  ) -> FrameChoice {
    if current <= request {
      // The next frame comes a period later. If that is after the request, this frame is the last
      // one before it.
      if request &- current < period { return .current }
      // The driver's timestamps may jump back. Without this limit, the request might wait for hours.
      return arrival &- request > max(longestWait, 4 &* period) ? .current : .wait
    }
    var position = recent.count
    for time in recent.reversed() {
      position -= 1
      guard time <= request else { continue }
      let age = request &- time
      return age < period + period / 4 || age <= current &- request ? .recent(position) : .current
    }
    return .current
  }

  /// The longest time after a request in which frames before it may still arrive, in microseconds.
  private static let longestWait: Int64 = 1_000_000
}
