// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

extension MediaFrame {
  /// The matrix for the conversion between YUV and RGB.
  package enum Matrix: Hashable, Sendable { case bt601, bt709, other }

  /// Tags a YUV frame above standard definition as BT.709 if the frame has no matrix tag.
  ///
  /// Players assume BT.709 for frames of at least 1280 columns or 577 rows (mpv,
  /// `mp_csp_guess_colorspace`).
  func guessMatrix() {
    guard colorSpace == AVCOL_SPC_UNSPECIFIED, width >= 1280 || height > 576, !pixelFormat.isRGB,
      !pixelFormat.isGray
    else { return }
    pointer.pointee.colorspace = AVCOL_SPC_BT709
  }

  /// The YUV matrix that the frame's tag states; BT.601 for an untagged frame, as in ``Scaler``.
  package var matrix: Matrix {
    switch colorSpace {
    case AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_BT470BG, AVCOL_SPC_SMPTE170M: .bt601
    case AVCOL_SPC_BT709: .bt709
    default: .other
    }
  }
}
