// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The sample values of colors in a pixel format, and functions that draw with them.
struct PixelCodes: Sendable {
  let layout: PixelComponents
  private let black: Double
  private let span: Double
  private let chromaSpan: Double
  private let transfer: TransferFunction

  /// Prepares to draw into frames of a pixel format.
  ///
  /// Returns nil for a pixel format that `PixelComponents` does not support.
  init?(pixelFormat: LibAVPixelFormat, isFullRange: Bool, _ transfer: TransferFunction) {
    guard let layout = PixelComponents(pixelFormat) else { return nil }
    self.layout = layout
    self.transfer = transfer
    let codes = Double(1 << layout.depth)
    black = layout.black(isFullRange: isFullRange)
    (span, chromaSpan) =
      isFullRange || layout.isRGB
      ? (codes - 1, codes - 1) : (219 * codes / 256, 224 * codes / 256)
  }

  /// Returns the sample value of a color for one component, not rounded.
  ///
  /// Red, green and blue are nonlinear signals from 0 to 1. An alpha component is opaque.
  func code(_ component: Int, red: Double, green: Double, blue: Double) -> Double {
    let (kr, kb) = (transfer.red, transfer.blue)
    let luma = kr * red + (1 - kr - kb) * green + kb * blue
    let middle = layout.colorlessChroma
    return switch component {
    case 0: black + span * (layout.isRGB ? red : luma)
    case 1 where layout.components.count < 3: Double((1 << layout.depth) - 1)
    case 1: layout.isRGB ? black + span * green : middle + chromaSpan * (blue - luma) / (2 - 2 * kb)
    case 2: layout.isRGB ? black + span * blue : middle + chromaSpan * (red - luma) / (2 - 2 * kr)
    default: Double((1 << layout.depth) - 1)
    }
  }

  /// Fills the part of a rectangle that lies inside the frame with black.
  func fillBlack(x: Range<Int>, y: Range<Int>, on frame: MediaFrame) {
    let x = x.clamped(to: 0..<frame.width)
    let y = y.clamped(to: 0..<frame.height)
    for (number, component) in layout.components.enumerated() {
      let code = code(number, red: 0, green: 0, blue: 0)
      let shift = component.isSubsampled ? layout.chromaShift : (0, 0)
      let size = layout.size(of: component, width: frame.width, height: frame.height)
      let columns = x.lowerBound >> shift.0..<(x.upperBound + (1 << shift.0) - 1) >> shift.0
      let rows = y.lowerBound >> shift.1..<(y.upperBound + (1 << shift.1) - 1) >> shift.1
      for row in rows.clamped(to: 0..<size.height) {
        for column in columns.clamped(to: 0..<size.width) {
          write(code, component, column, row, frame)
        }
      }
    }
  }

  /// Blends white into a black pixel, by changing only luma, or red, green and blue.
  func mixWhite(share: Double, x: Int, y: Int, on frame: MediaFrame) {
    guard x < frame.width, y < frame.height else { return }
    for (number, component) in layout.components.enumerated() {
      if !layout.isRGB, number > 0 { return }
      mix(code(number, red: 1, green: 1, blue: 1), share: share, component, x, y, frame)
    }
  }

  /// Blends a value into a sample.
  ///
  /// A `share` of 1 replaces the sample.
  func mix(
    _ code: Double, share: Double, _ component: PixelComponents.Component, _ column: Int,
    _ row: Int, _ frame: MediaFrame
  ) {
    guard share > 0, let plane = frame.planeData(component.plane) else { return }
    let at = row * frame.bytesPerRow(component.plane) + component.offset + column * component.step
    let mask = (1 << layout.depth) - 1
    let old = (Int(plane[at]) | (layout.bytesPerSample == 2 ? Int(plane[at + 1]) << 8 : 0)) & mask
    write(Double(old) + (code - Double(old)) * share, component, column, row, frame)
  }

  private func write(
    _ code: Double, _ component: PixelComponents.Component, _ column: Int, _ row: Int,
    _ frame: MediaFrame
  ) {
    guard let plane = frame.planeData(component.plane) else { return }
    let at = row * frame.bytesPerRow(component.plane) + component.offset + column * component.step
    let stored = UInt16(min(max(code.rounded(), 0), Double((1 << layout.depth) - 1)))
    plane[at] = UInt8(truncatingIfNeeded: stored)
    if layout.bytesPerSample == 2 { plane[at + 1] = UInt8(stored >> 8) }
  }
}
