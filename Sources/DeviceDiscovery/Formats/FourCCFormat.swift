// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A camera's format as FFmpeg knows it.
///
/// There is one only where the camera's bytes are FFmpeg's, byte for byte, but for the padding at
/// the ends of lines. A format without one cannot be stored.
package struct FourCCFormat: Hashable, Sendable {
  /// The camera's name of the format.
  package let fourcc: FourCC
  /// What the bytes are.
  package let mediaSubType: MediaSubType
  /// Bits for each pixel in memory, unused ones included; 0 for compressed formats.
  package let bitsPerPixel: Int
  /// What the format shows.
  package let colorModel: ColorModel
  /// The planes of memory that a frame lies in, where each plane of the picture has its own; 1
  /// for all other formats.
  package let separatePlaneCount: Int

  /// Finds a format, or nil for one that FFmpeg has no like of.
  package init?(_ fourcc: FourCC) {
    guard let format = Self.byFourCC[fourcc] else { return nil }
    self = format
  }

  init(
    _ fourcc: FourCC, _ mediaSubType: MediaSubType, _ bitsPerPixel: Int, _ colorModel: ColorModel
  ) {
    self.fourcc = fourcc
    self.mediaSubType = mediaSubType
    self.bitsPerPixel = bitsPerPixel
    self.colorModel = colorModel
    separatePlaneCount = fourcc.separatePlaneCount
  }

  private static let byFourCC = Dictionary(
    table.map { ($0.fourcc, $0) }, uniquingKeysWith: { first, _ in first })
}
