// SPDX-License-Identifier: Apache-2.0

/// The clock of a take, derived from the driver's clock.
///
/// The time is zero at the first frame. The clock stops while the take is paused.
///
/// A pause lasts from the first omitted frame to the next recorded one. The last frame before the
/// pause therefore keeps its normal duration.
package struct PausableClock: Sendable {
  /// The driver time at which the take's time is zero, moved forward by the length of each pause.
  ///
  /// Nil before the first frame.
  package private(set) var origin: Int64?
  private var pauseStart: Int64?

  package init() {}

  /// Whether the take is paused.
  package var isPaused: Bool { pauseStart != nil }

  /// Pauses the take at a time of the driver's clock, in microseconds.
  package mutating func pause(atMicroseconds time: Int64) {
    if pauseStart == nil { pauseStart = time }
  }

  /// Ends a pause, or does nothing if the take is not paused.
  package mutating func resume(atMicroseconds time: Int64) {
    guard let start = pauseStart else { return }
    pauseStart = nil
    if let origin { self.origin = origin &+ (time &- start) }
  }

  /// Makes a driver time the zero of the take's clock, unless the zero is already set.
  package mutating func begin(atMicroseconds time: Int64) { if origin == nil { origin = time } }

  /// Converts a driver time to the take's time, in microseconds.
  ///
  /// Before the first frame the result is 0.
  package func time(ofMicroseconds time: Int64) -> Int64 { origin.map { time &- $0 } ?? 0 }

  /// Continues this clock with that of the take's next file.
  ///
  /// - Parameters:
  ///   - next: The clock of the file.
  ///   - time: The driver time of the file's first frame, in microseconds.
  /// - Returns: The time of that frame in the take, in microseconds.
  mutating func append(_ next: PausableClock, beginningAtMicroseconds time: Int64) -> Int64 {
    resume(atMicroseconds: time)
    let start = self.time(ofMicroseconds: time)
    if let origin = next.origin { self.origin = origin &- start }
    pauseStart = next.pauseStart
    return start
  }
}
