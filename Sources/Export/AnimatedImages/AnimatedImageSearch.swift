// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The search for the best animated image that fits a file size.
///
/// The steps are ordered from the best to the smallest. A GIF gets fewer colors first, a WebP a lower
/// quality; then the frames get smaller. Frame rate and times never change. The search assumes that
/// each step gives a smaller file, and halves the number of possible steps with each attempt.
struct AnimatedImageSearch {
  /// One way to encode the image.
  struct Step: Hashable, Sendable {
    /// The quality of a WebP; nil for a GIF.
    var quality: Int?
    /// The greatest number of colors of a GIF; nil for a WebP.
    var colorCount: Int?
    /// The width and height in sixteenths of the requested ones.
    var sixteenths: Int
  }

  /// The greatest permitted size in bytes.
  let limit: Int64
  let steps: [Step]
  /// The position of the next attempt.
  private var position = 0
  private var attemptCount = 0
  /// The last step that is known to be too large; -1 for none.
  private var tooLarge = -1
  /// The first step that is known to fit.
  private var fitting: Int?

  /// The step of the next attempt.
  var step: Step { steps[position] }

  private static let smallerSizes = [14, 12, 10, 8, 7, 6, 5, 4]

  init(limit: Int64, _ encoding: VideoEncoding) {
    self.limit = limit
    var steps: [Step]
    if case .webp(let quality) = encoding {
      let lower = [60, 45, 30].filter { $0 < quality }
      steps = ([quality] + lower).map { Step(quality: $0, sixteenths: 16) }
    } else {
      steps = [ColorPalette.maximumColors, 128, 64].map { Step(colorCount: $0, sixteenths: 16) }
    }
    var last = steps[steps.count - 1]
    for size in Self.smallerSizes {
      last.sixteenths = size
      steps.append(last)
    }
    self.steps = steps
  }

  /// Starts the search of an export; nil without a limit and for movies.
  init?(_ settings: ExportSettings) {
    guard let limit = settings.fileLengthLimit, limit > 0,
      case .constant(_, let rendering) = settings.mode, rendering.encoding.animatedImage != nil
    else { return nil }
    self.init(limit: limit, rendering.encoding)
  }

  /// Takes the size of an attempt, and chooses the next step.
  ///
  /// - Returns: The result if the attempt is kept: if it fits and the step before does not. Nil if
  ///   another attempt follows.
  /// - Throws: `MediaError` with `.fileLengthRefused` if the smallest image is too large.
  mutating func kept(
    _ size: Int64, frame: VideoSize, path: String
  ) throws(MediaError) -> ExportReport.FileLength? {
    attemptCount += 1
    if size <= limit {
      if position == tooLarge + 1 {
        return ExportReport.FileLength(
          limit: limit, byteCount: size, crf: nil, quality: step.quality,
          colorCount: step.colorCount, width: frame.width, height: frame.height,
          attemptCount: attemptCount)
      }
      fitting = position
    } else {
      tooLarge = max(tooLarge, position)
      if let known = fitting, known <= tooLarge { fitting = nil }
      guard tooLarge < steps.count - 1 else {
        throw MediaError(
          .fileLengthRefused,
          "\(path) cannot be reduced to \(limit) bytes: the smallest image has \(size)",
          recovery: Recovery(
            "choose a larger size, a shorter part, a lower frame rate or a smaller frame",
            .change(.maximumFileSize)))
      }
    }
    let last = fitting ?? steps.count
    position = fitting == tooLarge + 1 ? tooLarge + 1 : (tooLarge + last) / 2
    return nil
  }

  /// Returns settings with the quality and the frame size of the next attempt.
  ///
  /// `size` is the requested size of the frames as displayed.
  func settings(_ rendering: RenderSettings, size: VideoSize) -> RenderSettings {
    var result = rendering
    if let quality = step.quality { result.encoding = .webp(quality: quality) }
    if step.sixteenths < 16 {
      result.box = VideoSize(
        width: max(1, (size.width * step.sixteenths + 8) / 16),
        height: max(1, (size.height * step.sixteenths + 8) / 16))
    }
    return result
  }
}
