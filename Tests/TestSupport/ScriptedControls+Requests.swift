// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankRaster
import OvercrankV4L2

extension ScriptedControls.State {
  /// Answers a request like a kernel driver, with a value or a negative errno.
  mutating func answer(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> CInt {
    if isUnplugged { return -ENODEV }
    switch request {
    case CVideo4Linux_VIDIOC_QUERYCAP:
      argument.assumingMemoryBound(to: v4l2_capability.self).pointee.capabilities =
        UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_STREAMING)
      return 0
    case CVideo4Linux_VIDIOC_QUERY_EXT_CTRL where isModern:
      return describe(&argument.assumingMemoryBound(to: v4l2_query_ext_ctrl.self).pointee)
    case CVideo4Linux_VIDIOC_QUERYCTRL:
      return describe(&argument.assumingMemoryBound(to: v4l2_queryctrl.self).pointee)
    case CVideo4Linux_VIDIOC_QUERYMENU:
      return item(&argument.assumingMemoryBound(to: v4l2_querymenu.self).pointee)
    case CVideo4Linux_VIDIOC_G_EXT_CTRLS where isModern:
      let controls = argument.assumingMemoryBound(to: v4l2_ext_controls.self)
      return each(&controls.pointee) { $0.read(&$1, which: $2) }
    case CVideo4Linux_VIDIOC_S_EXT_CTRLS where isModern:
      let controls = argument.assumingMemoryBound(to: v4l2_ext_controls.self)
      return each(&controls.pointee) { state, entry, _ in state.write(&entry) }
    case CVideo4Linux_VIDIOC_G_CTRL, CVideo4Linux_VIDIOC_S_CTRL:
      let old = argument.assumingMemoryBound(to: v4l2_control.self)
      var entry = v4l2_ext_control()
      entry.id = old.pointee.id
      entry.value = old.pointee.value
      let isWrite = request == CVideo4Linux_VIDIOC_S_CTRL
      let result = isWrite ? write(&entry) : read(&entry, which: 0)
      old.pointee.value = entry.value
      return result
    case CVideo4Linux_VIDIOC_SUBSCRIBE_EVENT:
      let wanted = argument.assumingMemoryBound(to: v4l2_event_subscription.self).pointee
      subscriptions.insert(ControlID(rawValue: wanted.id))
      return 0
    case CVideo4Linux_VIDIOC_DQEVENT:
      guard !events.isEmpty else { return -ENOENT }
      argument.assumingMemoryBound(to: v4l2_event.self).pointee = events.removeFirst()
      return 0
    case CVideo4Linux_VIDIOC_G_PRIORITY:
      argument.assumingMemoryBound(to: UInt32.self).pointee = priority
      return 0
    case CVideo4Linux_VIDIOC_S_PRIORITY:
      if let priorityError { return -priorityError }
      priority = argument.assumingMemoryBound(to: UInt32.self).pointee
      return 0
    default: return -ENOTTY
    }
  }

  private func find(_ id: UInt32) -> Result<DeviceControl, Refusal> {
    let next = UInt32(V4L2_CTRL_FLAG_NEXT_CTRL) | UInt32(V4L2_CTRL_FLAG_NEXT_COMPOUND)
    let number = id & ~next
    let found: DeviceControl?
    if id & next != 0 {
      guard knowsNext else { return .failure(Refusal(code: EINVAL)) }
      found = controls.filter { $0.id.rawValue > number }
        .min { $0.id.rawValue < $1.id.rawValue }
    } else {
      found = controls.first { $0.id.rawValue == number }
    }
    guard let found else { return .failure(Refusal(code: EINVAL)) }
    if let code = queryErrors[found.id] { return .failure(Refusal(code: code)) }
    return .success(found)
  }

  private struct Refusal: Error { let code: Int32 }

  private func describe(_ query: inout v4l2_query_ext_ctrl) -> CInt {
    switch find(query.id) {
    case .failure(let refusal): return -refusal.code
    case .success(let control):
      query.id = control.id.rawValue
      query.type = control.kind.number
      query.minimum = control.minimum
      query.maximum = control.maximum
      query.step = UInt64(clamping: control.step)
      query.default_value = control.defaultValue
      query.flags = control.flags.rawValue
      query.elem_size = UInt32(control.elementSize)
      query.elems = UInt32(control.elementCount)
      query.nr_of_dims = UInt32(control.dimensions.count)
      withUnsafeMutableBytes(of: &query.name) { $0.copyBytes(from: control.name.utf8.prefix(31)) }
      return 0
    }
  }

  private func describe(_ query: inout v4l2_queryctrl) -> CInt {
    switch find(query.id) {
    case .failure(let refusal): return -refusal.code
    case .success(let control):
      query.id = control.id.rawValue
      query.type = control.kind.number
      query.minimum = Int32(truncatingIfNeeded: control.minimum)
      query.maximum = Int32(truncatingIfNeeded: control.maximum)
      query.step = Int32(truncatingIfNeeded: control.step)
      query.default_value = Int32(truncatingIfNeeded: control.defaultValue)
      query.flags = control.flags.rawValue
      withUnsafeMutableBytes(of: &query.name) { $0.copyBytes(from: control.name.utf8.prefix(31)) }
      return 0
    }
  }

  private func item(_ query: inout v4l2_querymenu) -> CInt {
    guard let control = controls.first(where: { $0.id.rawValue == query.id }),
      let item = control.menu.first(where: { $0.index == Int64(query.index) })
    else { return -EINVAL }
    if let number = item.number {
      query.value = number
    } else {
      withUnsafeMutableBytes(of: &query.name) { $0.copyBytes(from: item.name.utf8.prefix(31)) }
    }
    return 0
  }

  private mutating func each(
    _ controls: inout v4l2_ext_controls,
    _ body: (inout Self, inout v4l2_ext_control, _ which: UInt32) -> CInt
  ) -> CInt {
    for position in 0..<Int(controls.count) {
      guard let entry = controls.controls else { return -EFAULT }
      let result = body(&self, &entry[position], controls.which)
      guard result >= 0 else {
        controls.error_idx = UInt32(position)
        return result
      }
    }
    return 0
  }

  private func read(_ entry: inout v4l2_ext_control, which: UInt32) -> CInt {
    let id = ControlID(rawValue: entry.id)
    if let code = readErrors[id] { return -code }
    guard let control = controls.first(where: { $0.id == id }), let value = values[id] else {
      return -EINVAL
    }
    switch value {
    case .number(let number):
      if control.kind == .integer64 {
        entry.value64 = number
      } else {
        entry.value = Int32(truncatingIfNeeded: number)
      }
    case .rectangle(let rectangle):
      guard which == 0 || which == CVideo4Linux_CTRL_WHICH_MAX_VAL else { return -EINVAL }
      // The maximum rectangle of the control covers the whole sensor.
      let area =
        which == 0
        ? v4l2_rect(
          left: Int32(rectangle.x), top: Int32(rectangle.y), width: UInt32(rectangle.width),
          height: UInt32(rectangle.height)) : v4l2_rect(left: 0, top: 0, width: 1280, height: 720)
      entry.ptr.assumingMemoryBound(to: v4l2_rect.self).pointee = area
    case .text(let text):
      let bytes = Array(text.utf8) + [0]
      guard Int(entry.size) >= bytes.count else {
        entry.size = UInt32(bytes.count)
        return -ENOSPC
      }
      entry.ptr.copyMemory(from: bytes, byteCount: bytes.count)
    case .numbers(let numbers):
      for (position, number) in numbers.enumerated() {
        entry.p_u8[position] = UInt8(truncatingIfNeeded: number)
      }
    case .bytes: return -EINVAL
    }
    return 0
  }

  private mutating func write(_ entry: inout v4l2_ext_control) -> CInt {
    let id = ControlID(rawValue: entry.id)
    guard let control = controls.first(where: { $0.id == id }) else { return -EINVAL }
    if let code = writeErrors[id] { return -code }
    if control.flags.contains(.readOnly) { return -EACCES }
    if control.flags.contains(.grabbed) { return -EBUSY }
    let value: ControlValue
    switch control.kind {
    case .rectangle:
      let area = entry.ptr.assumingMemoryBound(to: v4l2_rect.self).pointee
      value = .rectangle(
        PixelRect(
          x: Int(area.left), y: Int(area.top), width: Int(area.width), height: Int(area.height)))
    case .text: value = .text(String(cString: entry.string))
    case .unsigned8:
      value = .numbers((0..<control.elementCount).map { Int64(entry.p_u8[$0]) })
    case .integer64: value = .number(entry.value64)
    default:
      // Like the kernel, integers are clamped without an error.
      let number = control.kind == .button ? 0 : control.nearestValue(to: Int64(entry.value))
      entry.value = Int32(truncatingIfNeeded: number)
      value = .number(number)
    }
    if control.kind != .button { values[id] = value }
    let write = ScriptedControls.Write(id, value)
    writes.append(write)
    onWrite?(write, &self)
    return 0
  }
}

extension DeviceControl.Kind {
  /// The `V4L2_CTRL_TYPE_…` of this kind of control.
  fileprivate var number: UInt32 {
    switch self {
    case .integer: V4L2_CTRL_TYPE_INTEGER.rawValue
    case .boolean: V4L2_CTRL_TYPE_BOOLEAN.rawValue
    case .menu: V4L2_CTRL_TYPE_MENU.rawValue
    case .button: V4L2_CTRL_TYPE_BUTTON.rawValue
    case .integer64: V4L2_CTRL_TYPE_INTEGER64.rawValue
    case .heading: V4L2_CTRL_TYPE_CTRL_CLASS.rawValue
    case .text: V4L2_CTRL_TYPE_STRING.rawValue
    case .bitmask: V4L2_CTRL_TYPE_BITMASK.rawValue
    case .integerMenu: V4L2_CTRL_TYPE_INTEGER_MENU.rawValue
    case .unsigned8: V4L2_CTRL_TYPE_U8.rawValue
    case .unsigned16: V4L2_CTRL_TYPE_U16.rawValue
    case .unsigned32: V4L2_CTRL_TYPE_U32.rawValue
    case .area: V4L2_CTRL_TYPE_AREA.rawValue
    case .rectangle: UInt32(CVideo4Linux_CTRL_TYPE_RECT)
    case .other(let number): number
    }
  }
}
