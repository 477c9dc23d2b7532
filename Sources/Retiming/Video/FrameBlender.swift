// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// A blender that averages frames in linear light, like a camera with an open shutter.
///
/// YCbCr is converted to RGB, linearized, averaged, and converted back. With subsampled chroma, all
/// pixels of a chroma block get the same chroma on input, and their chroma is averaged on output.
/// Alpha is averaged without linearization.
///
/// One lookup table maps signal to light, in steps of 1/16 code value. The other maps light to
/// signal. It is indexed by the fourth root of light, because signal as a function of light is too
/// steep near black for even steps.
package final class FrameBlender {
  private let layout: PixelComponents
  private let format: LibAVPixelFormat
  private let width: Int
  private let height: Int
  private let transfer: TransferFunction
  private let isFullRange: Bool

  /// The table `lights` from signal to linear light, and its scale.
  ///
  /// The table has `steps` entries for signals from 0 to 1. Its first entry is for a signal of
  /// `lowest / steps`.
  private let steps: Int
  private let lowest: Int
  private let lights: [Float]
  /// A table from the fourth root of light to signal, with `rootSteps` entries per unit.
  private let signals: [Float]
  private let rootSteps: Float
  /// Tables for the conversion from YCbCr to RGB: the contribution of each luma or chroma code
  /// value to an RGB signal, in units of 1/`steps`.
  private let brightness: [Int32]
  private let redOfCr: [Int32]
  private let greenOfCr: [Int32]
  private let greenOfCb: [Int32]
  private let blueOfCb: [Int32]

  /// Weighted sums of red, green and blue light (or gray), and alpha, one value per pixel.
  private var sums: [[Float]] = []
  private var total: Float = 0

  /// Creates a blender for frames of one size and format.
  ///
  /// - Returns: Nil for a pixel format whose samples are not whole bytes.
  package init?(
    width: Int, height: Int, pixelFormat: LibAVPixelFormat, isFullRange: Bool,
    transfer: TransferFunction
  ) {
    guard let layout = PixelComponents(pixelFormat) else { return nil }
    self.layout = layout
    format = pixelFormat
    (self.width, self.height, self.transfer) = (width, height, transfer)
    self.isFullRange = isFullRange
    let codes = 1 << layout.depth
    let steps = 1 << min(layout.depth + 4, 17)
    self.steps = steps
    // Code values beyond the limited range and saturated colors give RGB signals outside 0 to 1,
    // but always between -1 and 2.
    lowest = -steps
    let transferOf = transfer
    lights = (-steps...2 * steps).map { Float(transferOf.linearize(Double($0) / Double(steps))) }
    rootSteps = Float(steps)
    let most = Double(lights.last ?? 1).squareRoot().squareRoot()
    signals = (0...Int(most * Double(steps)) + 1).map {
      let root = Double($0) / Double(steps)
      return Float(transferOf.encode(root * root * root * root))
    }
    let scale = Double(codes) / 256
    let (black, span, chromaSpan) =
      isFullRange
      ? (0, Double(codes - 1), Double(codes - 1)) : (16 * scale, 219 * scale, 224 * scale)
    func table(_ factor: Double, from zero: Double, over span: Double) -> [Int32] {
      (0..<codes).map { Int32((factor * (Double($0) - zero) / span * Double(steps)).rounded()) }
    }
    brightness = table(1, from: black, over: span)
    let (red, blue) = (transfer.red, transfer.blue)
    let green = 1 - red - blue
    let middle = Double(codes / 2)
    redOfCr = table(2 * (1 - red), from: middle, over: chromaSpan)
    blueOfCb = table(2 * (1 - blue), from: middle, over: chromaSpan)
    greenOfCr = table(-2 * (1 - red) * red / green, from: middle, over: chromaSpan)
    greenOfCb = table(-2 * (1 - blue) * blue / green, from: middle, over: chromaSpan)
  }

  /// Adds a frame with a weight to the sums.
  ///
  /// - Throws: `MediaError` with `.unsupportedFormat` for a frame of another size or format.
  package func add(_ frame: MediaFrame, share: Float) throws(MediaError) {
    guard frame.width == width, frame.height == height, frame.pixelFormat == format else {
      throw MediaError(
        .unsupportedFormat,
        "a frame of \(frame.width)x\(frame.height) \(frame.pixelFormat.name) cannot be blended "
          + "with frames of \(width)x\(height) \(format.name)")
    }
    if sums.isEmpty {
      sums = Array(
        repeating: [Float](repeating: 0, count: width * height), count: layout.components.count)
    }
    total += share
    let hasColors = layout.components.count >= 3
    let colors = hasColors ? 3 : 1
    var rows = layout.components.map { component in
      [UInt16](repeating: 0, count: layout.size(of: component, width: width, height: height).width)
    }
    for y in 0..<height {
      for (number, component) in layout.components.enumerated() {
        read(component, of: frame, row: y, into: &rows[number])
      }
      let start = y * width
      if hasColors && !layout.isRGB {
        addColors(rows, at: start, share)
      } else {
        for number in 0..<colors { addLight(rows[number], to: number, at: start, share) }
      }
      for number in colors..<rows.count {
        for x in 0..<width { sums[number][start + x] += share * Float(rows[number][x]) }
      }
    }
  }

  /// Returns the weighted mean in a new frame, and resets the sums.
  ///
  /// - Throws: `CallFailure` if memory cannot be allocated.
  package func finish() throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    let hasColors = layout.components.count >= 3
    let scale = 1 / max(total, .leastNormalMagnitude)
    if hasColors && !layout.isRGB {
      writeColors(to: result, scale)
    } else {
      for number in 0..<(hasColors ? 3 : 1) { writeLight(number, to: result, scale) }
    }
    for number in (hasColors ? 3 : 1)..<layout.components.count {
      for y in 0..<height {
        write(layout.components[number], of: result, row: y, width) {
          sums[number][y * width + $0] * scale
        }
      }
    }
    for number in sums.indices {
      sums[number].withUnsafeMutableBufferPointer { $0.update(repeating: 0) }
    }
    total = 0
    return result
  }

  // MARK: Light

  private func addColors(_ rows: [[UInt16]], at start: Int, _ share: Float) {
    let shift = layout.chromaShift.x
    let zero = Int32(-lowest)
    lights.withUnsafeBufferPointer { lights in
      withSums { red, green, blue in
        rows[0].withUnsafeBufferPointer { luma in
          for x in 0..<width {
            let cb = Int(rows[1][x >> shift])
            let cr = Int(rows[2][x >> shift])
            let base = brightness[Int(luma[x])] + zero
            let last = Int32(lights.count - 1)
            let r = min(max(base + redOfCr[cr], 0), last)
            let g = min(max(base + greenOfCr[cr] + greenOfCb[cb], 0), last)
            let b = min(max(base + blueOfCb[cb], 0), last)
            red[start + x] += share * lights[Int(r)]
            green[start + x] += share * lights[Int(g)]
            blue[start + x] += share * lights[Int(b)]
          }
        }
      }
    }
  }

  private func withSums(
    _ body: (
      inout UnsafeMutableBufferPointer<Float>, inout UnsafeMutableBufferPointer<Float>,
      inout UnsafeMutableBufferPointer<Float>
    ) -> Void
  ) {
    var red: [Float] = []
    var green: [Float] = []
    var blue: [Float] = []
    swap(&red, &sums[0])
    swap(&green, &sums[1])
    swap(&blue, &sums[2])
    red.withUnsafeMutableBufferPointer { red in
      green.withUnsafeMutableBufferPointer { green in
        blue.withUnsafeMutableBufferPointer { blue in body(&red, &green, &blue) }
      }
    }
    swap(&red, &sums[0])
    swap(&green, &sums[1])
    swap(&blue, &sums[2])
  }

  private func addLight(_ row: [UInt16], to number: Int, at start: Int, _ share: Float) {
    // In RGB and gray formats, each component has the code range of luma.
    for x in 0..<width {
      let position = Int(brightness[Int(row[x])]) - lowest
      sums[number][start + x] += share * lights[position]
    }
  }

  private func signal(_ light: Float) -> Float {
    let root = light.magnitude.squareRoot().squareRoot() * rootSteps
    let position = min(Int(root), signals.count - 2)
    let signal =
      signals[position] + (signals[position + 1] - signals[position]) * (root - Float(position))
    return light < 0 ? -signal : signal
  }

  private func writeLight(_ number: Int, to result: MediaFrame, _ scale: Float) {
    let (black, span, _) = range
    for y in 0..<height {
      write(layout.components[number], of: result, row: y, width) {
        black + span * signal(sums[number][y * width + $0] * scale)
      }
    }
  }

  private var range: (black: Float, span: Float, chromaSpan: Float) {
    let codes = Float(1 << layout.depth)
    return isFullRange
      ? (0, codes - 1, codes - 1) : (codes / 16, 219 * codes / 256, 224 * codes / 256)
  }

  private func writeColors(to result: MediaFrame, _ scale: Float) {
    let (black, span, chromaSpan) = range
    let (red, blue) = (Float(transfer.red), Float(transfer.blue))
    let green = 1 - red - blue
    let middle = Float(1 << (layout.depth - 1))
    let (shiftX, shiftY) = layout.chromaShift
    let columns = layout.size(of: layout.components[1], width: width, height: height).width
    var bluish = [Float](repeating: 0, count: columns)
    var reddish = [Float](repeating: 0, count: columns)
    var luma = [Float](repeating: 0, count: width)
    for y in 0..<height {
      let start = y * width
      for x in 0..<width {
        let r = signal(sums[0][start + x] * scale)
        let g = signal(sums[1][start + x] * scale)
        let b = signal(sums[2][start + x] * scale)
        let bright = red * r + green * g + blue * b
        luma[x] = black + span * bright
        bluish[x >> shiftX] += (b - bright) / (2 * (1 - blue))
        reddish[x >> shiftX] += (r - bright) / (2 * (1 - red))
      }
      write(layout.components[0], of: result, row: y, width) { luma[$0] }
      let isLast = y == height - 1
      guard isLast || (y + 1) & ((1 << shiftY) - 1) == 0 else { continue }
      let rows = (y & ((1 << shiftY) - 1)) + 1
      for column in 0..<columns {
        // Chroma blocks at the right and bottom edges may have fewer pixels.
        let pixels = min(1 << shiftX, width - column << shiftX) * rows
        bluish[column] = middle + chromaSpan * bluish[column] / Float(pixels)
        reddish[column] = middle + chromaSpan * reddish[column] / Float(pixels)
      }
      write(layout.components[1], of: result, row: y >> shiftY, columns) { bluish[$0] }
      write(layout.components[2], of: result, row: y >> shiftY, columns) { reddish[$0] }
      for column in 0..<columns { (bluish[column], reddish[column]) = (0, 0) }
    }
  }

  // MARK: Pixels

  private func read(
    _ component: PixelComponents.Component, of frame: MediaFrame, row y: Int,
    into row: inout [UInt16]
  ) {
    let line = component.isSubsampled ? y >> layout.chromaShift.y : y
    guard let plane = frame.planeData(component.plane) else { return }
    let bytes = plane + line * frame.bytesPerRow(component.plane) + component.offset
    let step = component.step
    if layout.bytesPerSample == 1 {
      for x in row.indices { row[x] = UInt16(bytes[x * step]) }
    } else {
      // Samples with fewer than 16 bits are stored in 16-bit words. The unused high bits are
      // undefined, so they are masked.
      let mask = UInt16(truncatingIfNeeded: (1 << layout.depth) - 1)
      for x in row.indices {
        row[x] = (UInt16(bytes[x * step]) | UInt16(bytes[x * step + 1]) << 8) & mask
      }
    }
  }

  private func write(
    _ component: PixelComponents.Component, of frame: MediaFrame, row: Int, _ count: Int,
    _ value: (Int) -> Float
  ) {
    guard let plane = frame.planeData(component.plane) else { return }
    let bytes = plane + row * frame.bytesPerRow(component.plane) + component.offset
    let most = Float((1 << layout.depth) - 1)
    let step = component.step
    for x in 0..<count {
      let code = UInt16(min(max(value(x).rounded(), 0), most))
      bytes[x * step] = UInt8(truncatingIfNeeded: code)
      if layout.bytesPerSample == 2 { bytes[x * step + 1] = UInt8(code >> 8) }
    }
  }
}
