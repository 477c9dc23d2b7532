// SPDX-License-Identifier: Apache-2.0

import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore

/// Draws the text of each clip and the logo into the frames of a comparison.
struct ComparisonText {
  private let drawing: BurnInDrawing
  private let texts: [BurnInText]
  private let boxes: [PixelBox]
  private let lineCount: Int
  private let speed: String
  /// True if the texts are above each other, false if each is in the box of its clip.
  private let isStacked: Bool

  /// Reads the logo, and the capture times of the clips' frames.
  ///
  /// - Throws: `MediaError` if the logo cannot be read.
  init(
    _ burnIn: BurnIn, _ clips: [ClipComparison.Clip], _ plan: ClipComparison.Plan, _ speed: Speed,
    isStacked: Bool
  ) throws {
    drawing = try BurnInDrawing(
      burnIn, width: plan.size.width, height: plan.size.height,
      pixelFormat: .yuv420p, isFullRange: false, TransferFunction(.convertedFromRGB))
    texts = clips.map {
      BurnInText(burnIn.items, of: $0.asset, mark: burnIn.mark ?? $0.origin, clock: $0.clock)
    }
    boxes = plan.boxes
    lineCount = burnIn.items.count
    self.speed = try BurnInText.speedText(speed.fraction)
    self.isStacked = isStacked
  }

  /// Returns a copy of a frame with the logo and with the text for each clip's frame.
  func draw(_ indices: [Int], on frame: MediaFrame) throws -> MediaFrame {
    let result = try frame.copied()
    // Leaves space at the bottom for the line with the time since the instant of alignment.
    let scale = Canvas.textScale(forWidth: result.width)
    let bottom = max(0, result.height - Canvas.textHeight(scale: scale) - 8 * scale) & ~3
    for (number, index) in indices.enumerated() {
      let box = boxes[number]
      let below = isStacked ? indices.count - 1 - number : 0
      let lines = try texts[number].lines(at: BurnInText.Position(index), speed: speed)
      drawing.draw(
        lines, x: box.x, width: box.width,
        bottom: bottom - below * BurnInDrawing.height(ofLines: lineCount, inWidth: box.width),
        on: result)
    }
    drawing.drawLogo(on: result)
    return result
  }
}
