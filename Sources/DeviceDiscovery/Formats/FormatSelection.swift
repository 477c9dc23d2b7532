// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Which of many formats is the fastest.
public enum FormatSelection {
  /// The fastest format that can be stored, or nil where there is none.
  ///
  /// The highest rate wins, compared exactly. Among equals the larger picture wins, then
  /// compressed before colour before grey before a sensor's mosaic, then more bits for each
  /// pixel, then the driver's order. Emulated formats are never chosen, nor those that are
  /// larger than what comes in (``CaptureFormat/exceedsSource``).
  ///
  /// - Parameters:
  ///   - formats: The formats to choose from.
  ///   - isWanted: Says which formats are considered at all; all, unless it is given.
  /// - Returns: One of the formats as it was given, a range of rates included.
  public static func fastest(
    among formats: some Sequence<CaptureFormat>,
    where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) -> CaptureFormat? {
    fastest(among: formats, evenBeyondSource: false, where: isWanted)
  }

  /// The same, where a size that was asked for counts even if it is larger than what comes in.
  static func fastest(
    among formats: some Sequence<CaptureFormat>, evenBeyondSource: Bool,
    where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) -> CaptureFormat? {
    var best: Rank?
    for format in formats where isWanted(format) {
      if format.exceedsSource, !evenBeyondSource { continue }
      guard let rank = Rank(format) else { continue }
      if let leader = best, !(rank.isFaster(than: leader)) { continue }
      best = rank
    }
    return best?.format
  }

  /// A format beside what FFmpeg knows of it.
  private struct Rank {
    let format: CaptureFormat
    let known: FourCCFormat

    init?(_ format: CaptureFormat) {
      guard !format.isEmulated, let known = format.known else { return nil }
      self.format = format
      self.known = known
    }

    func isFaster(than other: Rank) -> Bool {
      if format.maxFrameRate != other.format.maxFrameRate {
        return format.maxFrameRate > other.format.maxFrameRate
      }
      if format.area != other.format.area { return format.area > other.format.area }
      if known.colorModel != other.known.colorModel {
        return known.colorModel < other.known.colorModel
      }
      if known.bitsPerPixel != other.known.bitsPerPixel {
        return known.bitsPerPixel > other.known.bitsPerPixel
      }
      return format.driverOrder < other.format.driverOrder
    }
  }
}

extension CaptureFormat {
  /// Pixels in a picture; both sides fit 32 bits, so the product fits.
  fileprivate var area: Int { width * height }
}
