// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc

/// Something that happened to a device without being asked for: `V4L2_EVENT_…`.
package struct DeviceEvent: Hashable, Sendable {
  /// What happened.
  package enum Kind: Hashable, Sendable {
    /// A control has another value, other flags or another range.
    case control(ControlChange)
    /// The signal is another one; its resolution, too, where `changesResolution` says so.
    case sourceChange(changesResolution: Bool)
    /// The stream has no more frames.
    case endOfStream
    /// An event that was not asked for, by its `V4L2_EVENT_…`.
    case other(UInt32)
  }

  /// What an event says about a control.
  package struct ControlChange: Hashable, Sendable {
    package let id: ControlID
    /// The value now, or nil where it is not a number.
    package let value: Int64?
    package let flags: DeviceControl.Flags
    package let changesValue: Bool
    package let changesFlags: Bool
    package let changesRange: Bool
  }

  package let kind: Kind
  /// The driver's count of events; a gap means that some were lost.
  package let sequence: UInt32
  /// How many more wait.
  package let pendingCount: Int
  /// The time, in nanoseconds of the monotonic clock.
  package let nanoseconds: Int64

  init(_ event: v4l2_event) {
    sequence = event.sequence
    pendingCount = Int(event.pending)
    nanoseconds =
      Int64(event.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(event.timestamp.tv_nsec)
    switch event.type {
    case UInt32(V4L2_EVENT_CTRL):
      let change = event.u.ctrl
      let kind = DeviceControl.Kind(change.type)
      let flags = DeviceControl.Flags(rawValue: change.flags)
      let isNumber = kind.isNumber && !flags.contains(.hasPayload)
      let number = kind == .integer64 ? change.value64 : Int64(change.value)
      self.kind = .control(
        ControlChange(
          id: ControlID(rawValue: event.id), value: isNumber ? number : nil, flags: flags,
          changesValue: change.changes & UInt32(V4L2_EVENT_CTRL_CH_VALUE) != 0,
          changesFlags: change.changes & UInt32(V4L2_EVENT_CTRL_CH_FLAGS) != 0,
          changesRange: change.changes & UInt32(V4L2_EVENT_CTRL_CH_RANGE) != 0))
    case UInt32(V4L2_EVENT_SOURCE_CHANGE):
      kind = .sourceChange(
        changesResolution: event.u.src_change.changes & UInt32(V4L2_EVENT_SRC_CH_RESOLUTION) != 0)
    case UInt32(V4L2_EVENT_EOS): kind = .endOfStream
    default: kind = .other(event.type)
    }
  }
}

/// What to be told of.
package enum DeviceEventSource: Hashable, Sendable {
  /// Changes of a control; those by this handle too where `includesOwn` says so.
  case control(ControlID, includesOwn: Bool = false)
  /// Changes of the signal.
  case sourceChange
  /// The end of the stream.
  case endOfStream
}

extension VideoDevice {
  /// Asks to be told of something: `VIDIOC_SUBSCRIBE_EVENT`.
  ///
  /// Events belong to this open handle; another one of the same node has its own.
  ///
  /// - Throws: ``DeviceError`` for `.subscribe`: `.notSupported` where the driver has no such
  ///   event, or no events at all.
  package borrowing func subscribe(to source: DeviceEventSource) throws(DeviceError) {
    var subscription = v4l2_event_subscription()
    switch source {
    case .control(let id, let includesOwn):
      subscription.type = UInt32(V4L2_EVENT_CTRL)
      subscription.id = id.rawValue
      if includesOwn { subscription.flags = UInt32(V4L2_EVENT_SUB_FL_ALLOW_FEEDBACK) }
    case .sourceChange: subscription.type = UInt32(V4L2_EVENT_SOURCE_CHANGE)
    case .endOfStream: subscription.type = UInt32(V4L2_EVENT_EOS)
    }
    let result = control(CVideo4Linux_VIDIOC_SUBSCRIBE_EVENT, &subscription)
    // A driver without events does not know the request at all.
    try DeviceError.check(result == -ENOTTY ? -ENOTSUP : result, .subscribe, path)
  }

  /// Asks to be told of nothing any more: `VIDIOC_UNSUBSCRIBE_EVENT` with `V4L2_EVENT_ALL`.
  ///
  /// - Throws: ``DeviceError`` for `.subscribe`.
  package borrowing func unsubscribeFromAll() throws(DeviceError) {
    var subscription = v4l2_event_subscription()
    subscription.type = UInt32(V4L2_EVENT_ALL)
    try DeviceError.check(
      control(CVideo4Linux_VIDIOC_UNSUBSCRIBE_EVENT, &subscription), .subscribe, path)
  }

  /// The next event, if one is there: one `VIDIOC_DQEVENT`; of a device that is gone, none.
  borrowing func pendingEvent() -> DeviceEvent? {
    var event = v4l2_event()
    return control(CVideo4Linux_VIDIOC_DQEVENT, &event) < 0 ? nil : DeviceEvent(event)
  }

  /// Waits for the next event: poll(2) for `POLLPRI`, then one `VIDIOC_DQEVENT`.
  ///
  /// - Parameter timeoutMilliseconds: The time limit; 0 does not wait, below 0 waits for ever.
  /// - Returns: The event, or nil at the time limit or when a signal ended the wait.
  /// - Throws: ``DeviceError`` for `.waitForEvent`: `.unplugged`; `EIO` when the driver reports
  ///   an error but has no event to tell of.
  package borrowing func nextEvent(timeoutMilliseconds: Int32) throws(DeviceError) -> DeviceEvent? {
    let ready = poll(events: CShort(POLLPRI), milliseconds: timeoutMilliseconds)
    try DeviceError.check(ready, .waitForEvent, path)
    guard ready != 0 else { return nil }
    var event = v4l2_event()
    let result = control(CVideo4Linux_VIDIOC_DQEVENT, &event)
    if result == -ENOENT || result == -EAGAIN {
      // Waiting again at once would spin on a device that is gone.
      let gone = CInt(POLLHUP) | CInt(POLLNVAL)
      if ready & gone != 0 { throw DeviceError(.waitForEvent, path, code: ENODEV) }
      if ready & CInt(POLLERR) != 0 { throw DeviceError(.waitForEvent, path, code: EIO) }
      return nil
    }
    try DeviceError.check(result, .waitForEvent, path)
    return DeviceEvent(event)
  }
}
