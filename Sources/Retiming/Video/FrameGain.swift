// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// Multiplies the samples of frames by a gain, to equalize the brightness of frames.
package struct FrameGain: Sendable {
  private let layout: PixelComponents
  /// The code values of black and of colorless chroma.
  private let black: Double
  private let middle: Double

  /// Prepares gains for frames of a pixel format.
  ///
  /// - Returns: Nil for a format that `PixelComponents` does not support.
  package init?(pixelFormat: LibAVPixelFormat, isFullRange: Bool) {
    guard let layout = PixelComponents(pixelFormat) else { return nil }
    self.layout = layout
    black = layout.black(isFullRange: isFullRange)
    middle = layout.colorlessChroma
  }

  /// Returns a brighter or darker copy of a frame, with the same hues and alpha.
  ///
  /// Samples are rounded, and clipped to the code values of the format.
  ///
  /// - Throws: `CallFailure` if memory cannot be allocated.
  package func apply(_ gain: Double, to frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(
      width: frame.width, height: frame.height, pixelFormat: frame.pixelFormat)
    let colorCount = layout.components.count - (layout.hasAlpha ? 1 : 0)
    let brightness = codes(gain, around: black)
    let chroma = layout.isRGB ? brightness : codes(gain, around: middle)
    let alpha = codes(1, around: 0)
    for (number, component) in layout.components.enumerated() {
      let table = number >= colorCount ? alpha : number == 0 ? brightness : chroma
      copy(component, of: frame, to: result, table)
    }
    return result
  }

  /// Returns a table from old to new code values.
  private func codes(_ gain: Double, around zero: Double) -> [UInt16] {
    let count = 1 << layout.depth
    return (0..<count).map {
      let code = (zero + (Double($0) - zero) * gain).rounded()
      return UInt16(min(max(code, 0), Double(count - 1)))
    }
  }

  private func copy(
    _ component: PixelComponents.Component, of frame: MediaFrame, to result: MediaFrame,
    _ table: [UInt16]
  ) {
    guard let source = frame.planeData(component.plane),
      let target = result.planeData(component.plane)
    else { return }
    let size = layout.size(of: component, width: frame.width, height: frame.height)
    let step = component.step
    // Masks the undefined high bits of samples with 9 to 15 bits.
    let mask = table.count - 1
    table.withUnsafeBufferPointer { table in
      for row in 0..<size.height {
        let from = source + row * frame.bytesPerRow(component.plane) + component.offset
        let to = target + row * result.bytesPerRow(component.plane) + component.offset
        if layout.bytesPerSample == 1 {
          for x in 0..<size.width {
            to[x * step] = UInt8(truncatingIfNeeded: table[Int(from[x * step]) & mask])
          }
        } else {
          for x in 0..<size.width {
            let at = x * step
            let code = table[(Int(from[at]) | Int(from[at + 1]) << 8) & mask]
            to[at] = UInt8(truncatingIfNeeded: code)
            to[at + 1] = UInt8(code >> 8)
          }
        }
      }
    }
  }
}
