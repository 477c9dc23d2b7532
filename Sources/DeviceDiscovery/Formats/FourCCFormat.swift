// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A V4L2 pixel format with its FFmpeg counterpart.
///
/// A counterpart exists only if the bytes are the same, except for padding at line ends. Without a
/// counterpart, a movie cannot store the frames.
package struct FourCCFormat: Hashable, Sendable {
  /// The V4L2 code of the format.
  package let fourcc: FourCC
  /// The FFmpeg pixel format or codec.
  package let mediaSubType: MediaSubType
  /// The number of bits per pixel in memory, including unused bits.
  ///
  /// 0 for compressed formats.
  package let bitsPerPixel: Int
  /// The color model of the format.
  package let colorModel: ColorModel
  /// The number of memory planes of a frame.
  ///
  /// The number is above 1 only if each image plane has a separate memory plane.
  package let separatePlaneCount: Int

  /// Finds the counterpart of a format, or returns nil if FFmpeg has none.
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
