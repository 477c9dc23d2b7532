// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Access to the controls of a device, through the device itself or the queue that owns it.
package protocol ControlChannel: ~Copyable {
  /// The path of the device node, for error messages.
  var path: String { get }

  /// Makes an ioctl request. Returns its value, or a negative errno on failure.
  borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt
}

extension VideoDevice: ControlChannel {}

/// The greatest number of controls to list.
///
/// The enumeration of some drivers never ends.
private let controlLimit = 4096
/// The greatest number of menu items to query.
///
/// Some drivers report a false maximum.
private let menuLimit: Int64 = 1024

extension ControlChannel where Self: ~Copyable {
  /// Lists the controls in ID order, including class headings and disabled controls.
  ///
  /// The requests are `VIDIOC_QUERY_EXT_CTRL` (`VIDIOC_QUERYCTRL` for older drivers) and
  /// `VIDIOC_QUERYMENU`. If the description of a control cannot be read, the control is left out,
  /// and the well-known controls with higher IDs are queried one by one.
  ///
  /// - Returns: The controls. Empty for a device without controls.
  /// - Throws: ``CallFailure`` with the operation `.listControls`. The kind is `.unplugged` or,
  ///   if no control could be described, the reason of the driver's error.
  package borrowing func controls() throws(CallFailure) -> [DeviceControl] {
    var controls: [DeviceControl] = []
    var last: UInt32 = 0
    let next = UInt32(V4L2_CTRL_FLAG_NEXT_CTRL) | UInt32(V4L2_CTRL_FLAG_NEXT_COMPOUND)
    while controls.count < controlLimit {
      let answer = describe(last | next)
      switch answer {
      case .success(let control):
        // If the driver returns an ID that is not above the previous one, the enumeration stops
        // here. Otherwise it might never end.
        guard control.id.rawValue > last else { return controls }
        controls.append(try withMenu(control))
        last = control.id.rawValue
      case .failure(let error) where error.number == EINVAL:
        // `EINVAL` marks the end of the list. At the first request, `EINVAL` comes from an old
        // driver that does not know `V4L2_CTRL_FLAG_NEXT_CTRL`.
        return last == 0 ? try wellKnownControls(above: 0, after: nil) : controls
      case .failure(let error) where error.number == ENOTTY && last == 0: return []
      case .failure(let error):
        return controls + (try wellKnownControls(above: last, after: error))
      }
    }
    return controls
  }

  /// Describes one control with its menu: `VIDIOC_QUERY_EXT_CTRL`, `VIDIOC_QUERYMENU`.
  ///
  /// - Returns: The control, or nil if the device lacks it or has disabled it.
  /// - Throws: ``CallFailure`` with the operation `.readControl`. The kind is `.unplugged` if the
  ///   device is gone. The code is `EIO` if the camera fails.
  package borrowing func control(_ id: ControlID) throws(CallFailure) -> DeviceControl? {
    guard let control = try controlWithoutMenu(id) else { return nil }
    return try withMenu(control)
  }

  /// Describes one control without querying its menu items.
  borrowing func controlWithoutMenu(_ id: ControlID) throws(CallFailure) -> DeviceControl? {
    do throws(CallFailure) {
      let control = try describe(id.rawValue).get()
      return control.flags.contains(.disabled) ? nil : control
    } catch  where error.number == EINVAL || error.number == ENOTTY {
      return nil
    } catch {
      throw CallFailure(
        failing: .readControl, path, code: error.number, control: id.wellKnownName)
    }
  }

  /// Queries the well-known controls one by one.
  ///
  /// If the driver describes none of them, throws `error`.
  private borrowing func wellKnownControls(
    above last: UInt32, after error: CallFailure?
  ) throws(CallFailure) -> [DeviceControl] {
    if let error, error.kind == .unplugged { throw error }
    var controls: [DeviceControl] = []
    for id in ControlID.wellKnown where id.rawValue > last {
      guard case .success(let control) = describe(id.rawValue) else { continue }
      controls.append(try withMenu(control))
    }
    if let error, last == 0, controls.isEmpty { throw error }
    return controls
  }

  /// Queries the description of the control with an ID or, depending on its flags, of the next
  /// control.
  private borrowing func describe(_ id: UInt32) -> Result<DeviceControl, CallFailure> {
    var query = v4l2_query_ext_ctrl()
    query.id = id
    let result = control(CVideo4Linux_VIDIOC_QUERY_EXT_CTRL, &query)
    if result >= 0 { return .success(DeviceControl(query)) }
    guard result == -ENOTTY else { return .failure(failure(-result)) }
    var old = v4l2_queryctrl()
    // The old `VIDIOC_QUERYCTRL` does not support compound controls, such as arrays, so the flag
    // that includes them is removed.
    old.id = id & ~UInt32(V4L2_CTRL_FLAG_NEXT_COMPOUND)
    let answer = control(CVideo4Linux_VIDIOC_QUERYCTRL, &old)
    return answer >= 0 ? .success(DeviceControl(old)) : .failure(failure(-answer))
  }

  private borrowing func failure(_ code: Int32) -> CallFailure {
    CallFailure(.listControls, path, code: code)
  }

  /// Adds the menu items to a control.
  ///
  /// Items that the driver rejects are left out.
  private borrowing func withMenu(_ control: DeviceControl) throws(CallFailure) -> DeviceControl {
    guard control.kind.isMenu else { return control }
    let first = max(control.minimum, 0)
    let last = min(control.maximum, first.addingReportingOverflow(menuLimit).partialValue)
    guard first <= last else { return control }
    var described = control
    for index in first...last {
      var item = v4l2_querymenu()
      item.id = control.id.rawValue
      guard let number = UInt32(exactly: index) else { break }
      item.index = number
      let result = self.control(CVideo4Linux_VIDIOC_QUERYMENU, &item)
      if result == -ENODEV { throw CallFailure(.listControls, path, code: ENODEV) }
      guard result >= 0 else { continue }
      if control.kind == .integerMenu {
        let value = item.value
        described.menu.append(
          DeviceControl.MenuItem(index: index, name: String(value), number: value))
      } else {
        let name = withUnsafeBytes(of: item.name) { SystemFiles.text($0) }
        described.menu.append(DeviceControl.MenuItem(index: index, name: name))
      }
    }
    return described
  }
}

extension DeviceControl {
  /// Creates a control from `VIDIOC_QUERY_EXT_CTRL`.
  ///
  /// Numbers that do not fit are clamped.
  init(_ query: v4l2_query_ext_ctrl) {
    let dimensions = withUnsafeBytes(of: query.dims) {
      Array($0.bindMemory(to: UInt32.self).prefix(Int(min(query.nr_of_dims, 4)))).map(Int.init)
    }
    self.init(
      id: ControlID(rawValue: query.id),
      name: withUnsafeBytes(of: query.name) { SystemFiles.text($0) },
      kind: Kind(query.type), minimum: query.minimum, maximum: query.maximum,
      step: Int64(clamping: query.step), defaultValue: query.default_value,
      flags: Flags(rawValue: query.flags), elementSize: Int(query.elem_size),
      elementCount: Int(query.elems), dimensions: dimensions)
  }

  /// Creates a control from the old `VIDIOC_QUERYCTRL`.
  init(_ query: v4l2_queryctrl) {
    let kind = Kind(query.type)
    var flags = Flags(rawValue: query.flags)
    if kind == .text { flags.insert(.hasPayload) }
    // The maximum of a bitmask is unsigned, but the driver reports it in a signed 32-bit field.
    let maximum = kind == .bitmask ? Int64(UInt32(bitPattern: query.maximum)) : Int64(query.maximum)
    self.init(
      id: ControlID(rawValue: query.id),
      name: withUnsafeBytes(of: query.name) { SystemFiles.text($0) },
      kind: kind, minimum: Int64(query.minimum), maximum: maximum, step: Int64(query.step),
      defaultValue: Int64(query.default_value), flags: flags,
      elementSize: kind == .text ? Int(max(query.maximum, 0)) + 1 : 4)
  }
}
