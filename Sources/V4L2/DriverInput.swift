// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem
package import OvercrankMediaCore

/// A video input (connector) of a device, as described by the driver.
package struct DriverInput: Hashable, Sendable {
  /// The type of input.
  package enum Kind: Hashable, Sendable {
    case tuner, camera, touch
    /// An unknown type.
    case other
  }

  package let index: UInt32
  /// The driver's display name, such as `HDMI 0`.
  package let name: String
  package let kind: Kind
  /// The current status flags, `V4L2_IN_ST_…`.
  ///
  /// They are valid only for the current input.
  package let status: UInt32
  /// Whether the input uses DV timings, as HDMI does.
  package let hasTimings: Bool
  /// Whether the input uses an analog TV standard.
  package let hasStandards: Bool

  init(_ answer: v4l2_input) {
    index = answer.index
    name = withUnsafeBytes(of: answer.name) { SystemFiles.text($0) }
    kind =
      switch answer.type {
      case UInt32(V4L2_INPUT_TYPE_TUNER): .tuner
      case UInt32(V4L2_INPUT_TYPE_CAMERA): .camera
      case UInt32(V4L2_INPUT_TYPE_TOUCH): .touch
      default: .other
      }
    status = answer.status
    hasTimings = answer.capabilities & UInt32(V4L2_IN_CAP_DV_TIMINGS) != 0
    hasStandards = answer.capabilities & UInt32(V4L2_IN_CAP_STD) != 0
  }

  /// Whether a `V4L2_IN_ST_…` flag is set.
  private func has(_ flag: some BinaryInteger) -> Bool {
    status & UInt32(truncatingIfNeeded: flag) != 0
  }

  /// Whether the attached device has no power.
  package var hasNoPower: Bool { has(V4L2_IN_ST_NO_POWER) }
  /// Whether the input has no signal.
  package var hasNoSignal: Bool { has(V4L2_IN_ST_NO_SIGNAL) }
  /// Whether the signal has no color.
  package var hasNoColor: Bool { has(V4L2_IN_ST_NO_COLOR) }
  /// Whether the device cannot synchronize to the input signal.
  package var hasNoLock: Bool {
    has(V4L2_IN_ST_NO_H_LOCK) || has(V4L2_IN_ST_NO_V_LOCK) || has(V4L2_IN_ST_NO_SYNC)
      || has(V4L2_IN_ST_NO_CARRIER)
  }
  /// Whether the signal is copy-protected or encrypted without a key.
  package var isProtected: Bool {
    has(V4L2_IN_ST_MACROVISION) || has(V4L2_IN_ST_NO_ACCESS)
  }
}

/// The line system of a TV standard.
package enum TelevisionLines: Hashable, Sendable {
  /// 525 lines at 30000/1001 frames per second, 480 of them visible: NTSC, PAL-M.
  case lines525
  /// 625 lines at 25 frames per second, 576 of them visible: PAL, SECAM.
  case lines625
}

extension VideoDevice {
  /// Lists the inputs: `VIDIOC_ENUMINPUT`.
  ///
  /// - Returns: The inputs. Empty for a driver without input selection.
  /// - Throws: ``CallFailure`` with the operation `.listInputs`.
  package borrowing func inputs() throws(CallFailure) -> [DriverInput] {
    var inputs: [DriverInput] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_input()
      entry.index = index
      guard try has(CVideo4Linux_VIDIOC_ENUMINPUT, &entry, .listInputs) else { break }
      // Some drivers overwrite the index of the entry, so it is set again.
      entry.index = index
      inputs.append(DriverInput(entry))
    }
    return inputs
  }

  /// Reads the current input: `VIDIOC_G_INPUT`.
  ///
  /// - Returns: The input's index, or nil for a driver without input selection.
  /// - Throws: ``CallFailure`` with the operation `.readInput`.
  package borrowing func currentInput() throws(CallFailure) -> UInt32? {
    var index: CInt = 0
    guard try has(CVideo4Linux_VIDIOC_G_INPUT, &index, .readInput) else { return nil }
    return UInt32(exactly: index)
  }

  /// Selects an input: `VIDIOC_S_INPUT`.
  ///
  /// The driver may change the format.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setInput`. The kind is `.busy` while another
  ///   program streams.
  package mutating func setInput(_ index: UInt32) throws(CallFailure) {
    var index = CInt(clamping: index)
    try CallFailure.check(control(CVideo4Linux_VIDIOC_S_INPUT, &index), .setInput, path)
  }

  /// Reads the line system of the current TV standard: `VIDIOC_G_STD`.
  ///
  /// - Returns: The line system, or nil if the input has no standard or an ambiguous one.
  /// - Throws: ``CallFailure`` with the operation `.readTimings`.
  package borrowing func televisionLines() throws(CallFailure) -> TelevisionLines? {
    // This is `V4L2_STD_525_60` (PAL-M, PAL-60 and all NTSC). Swift does not import it, because the
    // macro contains casts.
    let with525Lines: UInt64 = 0x0000_F900
    var standard: UInt64 = 0
    guard try has(CVideo4Linux_VIDIOC_G_STD, &standard, .readTimings), standard != 0 else {
      return nil
    }
    if standard & with525Lines == 0 { return .lines625 }
    return standard & ~with525Lines == 0 ? .lines525 : nil
  }
}
