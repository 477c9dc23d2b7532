// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore

/// Triggers on their way from the threads that give them to the thread that records clips.
///
/// It is bounded, whatever comes: a trigger within the quiet period of the last accepted one is
/// ignored, and one for which there is no room is refused. Both are counted.
struct TriggerQueue {
  /// Triggers that may wait at a time, and clips that may be recorded at a time.
  static let capacity = 16

  /// How many triggers came within the quiet period of another.
  private(set) var ignoredCount = 0
  /// How many triggers came while as many as may wait did.
  private(set) var refusedCount = 0
  private var waiting: [CaptureTrigger] = []
  /// In microseconds of the camera's clock.
  private var quietPeriod: Int64 = 0
  /// When the last accepted trigger happened, in microseconds of the camera's clock.
  private var lastAccepted: Int64?

  /// Applies the settings of a capture, also to the triggers that came before it.
  mutating func begin(_ settings: TriggerSettings) {
    let early = waiting
    (waiting, lastAccepted) = ([], nil)
    quietPeriod = settings.quietMicroseconds
    for trigger in early { append(trigger) }
  }

  /// Accepts, ignores or refuses a trigger.
  mutating func append(_ trigger: CaptureTrigger) {
    // A sound is known later than it happened, so a trigger may be earlier than the last one.
    let distance = lastAccepted.map { last in
      let (lower, upper) = (min(last, trigger.microseconds), max(last, trigger.microseconds))
      let (distance, overflow) = upper.subtractingReportingOverflow(lower)
      return overflow ? .max : distance
    }
    if let distance, distance < quietPeriod {
      ignoredCount += 1
    } else if waiting.count >= Self.capacity {
      refusedCount += 1
    } else {
      lastAccepted = trigger.microseconds
      waiting.append(trigger)
    }
  }

  /// The triggers that were accepted since the last call.
  mutating func take() -> [CaptureTrigger] {
    defer { waiting = [] }
    return waiting
  }
}

extension TriggerSettings {
  /// The quiet period in microseconds, rounded up.
  fileprivate var quietMicroseconds: Int64 {
    let seconds = quietPeriod?.seconds ?? preDuration + postDuration
    let units = try? (seconds * 1_000_000).rounded(.towardPositiveInfinity)
    return units.flatMap { Int64(exactly: $0) } ?? .max / 4
  }
}
