// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The start or the end of an automatic adjustment.
public struct CameraAdjustment: Hashable, Sendable {
  /// A setting that cameras adjust automatically.
  public enum Subject: String, Hashable, Sendable, CaseIterable {
    case focus
    case exposure
    case whiteBalance = "white_balance"

    /// The control whose value the camera chooses.
    fileprivate var control: ControlID {
      switch self {
      case .focus: .focus
      case .exposure: .exposureTime
      case .whiteBalance: .whiteBalanceTemperature
      }
    }
  }

  /// The adjusted setting.
  public let subject: Subject
  /// True at the start of the adjustment, false at its end.
  public let isAdjusting: Bool
}

// V4L2 does not report whether exposure and white balance are adjusting. Two readings of the
// automatic value are compared instead: if they differ, the camera is adjusting.
//
// A driver may answer with a value that it read long ago. `uvcvideo` does so, unless the camera says
// that it changes the control itself (AUTO_UPDATE), and no flag shows which is the case. Equal
// readings therefore mean that the camera is not adjusting only if earlier readings differed. A
// camera may also report its changes by itself, and the driver then sends an event.
extension CameraControls {
  /// The start and the end of each automatic adjustment of focus, exposure and white balance.
  ///
  /// A thread reads the automatic values ten times per second. The thread ends at most 100 ms after
  /// the sequence is released or its task is cancelled. An adjustment of exposure or white balance
  /// ends when its value has not changed for 300 ms. The newest 256 unread events are kept.
  ///
  /// - Returns: A sequence that never ends normally. It throws a `MediaError` when the device is
  ///   lost.
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera reports none of the values. A
  ///   driver that answers with old values, as ``isAdjustingExposure`` describes, reports them, but the
  ///   sequence has no elements then.
  public func adjustments() throws(MediaError)
    -> some AsyncSequence<CameraAdjustment, MediaError> & Sendable
  {
    guard let node = camera.ownNode else {
      throw camera.missing("automatic values that can be read")
    }
    let watched = try ControlledNode(reopening: node)
    let reading = try watched.useOwn { device throws(CallFailure) in
      // Drivers without events are read only.
      for subject in CameraAdjustment.Subject.allCases {
        try? device.subscribe(to: .control(subject.control))
      }
      return try AdjustmentReading(of: device)
    }
    guard reading.isFocusing != nil || !reading.values.isEmpty else {
      throw camera.missing("automatic values that can be read")
    }
    return try CameraEvents(of: watched, AdjustmentWatch()) {
      watch, event, device throws(CallFailure) in try watch.see(event, of: device)
    }
  }
}

/// The values that a camera chooses automatically, and what earlier readings of them have shown.
final class AutomaticValues: Sendable {
  private let camera: ControlledCamera
  /// Waits between two readings.
  private let pause: @Sendable () -> Void
  /// The last readings, and the controls whose readings have differed.
  private let readings = Mutex((last: [ControlID: Int64](), changed: Set<ControlID>()))

  init(_ camera: ControlledCamera, _ pause: @escaping @Sendable () -> Void) {
    (self.camera, self.pause) = (camera, pause)
  }

  /// Waits for 100 ms.
  static let pause: @Sendable () -> Void = {
    MonotonicClock.sleep(untilMicroseconds: MonotonicClock.microseconds() + 100_000)
  }

  /// Whether the camera is changing a value, or nil if that is not known.
  func isChanging(_ subject: CameraAdjustment.Subject) throws(MediaError) -> Bool? {
    let id = subject.control
    guard let before = try chosen(id) else { return nil }
    let events: ControlledNode? = if before.isVolatile { nil } else { try? changeEvents(of: id) }
    pause()
    guard let after = try chosen(id) else { return nil }
    let hasChangedBefore = hasChanged(id, [before.number, after.number])
    if before.number != after.number { return true }
    if let events, try events.useOwn({ device throws(CallFailure) in try device.hasEvent(of: id) })
    {
      return true
    }
    return before.isVolatile || hasChangedBefore ? false : nil
  }

  /// Whether the readings of a value so far, and the next ones, have differed.
  private func hasChanged(_ id: ControlID, _ next: [Int64]) -> Bool {
    readings.withLock { readings in
      for number in next {
        if let last = readings.last.updateValue(number, forKey: id), last != number {
          readings.changed.insert(id)
        }
      }
      return readings.changed.contains(id)
    }
  }

  /// A handle that receives the events of one control.
  private func changeEvents(of id: ControlID) throws(MediaError) -> ControlledNode? {
    guard let node = camera.ownNode else { return nil }
    let own = try ControlledNode(reopening: node)
    try own.useOwn { device throws(CallFailure) in try device.subscribe(to: .control(id)) }
    return own
  }

  /// The value that the camera chose automatically for a control, or nil if the camera does not
  /// report the value.
  private func chosen(_ id: ControlID) throws(MediaError) -> AutomaticValue? {
    try camera.ownNode?.use { device throws(CallFailure) in try device.choice(of: id) } ?? nil
  }
}

/// The value that a camera chose for a control.
private struct AutomaticValue {
  let number: Int64
  /// Whether each reading asks the camera.
  ///
  /// If false, the driver may answer with an old value.
  let isVolatile: Bool
}

extension VideoDevice {
  /// The value of a control that the device itself changes, or nil if the device lacks the control or
  /// does not change it itself.
  ///
  /// The device changes a control that is `volatile`, and one that is `inactive` because an automatic
  /// mode determines its value.
  fileprivate borrowing func choice(of id: ControlID) throws(CallFailure) -> AutomaticValue? {
    guard let control = try control(id),
      control.flags.contains(.volatile) || control.flags.contains(.inactive),
      let number = try value(of: control)?.number
    else { return nil }
    return AutomaticValue(number: number, isVolatile: control.flags.contains(.volatile))
  }

  /// Whether an event of a control's value is waiting.
  fileprivate borrowing func hasEvent(of id: ControlID) throws(CallFailure) -> Bool {
    while let event = try nextEvent(timeoutMilliseconds: 0) {
      guard case .control(let change) = event.kind, change.id == id else { continue }
      if change.changesValue { return true }
    }
    return false
  }
}

/// A camera's focus state and the values that it chose automatically, at one time.
struct AdjustmentReading {
  var isFocusing: Bool?
  /// The values that the camera reports.
  ///
  /// Without the lens position if the camera reports whether it is focusing.
  var values: [CameraAdjustment.Subject: Int64] = [:]
}

/// The values of control events, which are newer than what a driver keeps.
///
/// An event counts until the driver's own value changes.
struct ReportedValues {
  private var values: [ControlID: (reported: Int64, own: Int64?)] = [:]

  mutating func note(_ value: Int64, of control: ControlID) { values[control] = (value, nil) }

  /// Replaces the values of a reading.
  mutating func replace(in reading: inout AdjustmentReading) {
    for (subject, own) in reading.values {
      guard let noted = values[subject.control] else { continue }
      if noted.own ?? own == own {
        values[subject.control] = (noted.reported, own)
        reading.values[subject] = noted.reported
      } else {
        values[subject.control] = nil
      }
    }
  }
}

extension AdjustmentReading {
  init(of device: borrowing VideoDevice) throws(CallFailure) {
    isFocusing = try device.number(of: .automaticFocusStatus).map {
      $0 & ControlBit.focusIsBusy != 0
    }
    for subject in CameraAdjustment.Subject.allCases where subject != .focus || isFocusing == nil {
      values[subject] = try device.choice(of: subject.control)?.number
    }
  }
}

/// Detects the start and the end of adjustments in a series of readings.
struct AdjustmentDetector {
  /// The number of consecutive unchanged readings after which an adjustment has ended.
  private static let quietCount = 3

  private struct Track {
    var last: Int64?
    var unchangedCount = 0
    var isAdjusting = false
  }
  private var tracks: [CameraAdjustment.Subject: Track] = [:]

  /// Returns the adjustments that start or end with this reading.
  mutating func see(_ reading: AdjustmentReading) -> [CameraAdjustment] {
    CameraAdjustment.Subject.allCases.compactMap { subject in
      if subject == .focus, let isFocusing = reading.isFocusing {
        return report(isFocusing, of: subject)
      }
      return note(reading.values[subject], of: subject)
    }
  }

  private mutating func note(
    _ value: Int64?, of subject: CameraAdjustment.Subject
  ) -> CameraAdjustment? {
    guard let value else {
      // The camera does not choose the value any more, so an adjustment of it is over.
      defer { tracks[subject] = nil }
      return report(false, of: subject)
    }
    var track = tracks[subject, default: Track()]
    let hasChanged = track.last.map { $0 != value } ?? false
    track.unchangedCount = hasChanged ? 0 : track.unchangedCount + 1
    track.last = value
    tracks[subject] = track
    if hasChanged { return report(true, of: subject) }
    return track.unchangedCount < Self.quietCount ? nil : report(false, of: subject)
  }

  private mutating func report(
    _ isAdjusting: Bool, of subject: CameraAdjustment.Subject
  ) -> CameraAdjustment? {
    let wasAdjusting = tracks[subject]?.isAdjusting ?? false
    tracks[subject, default: Track()].isAdjusting = isAdjusting
    guard wasAdjusting != isAdjusting else { return nil }
    return CameraAdjustment(subject: subject, isAdjusting: isAdjusting)
  }
}

/// The adjustments that events and readings of the automatic values show.
private struct AdjustmentWatch {
  private var detector = AdjustmentDetector()
  private var reported = ReportedValues()

  /// The adjustments that start or end with an event, or with a reading without one.
  mutating func see(
    _ event: DeviceEvent?, of device: borrowing VideoDevice
  ) throws(CallFailure) -> [CameraAdjustment] {
    if case .control(let change) = event?.kind, change.changesValue, let value = change.value {
      reported.note(value, of: change.id)
    }
    var reading = try AdjustmentReading(of: device)
    reported.replace(in: &reading)
    return detector.see(reading)
  }
}
