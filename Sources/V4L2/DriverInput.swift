// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem

/// A socket of a device that pictures come in by, as the driver describes it.
package struct DriverInput: Hashable, Sendable {
  /// What pictures come from.
  package enum Kind: Hashable, Sendable {
    case tuner, camera, touch
    /// None that this program knows.
    case other
  }

  package let index: UInt32
  /// The driver's words for people: `HDMI 0`.
  package let name: String
  package let kind: Kind
  /// The `V4L2_IN_ST_…` of now; drivers tell it of the input in force only.
  package let status: UInt32
  /// Whether the input is set up by digital timings, as HDMI is.
  package let hasTimings: Bool
  /// Whether the input is set up by a television standard.
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

  /// Whether one of the `V4L2_IN_ST_…` is set.
  private func has(_ flag: some BinaryInteger) -> Bool {
    status & UInt32(truncatingIfNeeded: flag) != 0
  }

  /// The device behind the input has no power.
  package var hasNoPower: Bool { has(V4L2_IN_ST_NO_POWER) }
  /// Nothing comes in.
  package var hasNoSignal: Bool { has(V4L2_IN_ST_NO_SIGNAL) }
  /// Something comes in, without colour.
  package var hasNoColor: Bool { has(V4L2_IN_ST_NO_COLOR) }
  /// What comes in cannot be locked to.
  package var hasNoLock: Bool {
    has(V4L2_IN_ST_NO_H_LOCK) || has(V4L2_IN_ST_NO_V_LOCK) || has(V4L2_IN_ST_NO_SYNC)
      || has(V4L2_IN_ST_NO_CARRIER)
  }
  /// What comes in is copy-protected, or encrypted without a key for it.
  package var isProtected: Bool {
    has(V4L2_IN_ST_MACROVISION) || has(V4L2_IN_ST_NO_ACCESS)
  }
}

/// How a television standard draws a picture.
package enum TelevisionLines: Hashable, Sendable {
  /// 525 lines at 30000/1001 frames per second, 480 of them seen: NTSC, PAL-M.
  case lines525
  /// 625 lines at 25 frames per second, 576 of them seen: PAL, SECAM.
  case lines625
}

extension VideoDevice {
  /// Lists the inputs: `VIDIOC_ENUMINPUT`.
  ///
  /// - Returns: The inputs; none for a driver that does not tell inputs apart.
  /// - Throws: ``DeviceError`` for `.listInputs`.
  package borrowing func inputs() throws(DeviceError) -> [DriverInput] {
    var inputs: [DriverInput] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_input()
      entry.index = index
      guard try has(CVideo4Linux_VIDIOC_ENUMINPUT, &entry, .listInputs) else { break }
      // The driver may have written another number over ours.
      entry.index = index
      inputs.append(DriverInput(entry))
    }
    return inputs
  }

  /// Reads which input is in force: `VIDIOC_G_INPUT`.
  ///
  /// - Returns: The input's index, or nil for a driver that does not tell inputs apart.
  /// - Throws: ``DeviceError`` for `.readInput`.
  package borrowing func currentInput() throws(DeviceError) -> UInt32? {
    var index: CInt = 0
    guard try has(CVideo4Linux_VIDIOC_G_INPUT, &index, .readInput) else { return nil }
    return UInt32(exactly: index)
  }

  /// Puts an input in force, which may set the format anew: `VIDIOC_S_INPUT`.
  ///
  /// - Throws: ``DeviceError`` for `.setInput`: `.busy` while another program streams.
  package mutating func setInput(_ index: UInt32) throws(DeviceError) {
    var index = CInt(clamping: index)
    try DeviceError.check(control(CVideo4Linux_VIDIOC_S_INPUT, &index), .setInput, path)
  }

  /// Reads the lines of the television standard in force: `VIDIOC_G_STD`.
  ///
  /// - Returns: The lines, or nil where the input has no standard or one that leaves them open.
  /// - Throws: ``DeviceError`` for `.readTimings`.
  package borrowing func televisionLines() throws(DeviceError) -> TelevisionLines? {
    // V4L2_STD_525_60 (PAL-M, PAL-60 and every NTSC): a macro with casts, which Swift does not
    // import.
    let with525Lines: UInt64 = 0x0000_F900
    var standard: UInt64 = 0
    guard try has(CVideo4Linux_VIDIOC_G_STD, &standard, .readTimings), standard != 0 else {
      return nil
    }
    if standard & with525Lines == 0 { return .lines625 }
    return standard & ~with525Lines == 0 ? .lines525 : nil
  }
}
