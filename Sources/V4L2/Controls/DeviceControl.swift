// SPDX-License-Identifier: Apache-2.0
import CVideo4Linux

/// A control of a camera as its driver describes it: `VIDIOC_QUERY_EXT_CTRL`.
package struct DeviceControl: Hashable, Sendable {
  /// What a control's value is.
  package enum Kind: Hashable, Sendable {
    case integer
    case boolean
    /// One of a list, which may have holes; the items by their value.
    case menu([Int64: String])
    case button
    case bitmask
    case string
    /// A heading over other controls.
    case heading
    /// Anything else, by the driver's number for it.
    case other(UInt32)
  }

  /// The `V4L2_CID_…`.
  package let id: UInt32
  /// The driver's name of it, for people.
  package let name: String
  package let kind: Kind
  package let minimum: Int64
  package let maximum: Int64
  package let step: Int64
  package let defaultValue: Int64
  /// The `V4L2_CTRL_FLAG_…`.
  package let flags: UInt32

  /// Whether the control can be set at all, be it inactive now or not.
  package var isWritable: Bool {
    flags & UInt32(V4L2_CTRL_FLAG_DISABLED | V4L2_CTRL_FLAG_READ_ONLY) == 0
  }
}

/// What of a device's driver controls are asked of and set through: the device itself, or the
/// queue that has taken it over.
package protocol ControlChannel: ~Copyable {
  /// The node, which errors name.
  var path: String { get }

  /// Makes a request, and answers with a value or a negative errno.
  borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt
}

extension VideoDevice: ControlChannel {}

extension ControlChannel where Self: ~Copyable {
  /// Describes one control, or nil where the device has none such.
  ///
  /// - Throws: ``DeviceError`` for `.listControls`.
  package borrowing func describeControl(_ id: UInt32) throws(DeviceError) -> DeviceControl? {
    var query = v4l2_query_ext_ctrl()
    query.id = id
    let result = control(CVideo4Linux_VIDIOC_QUERY_EXT_CTRL, &query)
    if result == -EINVAL || result == -ENOTTY { return nil }
    try DeviceError.check(result, .listControls, path)
    return DeviceControl(
      id: query.id, name: withUnsafeBytes(of: query.name) { SystemFiles.text($0) },
      kind: try kind(of: query), minimum: query.minimum, maximum: query.maximum,
      step: max(1, Int64(clamping: query.step)), defaultValue: query.default_value,
      flags: query.flags)
  }

  private borrowing func kind(
    of query: v4l2_query_ext_ctrl
  ) throws(DeviceError) -> DeviceControl.Kind {
    switch query.type {
    case V4L2_CTRL_TYPE_INTEGER.rawValue, V4L2_CTRL_TYPE_INTEGER64.rawValue: return .integer
    case V4L2_CTRL_TYPE_BOOLEAN.rawValue: return .boolean
    case V4L2_CTRL_TYPE_BUTTON.rawValue: return .button
    case V4L2_CTRL_TYPE_BITMASK.rawValue: return .bitmask
    case V4L2_CTRL_TYPE_STRING.rawValue: return .string
    case V4L2_CTRL_TYPE_CTRL_CLASS.rawValue: return .heading
    case V4L2_CTRL_TYPE_MENU.rawValue, V4L2_CTRL_TYPE_INTEGER_MENU.rawValue:
      return .menu(try menuItems(of: query))
    default: return .other(query.type)
    }
  }

  /// The items of a menu; a driver may leave some out, and answers EINVAL for those.
  private borrowing func menuItems(
    of query: v4l2_query_ext_ctrl
  ) throws(DeviceError) -> [Int64: String] {
    var items: [Int64: String] = [:]
    // No menu is longer than the bits of its mask; a driver that says so is not believed.
    let first = max(0, query.minimum)
    for index in first..<max(first, min(query.maximum, first + 63) + 1) {
      var item = v4l2_querymenu()
      item.id = query.id
      item.index = UInt32(clamping: index)
      let result = control(CVideo4Linux_VIDIOC_QUERYMENU, &item)
      if result == -EINVAL { continue }
      try DeviceError.check(result, .listControls, path)
      items[index] =
        query.type == V4L2_CTRL_TYPE_INTEGER_MENU.rawValue
        ? String(item.value) : withUnsafeBytes(of: item.name) { SystemFiles.text($0) }
    }
    return items
  }

  /// Reads a number: `VIDIOC_G_EXT_CTRLS`.
  ///
  /// - Throws: ``DeviceError`` for `.readControl`.
  package borrowing func controlValue(_ id: UInt32) throws(DeviceError) -> Int64 {
    var control = v4l2_ext_control()
    control.id = id
    try exchange(CVideo4Linux_VIDIOC_G_EXT_CTRLS, &control, .readControl)
    return try isWide(id) ? control.value64 : Int64(control.value)
  }

  /// Sets a number: `VIDIOC_S_EXT_CTRLS`.
  ///
  /// - Throws: ``DeviceError`` for `.setControl`: `ERANGE` or `EINVAL` for a value that it does not
  ///   take, `EACCES` for one that is read-only, `EBUSY` while it is grabbed.
  package borrowing func setControl(_ id: UInt32, to value: Int64) throws(DeviceError) {
    var control = v4l2_ext_control()
    control.id = id
    if try isWide(id) {
      control.value64 = value
    } else {
      guard let narrow = Int32(exactly: value) else {
        throw DeviceError(.setControl, path, code: ERANGE)
      }
      control.value = narrow
    }
    try exchange(CVideo4Linux_VIDIOC_S_EXT_CTRLS, &control, .setControl)
  }

  private borrowing func isWide(_ id: UInt32) throws(DeviceError) -> Bool {
    var query = v4l2_query_ext_ctrl()
    query.id = id
    try DeviceError.check(
      control(CVideo4Linux_VIDIOC_QUERY_EXT_CTRL, &query), .readControl, path)
    return query.type == V4L2_CTRL_TYPE_INTEGER64.rawValue
  }

  private borrowing func exchange(
    _ request: UInt, _ control: inout v4l2_ext_control, _ operation: DeviceError.Operation
  ) throws(DeviceError) {
    let result = withUnsafeMutablePointer(to: &control) { pointer in
      var controls = v4l2_ext_controls()
      controls.which = UInt32(V4L2_CTRL_WHICH_CUR_VAL)
      controls.count = 1
      controls.controls = pointer
      return self.control(request, &controls)
    }
    try DeviceError.check(result, operation, path)
  }
}
