// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import TestSupport

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

extension SeededGenerator {
  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(next() % UInt64(elements.count))]
  }
}

/// A driver that answers from a table.
struct TableSource: FormatSource {
  struct Row {
    var fourcc: String
    var sizes: DriverSizes
    var intervals: DriverIntervals
    var isEmulated = false
  }

  var rows: [Row]
  var failure: CallFailure?
  var inForce: VideoSize?
  /// The frame intervals of each size, where they depend on the size.
  var rates: (@Sendable (VideoSize) -> DriverIntervals)?

  func sizeInForce() -> VideoSize? { inForce }

  func formats() -> [V4L2PixelFormat] {
    rows.enumerated().map { index, row in
      V4L2PixelFormat(
        index: UInt32(index), fourcc: FourCC(row.fourcc)?.rawValue ?? 0,
        isCompressed: row.fourcc == "MJPG", isEmulated: row.isEmulated, description: row.fourcc)
    }
  }

  func sizes(of fourcc: UInt32) throws(CallFailure) -> DriverSizes {
    if let failure { throw failure }
    return row(fourcc)?.sizes ?? .discrete([])
  }

  func intervals(of fourcc: UInt32, at size: VideoSize) -> DriverIntervals {
    rates?(size) ?? row(fourcc)?.intervals ?? .discrete([])
  }

  private func row(_ fourcc: UInt32) -> Row? {
    rows.first { FourCC($0.fourcc)?.rawValue == fourcc }
  }
}

extension CaptureFormat {
  /// A format from one line: `640x480@60/yuyv`, or `640x480@1...60/yuyv` for a range.
  static func make(
    _ text: String, order: Int = 0, isEmulated: Bool = false
  ) throws -> CaptureFormat {
    let parts = text.split(separator: "/", maxSplits: 1)
    let size = parts[0].split(separator: "@")[0].split(separator: "x")
    let rates = try parts[0].split(separator: "@")[1].replacing("...", with: "!")
      .split(separator: "!").map { try FrameRate(parsing: String($0.replacing(":", with: "/"))) }
    guard let first = rates.first, let last = rates.last, let width = Int(size[0]),
      let height = Int(size[1]), let fourcc = FourCC(String(parts[1]).uppercased())
    else { throw MediaError(.badMode, text, recovery: "") }
    return CaptureFormat(
      fourcc: fourcc, width: width, height: height, isCompressed: fourcc == .mjpg,
      isEmulated: isEmulated, frameRateRange: FrameRateRange(first, last), driverOrder: order)
  }
}
