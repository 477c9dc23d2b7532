// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
package import OvercrankMediaCore

/// An asynchronous event of a device: `V4L2_EVENT_…`.
package struct DeviceEvent: Hashable, Sendable {
  /// The kind of event.
  package enum Kind: Hashable, Sendable {
    /// The value, flags or range of a control changed.
    case control(ControlChange)
    /// The input signal changed. If `changesResolution` is true, its resolution changed too.
    case sourceChange(changesResolution: Bool)
    /// The stream has ended.
    case endOfStream
    /// An event that was not subscribed to, with its number `V4L2_EVENT_…`.
    case other(UInt32)
  }

  /// The details of a control event.
  package struct ControlChange: Hashable, Sendable {
    package let id: ControlID
    /// The new value, or nil if the value is not a number.
    package let value: Int64?
    package let flags: DeviceControl.Flags
    package let changesValue: Bool
    package let changesFlags: Bool
    package let changesRange: Bool
  }

  package let kind: Kind
  /// The driver's event counter.
  ///
  /// A gap means that events were lost.
  package let sequence: UInt32
  /// The number of further events that wait to be read.
  package let pendingCount: Int
  /// The time of the event, in nanoseconds of the monotonic clock.
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

/// A source of events that can be subscribed to.
package enum DeviceEventSource: Hashable, Sendable {
  /// Changes of a control. If `includesOwn` is true, changes made through the subscribing handle
  /// are included.
  case control(ControlID, includesOwn: Bool = false)
  /// Changes of the input signal.
  case sourceChange
  /// The end of the stream.
  case endOfStream
}

extension VideoDevice {
  /// Subscribes to an event: `VIDIOC_SUBSCRIBE_EVENT`.
  ///
  /// The subscription applies to this handle only. Other handles of the same node have their own
  /// subscriptions.
  ///
  /// - Throws: ``CallFailure`` with the operation `.subscribe`. The kind is `.notSupported` if
  ///   the driver does not support this event, or no events at all.
  package borrowing func subscribe(to source: DeviceEventSource) throws(CallFailure) {
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
    // Drivers without events reject the request with ENOTTY.
    try CallFailure.check(result == -ENOTTY ? -ENOTSUP : result, .subscribe, path)
  }

  /// Returns a pending event, read with one `VIDIOC_DQEVENT`, or nil if there is none or the device
  /// is unplugged.
  borrowing func pendingEvent() -> DeviceEvent? {
    var event = v4l2_event()
    return control(CVideo4Linux_VIDIOC_DQEVENT, &event) < 0 ? nil : DeviceEvent(event)
  }

  /// Waits for the next event: poll(2) for `POLLPRI`, then one `VIDIOC_DQEVENT`.
  ///
  /// - Parameter timeoutMilliseconds: The timeout. 0 does not wait, and a negative value waits
  ///   without limit.
  /// - Returns: The event. Nil after the timeout or a signal.
  /// - Throws: ``CallFailure`` with the operation `.waitForEvent`. The kind is `.unplugged` if
  ///   the device is gone. The code is `EIO` if the driver reports an error without an event.
  package borrowing func nextEvent(timeoutMilliseconds: Int32) throws(CallFailure) -> DeviceEvent? {
    let ready = poll(events: CShort(POLLPRI), milliseconds: timeoutMilliseconds)
    try CallFailure.check(ready, .waitForEvent, path)
    guard ready != 0 else { return nil }
    var event = v4l2_event()
    let result = control(CVideo4Linux_VIDIOC_DQEVENT, &event)
    if result == -ENOENT || result == -EAGAIN {
      // An unplugged device always polls as ready, but has no event. If this call did not throw,
      // the caller would wait again and again without a pause.
      let gone = CInt(POLLHUP) | CInt(POLLNVAL)
      if ready & gone != 0 { throw CallFailure(.waitForEvent, path, code: ENODEV) }
      if ready & CInt(POLLERR) != 0 { throw CallFailure(.waitForEvent, path, code: EIO) }
      return nil
    }
    try CallFailure.check(result, .waitForEvent, path)
    return DeviceEvent(event)
  }
}
