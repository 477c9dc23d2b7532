// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming

/// Draws the text and the logo into the converted frames of an export.
struct BurnInRenderer: Sendable {
  /// The captured frame that an output frame shows, or the instant between two captured frames.
  struct Source: Sendable {
    /// The index of the source among the export's assets.
    let number: Int
    let position: BurnInText.Position

    init(number: Int, position: BurnInText.Position) {
      (self.number, self.position) = (number, position)
    }

    init(_ frame: ConstantRatePlan.Frame) {
      self.init(number: frame.source, position: BurnInText.Position(frame.index))
    }
  }

  private let drawing: BurnInDrawing
  private let texts: [BurnInText]
  private let segments: [TrackSegment]
  private let slots: OutputFrameGrid
  private let size: VideoSize

  /// Prepares to draw the text and the logo.
  ///
  /// - Throws: `MediaError` with `.burnInRefused` for a pixel format that cannot be drawn on, or if
  ///   the logo cannot be read.
  init(
    _ burnIn: BurnIn, _ plan: ConstantRatePlan, segments: [TrackSegment], assets: [Asset],
    _ geometry: FrameGeometry, _ transfer: TransferFunction
  ) throws {
    size = geometry.encoded
    drawing = try BurnInDrawing(
      burnIn, width: size.width, height: size.height,
      pixelFormat: geometry.format, isFullRange: geometry.isFullRange, transfer)
    texts = assets.map { BurnInText(burnIn.items, of: $0, mark: burnIn.mark) }
    self.segments = segments
    slots = plan.slots
  }

  /// Returns a copy of a frame into which text lines and the logo are drawn.
  func draw(_ lines: [String], on image: MediaFrame) throws -> MediaFrame {
    let result = try image.copied()
    drawing.draw(lines, width: size.width, bottom: result.height, on: result)
    drawing.drawLogo(on: result)
    return result
  }

  /// Returns the text lines of an output frame; empty for a gap.
  ///
  /// `slot` is the index of the output frame.
  func lines(for source: Source?, slot: Int64) throws -> [String] {
    guard let source else { return [] }
    let speed = try speedText(at: slots.seconds(of: slot))
    return try texts[source.number].lines(at: source.position, speed: speed)
  }

  private func speedText(at time: Rational) throws -> String {
    let segment = segments.last { $0.target.start.seconds <= time }
    guard let mapping = segment?.mapping, mapping.motion != .hold else { return "0" }
    return try BurnInText.speedText(try mapping.speed(at: time))
  }
}
