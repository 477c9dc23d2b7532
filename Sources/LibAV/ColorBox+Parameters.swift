// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMovieFormat

extension ColorBox {
  /// Whether a track needs a `colr` box: its samples have full range, which the codec's own headers
  /// cannot state.
  static func isNeeded(for parameters: CodecParameters) -> Bool {
    parameters.codecID == AV_CODEC_ID_FFV1
      && parameters.pointer.pointee.color_range == AVCOL_RANGE_JPEG
      && !parameters.pixelFormat.isFullRange
  }
}

extension ColorBox.CodePoints {
  /// Creates the color description of a track.
  init(_ parameters: CodecParameters) {
    let codec = parameters.pointer.pointee
    self.init(
      primaries: UInt16(truncatingIfNeeded: codec.color_primaries.rawValue),
      transfer: UInt16(truncatingIfNeeded: codec.color_trc.rawValue),
      matrix: UInt16(truncatingIfNeeded: codec.color_space.rawValue))
  }
}
