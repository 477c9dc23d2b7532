// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Blending in linear light, compared with a computation in double precision for each pixel.
struct FrameBlenderTests {
  /// The code values of every plane by row, without padding.
  private typealias Planes = [[[Int]]]

  private static let formats = [
    "yuv420p", "yuv422p", "yuv444p", "yuvj420p", "gray", "yuv420p10le", "gbrp", "bgr0", "rgb48le",
    "yuva420p", "gbrp12le",
  ]

  @Test(arguments: formats, 0..<5)
  func `Each blended pixel is within one level of the exact mean`(
    name: String, curve: Int
  ) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let layout = try #require(PixelComponents(format))
    let transfer = TransferFunction(
      curve: [.bt709, .sRGB, .power(2.2), .pq, .hlg][curve],
      red: curve == 3 ? 0.2627 : 0.2126, blue: curve == 3 ? 0.0593 : 0.0722)
    let (width, height) = (19, 13)
    let blender = try #require(
      FrameBlender(
        width: width, height: height, pixelFormat: format, isFullRange: format.isFullRange,
        transfer: transfer))
    var random = SeededGenerator(seed: UInt64(curve + 7))
    // Blends twice with the same blender, which must start anew after each blend.
    for shares in [[0.5, 0.25, 0.25], [0.1, 0.9]] as [[Float]] {
      let frames = try shares.map { _ in
        try noiseFrame(format, layout, width, height, &random)
      }
      for (frame, share) in zip(frames, shares) { try blender.add(frame, share: share) }
      let mixed = planes(of: try blender.finish(), layout)
      let expected = reference(
        frames.map { planes(of: $0, layout) }, shares.map(Double.init), layout, width, height,
        format.isFullRange, transfer)
      for (number, plane) in mixed.enumerated() {
        for (y, row) in plane.enumerated() {
          for (x, code) in row.enumerated() {
            let due = expected[number][y][x]
            #expect(abs(Double(code) - due) <= 1, "component \(number) at \(x), \(y)")
          }
        }
      }
    }
  }

  @Test func `A black and a white frame are blended in linear light`() throws {
    let transfer = TransferFunction(curve: .bt709, red: 0.2126, blue: 0.0722)
    let blender = try #require(
      FrameBlender(
        width: 2, height: 2, pixelFormat: .gray8, isFullRange: true, transfer: transfer))
    for level in [0, 255] as [UInt8] {
      let frame = try MediaFrame.video(width: 2, height: 2, pixelFormat: .gray8)
      frame.planeData(0)?.update(repeating: level, count: frame.bytesPerRow(0) * 2)
      try blender.add(frame, share: 0.5)
    }
    // In linear light the result is 1.099 · 0.5^0.45 - 0.099 = 0.7053, code value 180. A blend of
    // code values would give 128.
    #expect(try blender.finish().packedBytes() == [180, 180, 180, 180])
  }

  @Test func `The frame blender refuses to mix pixel formats`() throws {
    let transfer = TransferFunction(curve: .bt709, red: 0.2126, blue: 0.0722)
    let pal8 = try #require(LibAVPixelFormat(named: "pal8"))
    #expect(
      FrameBlender(
        width: 2, height: 2, pixelFormat: pal8, isFullRange: true, transfer: transfer) == nil)
    let blender = try #require(
      FrameBlender(
        width: 2, height: 2, pixelFormat: .gray8, isFullRange: true, transfer: transfer))
    let other = try MediaFrame.video(width: 4, height: 2, pixelFormat: .gray8)
    let error = #expect(throws: MediaError.self) { try blender.add(other, share: 1) }
    #expect(error?.code == .unsupportedFormat)
  }

  // MARK: The definition

  /// Converts each pixel to red, green and blue in linear light, blends them, and converts back.
  private func reference(
    _ frames: [Planes], _ shares: [Double], _ layout: PixelComponents, _ width: Int,
    _ height: Int, _ isFullRange: Bool, _ transfer: TransferFunction
  ) -> [[[Double]]] {
    let maximum = Double((1 << layout.depth) - 1)
    let unit = Double(1 << layout.depth) / 256
    let (black, span, chroma) =
      isFullRange ? (0, maximum, maximum) : (16 * unit, 219 * unit, 224 * unit)
    let middle = Double(1 << (layout.depth - 1))
    func mean(_ value: (Int) -> Double) -> Double {
      let light = shares.indices.reduce(0) { $0 + shares[$1] * transfer.linearize(value($1)) }
      return transfer.encode(light / shares.reduce(0, +))
    }
    func clamp(_ value: Double) -> Double { min(max(value, 0), maximum) }
    var result = frames[0].map { $0.map { $0.map { _ in 0.0 } } }
    let colors = layout.components.count >= 3
    for number in (colors ? 3 : 1)..<max(layout.components.count, colors ? 3 : 1) {
      for y in 0..<height {
        for x in 0..<width {
          result[number][y][x] = shares.indices.reduce(0) {
            $0 + shares[$1] * Double(frames[$1][number][y][x])
          }
        }
      }
    }
    guard colors, !layout.isRGB else {
      for number in 0..<(colors ? 3 : 1) {
        for y in 0..<height {
          for x in 0..<width {
            result[number][y][x] = clamp(
              black + span * mean { (Double(frames[$0][number][y][x]) - black) / span })
          }
        }
      }
      return result
    }
    let (kr, kb) = (transfer.red, transfer.blue)
    let kg = 1 - kr - kb
    let (sx, sy) = layout.chromaShift
    var sums = result[1].map { $0.map { _ in (b: 0.0, r: 0.0, n: 0.0) } }
    for y in 0..<height {
      for x in 0..<width {
        let (cx, cy) = (x >> sx, y >> sy)
        func parts(_ frame: Int) -> (Double, Double, Double) {
          let planes = frames[frame]
          let bright = (Double(planes[0][y][x]) - black) / span
          let cb = (Double(planes[1][cy][cx]) - middle) / chroma
          let cr = (Double(planes[2][cy][cx]) - middle) / chroma
          let red = bright + 2 * (1 - kr) * cr
          let blue = bright + 2 * (1 - kb) * cb
          return (red, (bright - kr * red - kb * blue) / kg, blue)
        }
        let red = mean { parts($0).0 }
        let green = mean { parts($0).1 }
        let blue = mean { parts($0).2 }
        let bright = kr * red + kg * green + kb * blue
        result[0][y][x] = clamp(black + span * bright)
        sums[cy][cx].b += (blue - bright) / (2 * (1 - kb))
        sums[cy][cx].r += (red - bright) / (2 * (1 - kr))
        sums[cy][cx].n += 1
      }
    }
    for (y, row) in sums.enumerated() {
      for (x, sum) in row.enumerated() {
        result[1][y][x] = clamp(middle + chroma * sum.b / sum.n)
        result[2][y][x] = clamp(middle + chroma * sum.r / sum.n)
      }
    }
    return result
  }

  // MARK: Frames

  /// A frame of noise whose colors are mostly inside the display gamut.
  private func noiseFrame(
    _ format: LibAVPixelFormat, _ layout: PixelComponents, _ width: Int, _ height: Int,
    _ random: inout SeededGenerator
  ) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    let codes = 1 << layout.depth
    for (number, component) in layout.components.enumerated() {
      let size = layout.size(of: component, width: width, height: height)
      let isColor = !layout.isRGB && (number == 1 || number == 2)
      let range = isColor ? codes * 3 / 8..<codes * 5 / 8 : codes / 16..<codes * 15 / 16
      guard let plane = frame.planeData(component.plane) else { continue }
      for y in 0..<size.height {
        for x in 0..<size.width {
          let code = Int.random(in: range, using: &random)
          let position =
            y * frame.bytesPerRow(component.plane) + component.offset + x * component.step
          plane[position] = UInt8(truncatingIfNeeded: code)
          if layout.bytesPerSample == 2 { plane[position + 1] = UInt8(code >> 8) }
        }
      }
    }
    return frame
  }

  private func planes(of frame: MediaFrame, _ layout: PixelComponents) -> Planes {
    layout.components.map { component in
      let size = layout.size(of: component, width: frame.width, height: frame.height)
      guard let plane = frame.planeData(component.plane) else { return [] }
      return (0..<size.height).map { y in
        (0..<size.width).map { x in
          let position =
            y * frame.bytesPerRow(component.plane) + component.offset + x * component.step
          let high = layout.bytesPerSample == 2 ? Int(plane[position + 1]) << 8 : 0
          return Int(plane[position]) | high
        }
      }
    }
  }
}
