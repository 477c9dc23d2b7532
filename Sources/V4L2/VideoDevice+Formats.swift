// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem

/// A pixel format from the driver's list.
package struct V4L2PixelFormat: Hashable, Sendable {
  /// The index in the driver's list, from 0.
  ///
  /// The list is in the driver's order of preference.
  package let index: UInt32
  /// The code of four characters, the first in the lowest byte.
  ///
  /// Bit 31 marks a big-endian format.
  package let fourcc: UInt32
  /// Whether frames are compressed and vary in size.
  package let isCompressed: Bool
  /// Whether libv4l2 emulates the format by conversion.
  package let isEmulated: Bool
  /// The driver's description of the pixel format.
  package let description: String

  package init(
    index: UInt32, fourcc: UInt32, isCompressed: Bool, isEmulated: Bool, description: String
  ) {
    self.index = index
    self.fourcc = fourcc
    self.isCompressed = isCompressed
    self.isEmulated = isEmulated
    self.description = description
  }
}

/// A frame size in pixels, as reported by the driver.
package struct DriverSize: Hashable, Sendable {
  package let width: UInt32
  package let height: UInt32

  package init(width: UInt32, height: UInt32) {
    self.width = width
    self.height = height
  }
}

/// A fraction as reported by the driver.
///
/// Numerator and denominator may be zero.
package struct DriverFraction: Hashable, Sendable, CustomStringConvertible {
  package let numerator: UInt32
  package let denominator: UInt32

  package init(_ numerator: UInt32, _ denominator: UInt32) {
    self.numerator = numerator
    self.denominator = denominator
  }

  init(_ fraction: v4l2_fract) { self.init(fraction.numerator, fraction.denominator) }

  package var description: String { "\(numerator)/\(denominator)" }
}

/// The frame sizes of a format: `VIDIOC_ENUM_FRAMESIZES`.
package enum DriverSizes: Hashable, Sendable {
  /// A list of sizes. Empty if the driver reports none.
  case discrete([DriverSize])
  /// All sizes from the smallest to the largest in fixed steps.
  case stepwise(smallest: DriverSize, largest: DriverSize, step: DriverSize)
  /// Every size from the smallest to the largest.
  case continuous(smallest: DriverSize, largest: DriverSize)
}

/// The frame durations of a format and size, in seconds: `VIDIOC_ENUM_FRAMEINTERVALS`.
///
/// The shortest duration is the highest frame rate.
package enum DriverIntervals: Hashable, Sendable {
  /// A list of durations. Empty if the driver reports none.
  case discrete([DriverFraction])
  /// All durations from the shortest to the longest in fixed steps.
  case stepwise(shortest: DriverFraction, longest: DriverFraction, step: DriverFraction)
  /// Every duration from the shortest to the longest.
  case continuous(shortest: DriverFraction, longest: DriverFraction)
}

extension VideoDevice {
  /// The greatest number of entries that are read from one of the driver's lists, such as the list
  /// of formats.
  ///
  /// The enumeration of some drivers never ends.
  static let listLimit: UInt32 = 4096

  /// Lists the pixel formats in the driver's order: `VIDIOC_ENUM_FMT`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.listFormats`.
  package borrowing func formats() throws(DeviceError) -> [V4L2PixelFormat] {
    var formats: [V4L2PixelFormat] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_fmtdesc()
      entry.index = index
      entry.type = bufferType
      guard try has(CVideo4Linux_VIDIOC_ENUM_FMT, &entry, .listFormats) else { break }
      formats.append(
        V4L2PixelFormat(
          index: index, fourcc: entry.pixelformat,
          isCompressed: entry.flags & UInt32(V4L2_FMT_FLAG_COMPRESSED) != 0,
          isEmulated: entry.flags & UInt32(V4L2_FMT_FLAG_EMULATED) != 0,
          description: withUnsafeBytes(of: entry.description) { SystemFiles.text($0) }))
    }
    return formats
  }

  /// Lists the sizes of a format: `VIDIOC_ENUM_FRAMESIZES`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.listSizes`. A driver without this list is not
  ///   an error.
  package borrowing func sizes(of fourcc: UInt32) throws(DeviceError) -> DriverSizes {
    var sizes: [DriverSize] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmsizeenum()
      entry.index = index
      entry.pixel_format = fourcc
      guard try has(CVideo4Linux_VIDIOC_ENUM_FRAMESIZES, &entry, .listSizes) else { break }
      if entry.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
        sizes.append(DriverSize(width: entry.discrete.width, height: entry.discrete.height))
        continue
      }
      // The specification allows either one range or a list of sizes. If a list also contains a
      // range, the range is ignored.
      guard sizes.isEmpty else { continue }
      let range = entry.stepwise
      let smallest = DriverSize(width: range.min_width, height: range.min_height)
      let largest = DriverSize(width: range.max_width, height: range.max_height)
      guard entry.type == V4L2_FRMSIZE_TYPE_STEPWISE.rawValue else {
        return .continuous(smallest: smallest, largest: largest)
      }
      return .stepwise(
        smallest: smallest, largest: largest,
        step: DriverSize(width: range.step_width, height: range.step_height))
    }
    return .discrete(sizes)
  }

  /// Lists the frame durations of a format and size: `VIDIOC_ENUM_FRAMEINTERVALS`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.listIntervals`. A driver without this list is
  ///   not an error.
  package borrowing func intervals(
    of fourcc: UInt32, at size: DriverSize
  ) throws(DeviceError) -> DriverIntervals {
    var intervals: [DriverFraction] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmivalenum()
      entry.index = index
      entry.pixel_format = fourcc
      entry.width = size.width
      entry.height = size.height
      guard try has(CVideo4Linux_VIDIOC_ENUM_FRAMEINTERVALS, &entry, .listIntervals) else { break }
      if entry.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue {
        intervals.append(DriverFraction(entry.discrete))
        continue
      }
      guard intervals.isEmpty else { continue }
      let shortest = DriverFraction(entry.stepwise.min)
      let longest = DriverFraction(entry.stepwise.max)
      guard entry.type == V4L2_FRMIVAL_TYPE_STEPWISE.rawValue else {
        return .continuous(shortest: shortest, longest: longest)
      }
      return .stepwise(
        shortest: shortest, longest: longest, step: DriverFraction(entry.stepwise.step))
    }
    return .discrete(intervals)
  }

  /// Reads one entry of a driver's list, such as the list of formats.
  ///
  /// Returns false at the end of the list, or if the driver has no such list.
  borrowing func has<Entry>(
    _ request: UInt, _ entry: inout Entry, _ operation: DeviceError.Operation
  ) throws(DeviceError) -> Bool {
    let result = control(request, &entry)
    switch -result {
    case EINVAL, ENOTTY, ENODATA: return false
    default:
      try DeviceError.check(result, operation, path)
      return true
    }
  }
}
