// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore

/// A bounded queue of triggers for the thread that records clips.
///
/// A trigger within the quiet period of the last accepted one is ignored. If the queue is full, a
/// trigger is refused. Ignored and refused triggers are counted.
struct TriggerQueue {
  /// The greatest number of waiting triggers, and of clips recorded at the same time.
  static let capacity = 16

  /// The number of triggers that were ignored because they came before the capture was armed, or
  /// within the quiet period of another trigger.
  private(set) var ignoredCount = 0
  /// The number of triggers that were refused because the queue was full.
  private(set) var refusedCount = 0
  private var waiting: [CaptureTrigger] = []
  /// The quiet period between accepted triggers in microseconds.
  private var quietPeriod: Int64 = 0
  /// The time of the last accepted trigger, in microseconds of the camera's clock.
  private var lastAccepted: Int64?
  /// The time from which triggers count, in microseconds of the camera's clock.
  private var armedTime = Int64.min
  /// The time at which the capture ends, in microseconds of the camera's clock; nil if unknown.
  ///
  /// The capture may learn of it later.
  private var endTime: Int64?

  /// Applies the settings of a capture, also to the triggers that arrived before the capture.
  mutating func begin(_ settings: TriggerSettings) {
    let early = waiting
    (waiting, lastAccepted, endTime) = ([], nil, nil)
    quietPeriod = settings.quietMicroseconds
    armedTime = settings.armsWhenFull ? .max : .min
    for trigger in early { append(trigger) }
  }

  /// Lets triggers count in a time range, in microseconds of the camera's clock.
  mutating func arm(duringMicroseconds range: Range<Int64>) {
    (armedTime, endTime) = (range.lowerBound, range.upperBound)
  }

  /// Accepts, ignores or refuses a trigger.
  mutating func append(_ trigger: CaptureTrigger) {
    if let endTime, trigger.microseconds >= endTime { return }
    // An early trigger begins no quiet period, because a clip does not follow it.
    guard trigger.microseconds >= armedTime else {
      ignoredCount += 1
      return
    }
    // Audio triggers are detected late, so a trigger may be earlier than the last accepted one. The
    // distance between the two is therefore an absolute value.
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

  /// Removes and returns the accepted triggers.
  mutating func take() -> [CaptureTrigger] {
    defer { waiting = [] }
    return waiting
  }
}

extension TriggerSettings {
  /// The quiet period between accepted triggers in microseconds, rounded up.
  fileprivate var quietMicroseconds: Int64 {
    let seconds = quietPeriod?.seconds ?? preDuration + postDuration
    let units = try? (seconds * 1_000_000).rounded(.towardPositiveInfinity)
    return units.flatMap { Int64(exactly: $0) } ?? .max / 4
  }
}
