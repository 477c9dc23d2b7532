// SPDX-License-Identifier: Apache-2.0

/// The time of a take on the clock of its driver: zero at its first frame, and standing still while
/// the take is paused.
///
/// A pause reaches from the first frame that is left out to the next one that is not. So the last
/// picture before it is shown for as long as it would have been, and no time is lost or made up.
package struct PausableClock: Sendable {
  /// The driver's time of the take's zero, moved on by the pauses; nil before the first frame.
  package private(set) var origin: Int64?
  private var pauseStart: Int64?

  package init() {}

  /// Whether frames are left out.
  package var isPaused: Bool { pauseStart != nil }

  /// Leaves out frames from this time of the driver's on.
  package mutating func pause(atMicroseconds time: Int64) {
    if pauseStart == nil { pauseStart = time }
  }

  /// Goes on after a pause, if there is one.
  package mutating func resume(atMicroseconds time: Int64) {
    guard let start = pauseStart else { return }
    pauseStart = nil
    if let origin { self.origin = origin &+ (time &- start) }
  }

  /// Begins the take unless it has begun.
  package mutating func begin(atMicroseconds time: Int64) { if origin == nil { origin = time } }

  /// The take's time of a frame, in microseconds; 0 before the take has begun.
  package func time(ofMicroseconds time: Int64) -> Int64 { origin.map { time &- $0 } ?? 0 }
}
