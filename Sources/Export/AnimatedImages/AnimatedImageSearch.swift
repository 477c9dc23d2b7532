// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The search for the best animated image whose file does not exceed a size.
///
/// The steps are ordered from the best image to the smallest file. The first steps reduce the
/// colors of a GIF or the quality of a WebP. The following steps also reduce the frame size. Frame
/// rate and times never change. The search is a binary search: it assumes that each step gives a
/// smaller file than the one before.
struct AnimatedImageSearch {
  /// The quality, colors and frame size of one attempt to encode the image.
  struct Step: Hashable, Sendable {
    /// The quality of a WebP; nil for a GIF.
    var quality: Int?
    /// The greatest number of colors of a GIF; nil for a WebP.
    var colorCount: Int?
    /// The width and the height of the frames, in sixteenths of the requested size.
    var sixteenths: Int
  }

  /// The greatest permitted size of the file in bytes.
  let limit: Int64
  let steps: [Step]
  /// The index in `steps` of the next attempt.
  private var position = 0
  private var attemptCount = 0
  /// The index of the last step that is known to give too large a file; -1 for none.
  private var tooLarge = -1
  /// The index of the first step that is known to give a file that fits.
  private var fitting: Int?

  /// The step that the next attempt uses.
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

  /// Starts the search for an export; nil for an export to a movie, and for an export without a
  /// limit of the file size.
  init?(_ settings: ExportSettings) {
    guard let limit = settings.fileLengthLimit, limit > 0,
      case .constant(_, let rendering) = settings.mode, rendering.encoding.animatedImage != nil
    else { return nil }
    self.init(limit: limit, rendering.encoding)
  }

  /// Records the file size of an attempt, and chooses the step of the next attempt.
  ///
  /// - Returns: The result if the attempt is kept, because it fits and the previous step is known
  ///   not to fit. Nil if another attempt follows.
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
  /// `size` is the requested size of the frames as displayed, after rotation.
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
