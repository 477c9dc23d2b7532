// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

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
