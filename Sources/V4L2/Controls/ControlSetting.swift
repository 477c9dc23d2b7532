// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
package import OvercrankMediaCore

/// A control with a value to set.
package struct ControlSetting: Hashable, Sendable {
  package let control: DeviceControl
  package let value: ControlValue

  package init(_ control: DeviceControl, to value: ControlValue) {
    (self.control, self.value) = (control, value)
  }
}

/// Selects which of a control's values a request reads: `V4L2_CTRL_WHICH_…`.
package enum ControlValueKind: Sendable {
  case current
  case `default`
  /// The minimum of a compound control. Older kernels cannot read it.
  case minimum
  /// The maximum of a compound control. Older kernels cannot read it.
  case maximum

  fileprivate var which: UInt32 {
    switch self {
    case .current: UInt32(V4L2_CTRL_WHICH_CUR_VAL)
    case .default: UInt32(V4L2_CTRL_WHICH_DEF_VAL)
    case .minimum: UInt32(CVideo4Linux_CTRL_WHICH_MIN_VAL)
    case .maximum: UInt32(CVideo4Linux_CTRL_WHICH_MAX_VAL)
    }
  }
}

/// The greatest accepted size of a control's value in bytes.
///
/// Some drivers report absurd sizes.
private let payloadLimit = 1 << 20

extension ControlChannel where Self: ~Copyable {
  /// Reads the value of a control: `VIDIOC_G_EXT_CTRLS` (`VIDIOC_G_CTRL` for older drivers).
  ///
  /// - Parameters:
  ///   - control: The control as described by the device.
  ///   - kind: The kind of value to read.
  /// - Returns: The value. Nil for a button, a class heading, or a write-only control.
  /// - Throws: ``CallFailure`` with the operation `.readControl`. The kind is `.notSupported` if
  ///   the control or this kind of value does not exist, or `.unplugged`. The code is `EIO` if the
  ///   camera fails.
  package borrowing func value(
    of control: DeviceControl, _ kind: ControlValueKind = .current
  ) throws(CallFailure) -> ControlValue? {
    guard control.kind != .button, control.kind != .heading, !control.flags.contains(.writeOnly)
    else { return nil }
    guard control.holdsNumber else { return try payload(of: control, kind) }
    var entry = v4l2_ext_control()
    entry.id = control.id.rawValue
    let result = exchange(CVideo4Linux_VIDIOC_G_EXT_CTRLS, which: kind.which, &entry).code
    if result >= 0 { return .number(entry.number(of: control.kind)) }
    guard result == -ENOTTY, kind == .current else {
      throw failure(.readControl, control, code: -result)
    }
    var old = v4l2_control(id: control.id.rawValue, value: 0)
    let answer = self.control(CVideo4Linux_VIDIOC_G_CTRL, &old)
    guard answer >= 0 else { throw failure(.readControl, control, code: -answer) }
    return .number(Int64(old.value))
  }

  /// Reads the number of a control.
  ///
  /// - Returns: The number, or nil if the device lacks the control or its value is not a number.
  /// - Throws: ``CallFailure`` with the operation `.readControl`, as ``value(of:_:)`` does.
  package borrowing func number(of id: ControlID) throws(CallFailure) -> Int64? {
    guard let control = try controlWithoutMenu(id) else { return nil }
    return try value(of: control)?.number
  }

  /// Reads the number of a control that must exist.
  ///
  /// - Throws: ``CallFailure`` with the operation `.readControl`, as ``value(of:_:)`` does.
  package borrowing func requireNumber(of id: ControlID) throws(CallFailure) -> Int64 {
    if let number = try number(of: id) { return number }
    throw CallFailure(.readControl, path, code: ENOTSUP, control: id.wellKnownName)
  }

  /// Sets a control: `VIDIOC_S_EXT_CTRLS` (`VIDIOC_S_CTRL` for older drivers).
  ///
  /// The driver may round or clamp the value, which is not an error. The device may be streaming.
  ///
  /// - Parameters:
  ///   - control: The control as described by the device.
  ///   - value: The value. It is ignored for a button.
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.setControl`. The kind is `.busy` if the
  ///   control is locked or another program has priority, or for example `.outOfRange`, `.readOnly`
  ///   or `.unplugged`. The code is `EIO` if the camera rejects the value.
  @discardableResult
  package borrowing func set(
    _ control: DeviceControl, to value: ControlValue
  ) throws(CallFailure) -> ControlValue {
    if case .number(let number) = value, control.holdsNumber || control.kind == .button {
      var entry = v4l2_ext_control()
      entry.id = control.id.rawValue
      guard entry.put(number, control.kind) else {
        throw failure(.setControl, control, code: ERANGE)
      }
      let result = exchange(CVideo4Linux_VIDIOC_S_EXT_CTRLS, which: 0, &entry).code
      if result >= 0 { return .number(entry.number(of: control.kind)) }
      guard result == -ENOTTY else { throw failure(.setControl, control, code: -result) }
      var old = v4l2_control(id: control.id.rawValue, value: Int32(clamping: number))
      let answer = self.control(CVideo4Linux_VIDIOC_S_CTRL, &old)
      guard answer >= 0 else { throw failure(.setControl, control, code: -answer) }
      return .number(Int64(old.value))
    }
    guard var bytes = value.payload(of: control) else {
      throw failure(.setControl, control, code: ERANGE)
    }
    let result = bytes.withUnsafeMutableBytes { memory in
      var entry = v4l2_ext_control()
      entry.id = control.id.rawValue
      entry.size = UInt32(clamping: memory.count)
      entry.ptr = memory.baseAddress
      return exchange(CVideo4Linux_VIDIOC_S_EXT_CTRLS, which: 0, &entry).code
    }
    guard result >= 0 else { throw failure(.setControl, control, code: -result) }
    return bytes.withUnsafeBytes { ControlValue($0, of: control) }
  }

  /// Sets a control, given by its ID, to a number.
  ///
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` as ``set(_:to:)-(DeviceControl,_)`` does. The reason is
  ///   `.notSupported` if the device lacks the control.
  @discardableResult
  package borrowing func set(_ id: ControlID, to number: Int64) throws(CallFailure) -> Int64 {
    guard let control = try controlWithoutMenu(id) else {
      throw CallFailure(.setControl, path, code: ENOTSUP, control: id.wellKnownName)
    }
    return try set(control, to: .number(number)).number ?? number
  }

  /// Sets several numeric controls in one request, so that the driver can apply them together.
  ///
  /// The request is one `VIDIOC_S_EXT_CTRLS` with `V4L2_CTRL_WHICH_CUR_VAL`.
  ///
  /// - Parameter settings: Controls with numbers, set in this order.
  /// - Throws: ``CallFailure`` with the operation `.setControl`. If the driver reports which
  ///   control it rejected, the error names this control, and the controls before it may have been
  ///   set. If the error names none of several controls, none was set.
  package borrowing func set(_ settings: [ControlSetting]) throws(CallFailure) {
    guard let first = settings.first else { return }
    var entries: [v4l2_ext_control] = []
    for setting in settings {
      var entry = v4l2_ext_control()
      entry.id = setting.control.id.rawValue
      guard let number = setting.value.number, entry.put(number, setting.control.kind) else {
        throw failure(.setControl, setting.control, code: ERANGE)
      }
      entries.append(entry)
    }
    let (code, index) = entries.withUnsafeMutableBufferPointer {
      exchange(CVideo4Linux_VIDIOC_S_EXT_CTRLS, which: 0, $0)
    }
    if code >= 0 { return }
    if code == -ENOTTY {
      for setting in settings { try set(setting.control, to: setting.value) }
      return
    }
    let named = settings.indices.contains(index) ? settings[index].control.spelledName : nil
    let only = settings.count == 1 ? first.control.spelledName : nil
    throw CallFailure(failing: .setControl, path, code: -code, control: named ?? only)
  }

  /// Reads a value that is not a number.
  ///
  /// Returns nil if the driver reports a size of zero or an absurdly large one.
  private borrowing func payload(
    of control: DeviceControl, _ kind: ControlValueKind
  ) throws(CallFailure) -> ControlValue? {
    let (length, overflow) = control.elementSize.multipliedReportingOverflow(
      by: max(control.elementCount, 1))
    guard !overflow, (1...payloadLimit).contains(length) else { return nil }
    var bytes = [UInt8](repeating: 0, count: length)
    // A string may have become longer since the control was described. The driver then returns
    // `ENOSPC` and the new size, and the request is repeated.
    for _ in 0..<2 {
      var needed = 0
      let result = bytes.withUnsafeMutableBytes { memory in
        var entry = v4l2_ext_control()
        entry.id = control.id.rawValue
        entry.size = UInt32(clamping: memory.count)
        entry.ptr = memory.baseAddress
        let code = exchange(CVideo4Linux_VIDIOC_G_EXT_CTRLS, which: kind.which, &entry).code
        needed = Int(entry.size)
        return code
      }
      if result >= 0 {
        // A dynamic array may be shorter than its buffer. The driver returns the used size.
        let count = control.flags.contains(.dynamicArray) ? min(needed, bytes.count) : bytes.count
        return bytes.withUnsafeBytes { memory in
          ControlValue(UnsafeRawBufferPointer(rebasing: memory.prefix(count)), of: control)
        }
      }
      guard result == -ENOSPC, needed > bytes.count, needed <= payloadLimit else {
        throw failure(.readControl, control, code: -result)
      }
      bytes = [UInt8](repeating: 0, count: needed)
    }
    return nil
  }

  private borrowing func exchange(
    _ request: UInt, which: UInt32, _ entry: inout v4l2_ext_control
  ) -> (code: CInt, index: Int) {
    withUnsafeMutablePointer(to: &entry) {
      exchange(request, which: which, UnsafeMutableBufferPointer(start: $0, count: 1))
    }
  }

  /// Makes a request for several controls.
  ///
  /// If the driver rejects a control, also returns the index of that control.
  private borrowing func exchange(
    _ request: UInt, which: UInt32, _ entries: UnsafeMutableBufferPointer<v4l2_ext_control>
  ) -> (code: CInt, index: Int) {
    var controls = v4l2_ext_controls()
    controls.which = which
    controls.count = UInt32(clamping: entries.count)
    controls.controls = entries.baseAddress
    let code = control(request, &controls)
    return (code, Int(controls.error_idx))
  }

  private borrowing func failure(
    _ operation: VideoOperation, _ control: DeviceControl, code: Int32
  ) -> CallFailure {
    CallFailure(failing: operation, path, code: code, control: control.spelledName)
  }
}

extension v4l2_ext_control {
  /// Stores a control's new number in the field of the structure that belongs to the control's
  /// kind.
  ///
  /// Returns false if the number does not fit.
  fileprivate mutating func put(_ number: Int64, _ kind: DeviceControl.Kind) -> Bool {
    switch kind {
    case .integer64: value64 = number
    case .bitmask:
      // The caller may give the 32 bits of a bitmask as a signed or an unsigned number. Both are
      // accepted.
      let signed = Int32(exactly: number)
      guard let bits = UInt32(exactly: number).map(Int32.init(bitPattern:)) ?? signed else {
        return false
      }
      value = bits
    default:
      guard let small = Int32(exactly: number) else { return false }
      value = small
    }
    return true
  }

  fileprivate func number(of kind: DeviceControl.Kind) -> Int64 {
    switch kind {
    case .integer64: value64
    case .bitmask: Int64(UInt32(bitPattern: value))
    default: Int64(value)
    }
  }
}
