// SPDX-License-Identifier: Apache-2.0

/// Chooses the frame for a photo that was requested at a time.
///
/// The last frame before the request is chosen, because the program may have shown that frame. If
/// it is more than a frame period older than the request, frames were lost, and the nearest frame
/// is chosen.
enum FrameChoice: Equatable {
  /// No choice yet, because a later frame may be a better choice.
  case wait
  /// The frame that just arrived.
  case current
  /// An earlier frame, by its index in the array `recent` of held frames.
  case recent(Int)

  /// Decides which frame to choose, when a frame arrives.
  ///
  /// - Parameters:
  ///   - request: The requested time. All times are in microseconds of the driver's clock.
  ///   - current: The time of the frame that just arrived.
  ///   - arrival: The time at which that frame arrived.
  ///   - recent: The times of the earlier frames whose buffers are still held, oldest first.
  ///   - period: The frame period, rounded down.
  /// - Returns: The choice.
  static func decide(
    _ request: Int64, current: Int64, arrival: Int64, recent: some RandomAccessCollection<Int64>,
    period: Int64
  ) -> FrameChoice {
    if current <= request {
      // The next frame comes one period later. If that is after the request, the current frame is
      // the last one before the request.
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

  /// The greatest time to wait, after a request, for frames from before the request, in
  /// microseconds.
  private static let longestWait: Int64 = 1_000_000
}
