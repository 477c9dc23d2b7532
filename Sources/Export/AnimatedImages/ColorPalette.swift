// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// The colors of an animated GIF: one palette for all of its frames.
struct ColorPalette: Sendable {
  /// The greatest number of colors.
  ///
  /// One of the 256 indices remains for transparency.
  static let maximumColors = 255

  let colors: [Color]

  /// Chooses the palette that approximates the counted colors with the least squared error.
  init(_ histogram: ColorHistogram, colorCount: Int = Self.maximumColors) {
    var boxes = [Box(histogram.entries)]
    while boxes.count < min(colorCount, Self.maximumColors) {
      let widest = boxes.indices.max { boxes[$0].error < boxes[$1].error }
      guard let widest, boxes[widest].error > 0 else { break }
      let (low, high) = boxes[widest].split()
      boxes[widest] = low
      boxes.append(high)
    }
    colors = boxes.map(\.color)
  }

  /// Returns the index of the palette color that is nearest to a color.
  func nearest(red: Int, green: Int, blue: Int) -> Int {
    var (best, least) = (0, Int.max)
    for (index, color) in colors.enumerated() {
      let (r, g, b) = (Int(color.red) - red, Int(color.green) - green, Int(color.blue) - blue)
      // The weights of red, green and blue are similar to those of luma.
      let distance = 3 * r * r + 6 * g * g + b * b
      if distance < least { (best, least) = (index, distance) }
    }
    return best
  }

  /// The typical distance between neighboring palette colors, limited to 4 to 32 levels per
  /// component.
  var spread: Double {
    let steps = colors.indices.map { index -> Int in
      let color = colors[index]
      return colors.indices.reduce(32) { least, other in
        guard other != index else { return least }
        let next = colors[other]
        let step = max(
          abs(Int(next.red) - Int(color.red)), abs(Int(next.green) - Int(color.green)),
          abs(Int(next.blue) - Int(color.blue)))
        return min(least, step)
      }
    }
    return min(max(Double(steps.reduce(0, +)) / Double(max(1, steps.count)), 4), 32)
  }

  /// Similar colors that share one entry of the palette.
  private struct Box {
    let entries: [ColorHistogram.Entry]
    /// The mean of each color component.
    private let mean: [Double]
    /// The color component with the greatest squared error.
    ///
    /// `error` is the error of this component.
    private let axis: Int
    let error: Double

    init(_ entries: [ColorHistogram.Entry]) {
      self.entries = entries
      let total = max(1, entries.reduce(0) { $0 + $1.count })
      let mean = (0..<3).map { axis in
        entries.reduce(0) { $0 + $1.components[axis] * $1.count } / total
      }
      let errors = (0..<3).map { axis in
        entries.reduce(0) { sum, entry in
          let offset = entry.components[axis] - mean[axis]
          return sum + offset * offset * entry.count
        }
      }
      self.mean = mean
      axis = (0..<3).max { errors[$0] < errors[$1] } ?? 0
      error = entries.count > 1 ? errors[axis] : 0
    }

    var color: Color {
      let codes = mean.map { UInt8(min(max($0.rounded(), 0), 255)) }
      return Color(red: codes[0], green: codes[1], blue: codes[2])
    }

    /// Splits the box at the mean of the component with the greatest error.
    ///
    /// Neither half is empty.
    func split() -> (Box, Box) {
      let sorted = entries.sorted { $0.components[axis] < $1.components[axis] }
      let count = sorted.count { $0.components[axis] <= mean[axis] }
      let cut = min(max(count, 1), sorted.count - 1)
      return (Box(Array(sorted[..<cut])), Box(Array(sorted[cut...])))
    }
  }
}

/// Counts the pixels of frames in bins of similar colors.
struct ColorHistogram {
  /// The mean color of the pixels in one bin: red, green and blue.
  struct Entry {
    let components: [Double]
    let count: Double
  }

  /// For each bin, the number of pixels and the sums of their color components.
  ///
  /// A bin contains the colors whose components have the same upper 5 bits.
  private var bins = [(count: Int, red: Int, green: Int, blue: Int)](
    repeating: (0, 0, 0, 0), count: 1 << 15)

  /// The approximate limit of pixels that are counted in one frame.
  private static let maximumPixels = 20_000

  /// The mean colors of all bins that contain pixels.
  var entries: [Entry] {
    bins.compactMap { bin in
      guard bin.count > 0 else { return nil }
      let count = Double(bin.count)
      return Entry(
        components: [Double(bin.red) / count, Double(bin.green) / count, Double(bin.blue) / count],
        count: count)
    }
  }

  /// Counts evenly spaced pixels of a frame in the format `bgra`.
  mutating func add(_ frame: MediaFrame) {
    guard let pixels = frame.planeData(0) else { return }
    // An even step between counted pixels could miss every other column, so the step is odd.
    let step = max(1, frame.width * frame.height / Self.maximumPixels) | 1
    for position in stride(from: 0, to: frame.width * frame.height, by: step) {
      let (row, column) = position.quotientAndRemainder(dividingBy: frame.width)
      let pixel = pixels + row * frame.bytesPerRow(0) + 4 * column
      let (blue, green, red) = (Int(pixel[0]), Int(pixel[1]), Int(pixel[2]))
      let bin = (red >> 3) << 10 | (green >> 3) << 5 | blue >> 3
      bins[bin].count += 1
      bins[bin].red += red
      bins[bin].green += green
      bins[bin].blue += blue
    }
  }
}

extension ColorPalette {
  /// The greatest number of frames whose colors are counted.
  private static let maximumFrames = 24

  /// Chooses the palette of an animated GIF for an export.
  ///
  /// Before the export starts, evenly spaced frames are decoded, rendered like the export's own
  /// frames, and counted. Frames that cannot be decoded are left out.
  ///
  /// - Throws: `MediaError` with `.cancelled`, or if a source cannot be read.
  init(
    _ plan: ConstantRatePlan, _ assets: [Asset], _ geometry: FrameGeometry,
    _ colors: Encoder.ColorTags, _ flicker: FlickerRemoval?, _ burnIn: BurnInRenderer?,
    colorCount: Int?, isCancelled: () -> Bool
  ) throws {
    let frames = plan.frames
    let count = min(frames.count, Self.maximumFrames)
    var renderer = FrameRenderer(geometry, colors, flicker)
    var readers: [Int: FrameSource] = [:]
    var histogram = ColorHistogram()
    for number in 0..<count {
      if isCancelled() { throw MediaError.exportCancelled }
      let frame = frames[number * (frames.count - 1) / max(1, count - 1)]
      var image: MediaFrame?
      if let frame {
        let reader =
          readers[frame.source]
          ?? FrameSource(
            assets[frame.source], requests: [], .skip, threadCount: 1, isStopped: { false })
        readers[frame.source] = reader
        image = try reader.mediaFrame(at: frame.index, mayLeaveOut: true)
        guard image != nil else { continue }
      }
      let painted = try renderer.paint(frame, image)
      let lines = try burnIn?.lines(
        for: frame.map { BurnInRenderer.Source($0) }, slot: plan.rendered.lowerBound)
      histogram.add(try burnIn?.draw(lines ?? [], on: painted) ?? painted)
    }
    self.init(histogram, colorCount: colorCount ?? Self.maximumColors)
  }
}
