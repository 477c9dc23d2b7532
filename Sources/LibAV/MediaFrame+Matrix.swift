// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

extension MediaFrame {
  /// The matrix for the conversion between YUV and RGB.
  package enum Matrix: Hashable, Sendable {
    case bt601, bt709, other

    /// The matrix of a track's frames: that of its tag, or what players assume.
    package init(of parameters: CodecParameters) {
      let space = parameters.pointer.pointee.color_space
      let isHigh = Self.isHighDefinition(parameters.width, parameters.height)
      self = space == AVCOL_SPC_UNSPECIFIED && isHigh ? .bt709 : Self(space)
    }

    fileprivate init(_ space: AVColorSpace) {
      switch space {
      case AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_BT470BG, AVCOL_SPC_SMPTE170M: self = .bt601
      case AVCOL_SPC_BT709: self = .bt709
      default: self = .other
      }
    }

    /// Players assume BT.709 for frames of at least 1280 columns or 577 rows (mpv,
    /// `mp_csp_guess_colorspace`).
    fileprivate static func isHighDefinition(_ width: Int, _ height: Int) -> Bool {
      width >= 1280 || height > 576
    }
  }

  /// Tags a YUV frame above standard definition as BT.709 if the frame has no matrix tag.
  ///
  func guessMatrix() {
    guard colorSpace == AVCOL_SPC_UNSPECIFIED, Matrix.isHighDefinition(width, height),
      !pixelFormat.isRGB, !pixelFormat.isGray
    else { return }
    pointer.pointee.colorspace = AVCOL_SPC_BT709
  }

  /// The YUV matrix that the frame's tag states; BT.601 for an untagged frame, as in ``Scaler``.
  package var matrix: Matrix { Matrix(colorSpace) }
}
