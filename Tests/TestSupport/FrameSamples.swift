// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV

/// Single samples of frames in the formats of `PixelComponents`.
package enum FrameSamples {
  /// The component of a frame to which a sample belongs.
  package struct Component {
    /// The number of the component: 0 for luma, gray or red.
    package let number: Int
    package let width: Int
    package let height: Int
  }

  /// Makes a frame with the code values that a function returns.
  ///
  /// Codes are truncated to the bits of the format.
  package static func frame(
    width: Int, height: Int, _ format: LibAVPixelFormat,
    code: (_ component: Component, _ x: Int, _ y: Int) -> Int
  ) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    guard let layout = PixelComponents(format) else { return frame }
    for (number, component) in layout.components.enumerated() {
      guard let plane = frame.planeData(component.plane) else { continue }
      let size = layout.size(of: component, width: width, height: height)
      let drawn = Component(number: number, width: size.width, height: size.height)
      for y in 0..<size.height {
        for x in 0..<size.width {
          let at = y * frame.bytesPerRow(component.plane) + x * component.step + component.offset
          let code = code(drawn, x, y)
          plane[at] = UInt8(truncatingIfNeeded: code)
          if layout.bytesPerSample == 2 { plane[at + 1] = UInt8(truncatingIfNeeded: code >> 8) }
        }
      }
    }
    return frame
  }

  /// Returns the code value of a sample; -1 for a format that is not supported.
  package static func code(_ frame: MediaFrame, component number: Int = 0, x: Int, y: Int) -> Int {
    guard let layout = PixelComponents(frame.pixelFormat),
      let plane = frame.planeData(layout.components[number].plane)
    else { return -1 }
    let component = layout.components[number]
    let at = y * frame.bytesPerRow(component.plane) + x * component.step + component.offset
    return Int(plane[at]) | (layout.bytesPerSample == 2 ? Int(plane[at + 1]) << 8 : 0)
  }
}
