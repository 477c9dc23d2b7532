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
  /// Waits for 100 ms, the interval between two readings of an automatic value.
  package static let pause: @Sendable () -> Void = {
    MonotonicClock.sleep(untilMicroseconds: MonotonicClock.microseconds() + 100_000)
  }

  /// Whether the lens is moving to focus, or nil where the camera does not report it.
  ///
  /// The source is `V4L2_CID_AUTO_FOCUS_STATUS` or, on the many cameras without it, the lens position
  /// that continuous autofocus chose. The position is read twice, 100 ms apart, and the call waits for
  /// that time. Nil if no reading of the position has differed from an earlier one, because the driver
  /// may not ask the camera for it.
  public var isAdjustingFocus: Bool? {
    get throws(MediaError) {
      if let status = try camera.number(.automaticFocusStatus) {
        return status & ControlBit.focusIsBusy != 0
      }
      return try isChanging(.focus)
    }
  }

  /// Whether automatic exposure is still changing, or nil where the camera does not report the
  /// exposure duration that it chose.
  ///
  /// The duration is read twice, 100 ms apart. The call waits for that time. With a driver that may
  /// answer with an old value, such as `uvcvideo`, it is also nil if no reading has differed from an
  /// earlier one of this object.
  public var isAdjustingExposure: Bool? {
    get throws(MediaError) { try isChanging(.exposureTime) }
  }

  /// Whether automatic white balance is still changing, or nil where the camera does not report the
  /// color temperature that it chose.
  ///
  /// The temperature is read twice, 100 ms apart, with the same restriction as for
  /// ``isAdjustingExposure``. The call waits for that time.
  public var isAdjustingWhiteBalance: Bool? {
    get throws(MediaError) { try isChanging(.whiteBalanceTemperature) }
  }

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
      for id in AdjustmentReading.controls { try? device.subscribe(to: .control(id)) }
      return try AdjustmentReading(of: device)
    }
    guard !reading.isEmpty else {
      throw camera.missing("automatic values that can be read")
    }
    let (stream, continuation) = AsyncStream<Result<CameraAdjustment, MediaError>>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    let watch = AdjustmentWatch(watched, continuation)
    continuation.onTermination = { _ in watch.stop() }
    try BlockingThread.started { watch.run() }.detach()
    return CameraEvents(stream: stream)
  }

  private func isChanging(_ id: ControlID) throws(MediaError) -> Bool? {
    guard let before = try chosen(id) else { return nil }
    let events: ControlledNode? = if before.isVolatile { nil } else { try? changeEvents(of: id) }
    waitForChoice()
    guard let after = try chosen(id) else { return nil }
    let hasChangedBefore = hasChanged(id, [before.number, after.number])
    if before.number != after.number { return true }
    if let events, try events.useOwn({ device throws(CallFailure) in try device.hasEvent(of: id) })
    {
      return true
    }
    return before.isVolatile || hasChangedBefore ? false : nil
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

/// A camera's focus state, automatic exposure duration and automatic color temperature at one time.
///
/// Values that the camera does not report are nil.
struct AdjustmentReading {
  /// The controls whose values are read.
  static let controls: [ControlID] = [.focus, .exposureTime, .whiteBalanceTemperature]

  var isFocusing: Bool?
  /// The lens position, if the camera does not report whether it is focusing.
  var focus: Int64?
  var exposure: Int64?
  var whiteBalance: Int64?

  var isEmpty: Bool {
    isFocusing == nil && focus == nil && exposure == nil && whiteBalance == nil
  }

  /// The controls of the values that an event can report as well.
  fileprivate static var reportedControls: [(ControlID, WritableKeyPath<Self, Int64?>)] {
    [(.focus, \.focus), (.exposureTime, \.exposure), (.whiteBalanceTemperature, \.whiteBalance)]
  }
}

/// The values of control events, which are newer than what a driver keeps.
///
/// An event counts until the driver's own value changes.
struct ReportedValues {
  private var values: [ControlID: (reported: Int64, own: Int64?)] = [:]

  mutating func note(_ value: Int64, of control: ControlID) { values[control] = (value, nil) }

  /// Replaces the values of a reading.
  mutating func replace(in reading: inout AdjustmentReading) {
    for (control, value) in AdjustmentReading.reportedControls {
      guard let own = reading[keyPath: value], let noted = values[control] else { continue }
      if noted.own ?? own == own {
        values[control] = (noted.reported, own)
        reading[keyPath: value] = noted.reported
      } else {
        values[control] = nil
      }
    }
  }
}

extension AdjustmentReading {
  init(of device: borrowing VideoDevice) throws(CallFailure) {
    isFocusing = try device.number(of: .automaticFocusStatus).map {
      $0 & ControlBit.focusIsBusy != 0
    }
    if isFocusing == nil { focus = try device.choice(of: .focus)?.number }
    exposure = try device.choice(of: .exposureTime)?.number
    whiteBalance = try device.choice(of: .whiteBalanceTemperature)?.number
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
    let focus =
      if let isFocusing = reading.isFocusing {
        report(isFocusing, of: .focus)
      } else {
        note(reading.focus, of: .focus)
      }
    let others = [
      note(reading.exposure, of: .exposure), note(reading.whiteBalance, of: .whiteBalance),
    ]
    return ([focus] + others).compactMap(\.self)
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

/// The work of the thread that reads the automatic values.
private final class AdjustmentWatch: Sendable {
  private let node: ControlledNode
  private let continuation: AsyncStream<Result<CameraAdjustment, MediaError>>.Continuation
  private let isStopped = Atomic(false)

  init(
    _ node: ControlledNode,
    _ continuation: AsyncStream<Result<CameraAdjustment, MediaError>>.Continuation
  ) {
    (self.node, self.continuation) = (node, continuation)
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  func run() {
    var detector = AdjustmentDetector()
    var reported = ReportedValues()
    while !isStopped.load(ordering: .relaxed) {
      do throws(MediaError) {
        let reading = try node.useOwn { device throws(CallFailure) in
          // This call throws if the device is unplugged.
          if case .control(let change) = try device.nextEvent(timeoutMilliseconds: 100)?.kind,
            change.changesValue, let value = change.value
          {
            reported.note(value, of: change.id)
          }
          var reading = try AdjustmentReading(of: device)
          reported.replace(in: &reading)
          return reading
        }
        for event in detector.see(reading) { continuation.yield(.success(event)) }
      } catch {
        continuation.yield(.failure(error))
        break
      }
    }
    continuation.finish()
  }
}
