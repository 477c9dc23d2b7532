// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Selects the fastest of several formats.
public enum FormatSelection {
  /// The fastest format that a movie can store, or nil if there is none.
  ///
  /// The format with the highest rate is selected. Among equal rates, the larger frame size
  /// decides, then the ``ColorModel``, then more bits per pixel, then the driver's order. Emulated
  /// formats, and formats that exceed the incoming signal (``CaptureFormat/exceedsSource``), are
  /// never selected.
  ///
  /// - Parameters:
  ///   - formats: The formats to choose from.
  ///   - isWanted: A filter for the formats. Default: all formats.
  /// - Returns: One of the formats, with its full range of rates.
  public static func fastest(
    among formats: some Sequence<CaptureFormat>,
    where isWanted: (CaptureFormat) -> Bool = { _ in true }
  ) -> CaptureFormat? {
    fastest(among: formats, evenBeyondSource: false, where: isWanted)
  }

  /// The fastest format.
  ///
  /// If `evenBeyondSource` is true, sizes that exceed the incoming signal may be selected too.
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

  /// A storable format, with the properties by which the fastest format is chosen.
  private struct Rank {
    let format: CaptureFormat
    let known: FourCCFormat

    init?(_ format: CaptureFormat) {
      guard !format.isEmulated, let known = format.known else { return nil }
      (self.format, self.known) = (format, known)
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
  /// The number of pixels of a frame.
  ///
  /// Width and height fit a signed 32-bit integer, so the product cannot overflow.
  fileprivate var area: Int { width * height }
}
