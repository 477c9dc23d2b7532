// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// Draws text and a logo into converted frames.
struct BurnInRenderer: Sendable {
  private let burnIn: BurnIn
  private let pixels: PixelCodes
  private let logo: LogoOverlay?
  /// Pixels per dot of the font.
  private let scale: Int
  private let segments: [TrackSegment]
  private let slots: OutputFrameGrid
  /// The capture time of each frame, by source.
  private let captureTimes: [[MediaTime]]
  /// The capture time of the mark, by source.
  private let markTimes: [MediaTime]

  /// The longest line that fits the frame, in characters; longer ones are cut off.
  private static let lineLength = 22

  /// Prepares the drawing.
  ///
  /// - Throws: `MediaError` with `.burnInRefused` for a pixel format that cannot be drawn on, or if
  ///   the logo cannot be read.
  init(
    _ burnIn: BurnIn, _ plan: ConstantRatePlan, segments: [TrackSegment], assets: [Asset],
    _ geometry: FrameGeometry, _ transfer: TransferFunction
  ) throws {
    guard
      let pixels = PixelCodes(
        pixelFormat: geometry.format, isFullRange: geometry.isFullRange, transfer)
    else {
      throw MediaError(
        .burnInRefused, "text cannot be drawn on frames of format \(geometry.format.name)",
        recovery: Recovery("choose H.264", .change(.codec)))
    }
    self.burnIn = burnIn
    self.pixels = pixels
    self.segments = segments
    slots = plan.slots
    let width = geometry.encoded.width
    let scale = max(
      1, min(max(2, width / 320), width / (Self.lineLength * (DotFont.width + 1) + 4)))
    let captureTimes = try assets.map { try Self.captureTimes(of: $0) }
    self.captureTimes = captureTimes
    markTimes = zip(assets, captureTimes).map { asset, times in
      guard let mark = burnIn.mark, let index = asset.videoTrack?.frames.index(at: mark),
        times.indices.contains(index)
      else { return burnIn.mark ?? .zero }
      return times[index]
    }
    self.scale = scale
    logo = try burnIn.logoPath.map {
      try LogoOverlay($0, in: geometry.encoded, pixels, margin: 4 * scale)
    }
  }

  /// Returns the capture times since the first frame; the times of the file where they are unknown.
  private static func captureTimes(of asset: Asset) throws -> [MediaTime] {
    let known = asset.captureTimes()
    let first = known.first ?? nil
    guard let frames = asset.videoTrack?.frames else { return [] }
    return try frames.entries.indices.map { index in
      if let first, known.indices.contains(index), let time = known[index],
        let since = MediaTime(exactly: time.seconds - first.seconds)
      {
        return since
      }
      return try frames.time(ofFrame: Int64(index))
    }
  }

  /// Returns a frame with what is drawn into it.
  ///
  /// `slot` is the number of the output frame.
  func draw(
    _ frame: ConstantRatePlan.Frame?, slot: Int64, on image: MediaFrame
  ) throws -> MediaFrame {
    let result = try image.copied()
    if let frame { draw(try lines(for: frame, slot: slot), on: result) }
    logo?.draw(on: result, pixels)
    return result
  }

  /// Returns the lines of an output frame.
  func lines(for frame: ConstantRatePlan.Frame, slot: Int64) throws -> [String] {
    let times = captureTimes[frame.source]
    let time = times.indices.contains(frame.index) ? times[frame.index] : .zero
    return try burnIn.items.map { item in
      switch item {
      case .time: try Self.text(time.seconds) + " s"
      case .frame: "frame \(frame.index)"
      case .speed: "speed " + (try speedText(at: slots.seconds(of: slot)))
      case .mark:
        "mark " + (try Self.text(time.seconds - markTimes[frame.source].seconds, isSigned: true))
          + " s"
      }
    }
  }

  private func speedText(at time: Rational) throws -> String {
    let segment = segments.last { $0.target.start.seconds <= time }
    guard let mapping = segment?.mapping, mapping.motion != .hold else { return "0" }
    let speed = try mapping.speed(at: time)
    if speed.denominator == 1 { return "\(speed.numerator)" }
    return speed.numerator.magnitude == 1 ? speed.description : try Self.text(speed, digits: 4)
  }

  /// Returns a number with this many digits after the point.
  static func text(
    _ number: Rational, digits: Int = 6, isSigned: Bool = false
  ) throws -> String {
    let unit = (0..<digits).reduce(1) { one, _ in one * 10 }
    let units = Int64(clamping: try (number * Rational(Int64(unit))).rounded(.halfAwayFromZero))
    let sign = units < 0 ? "-" : isSigned ? "+" : ""
    let (whole, rest) = units.magnitude.quotientAndRemainder(dividingBy: UInt64(unit))
    let fraction = String(rest)
    return sign + "\(whole)." + String(repeating: "0", count: digits - fraction.count) + fraction
  }

  private func draw(_ lines: [String], on frame: MediaFrame) {
    guard let longest = lines.map(\.utf8.count).max() else { return }
    let advance = (DotFont.width + 1) * scale
    let lineHeight = (DotFont.height + 2) * scale
    let top = max(0, frame.height - lines.count * lineHeight - 2 * scale) & ~3
    let right = (longest * advance + 3 * scale + 3) & ~3
    pixels.fill(x: 0..<right, y: top..<frame.height, .black, on: frame)
    for (number, line) in lines.enumerated() {
      for (position, character) in line.utf8.enumerated() {
        let (x, y) = (2 * scale + position * advance, top + 2 * scale + number * lineHeight)
        for row in 0..<DotFont.height {
          let dots = DotFont.dots(of: character, line: row)
          for column in 0..<DotFont.width
          where dots >> UInt64(DotFont.width - 1 - column) & 1 == 1 {
            let (left, upper) = (x + column * scale, y + row * scale)
            pixels.fill(x: left..<left + scale, y: upper..<upper + scale, .white, on: frame)
          }
        }
      }
    }
  }
}
