// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

extension MediaFrame {
  /// A YUV matrix.
  package enum Matrix: Hashable, Sendable { case bt601, bt709, other }

  /// The YUV matrix by the frame's tag; BT.601 for an untagged frame, as in ``Scaler``.
  package var matrix: Matrix {
    switch colorSpace {
    case AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_BT470BG, AVCOL_SPC_SMPTE170M: .bt601
    case AVCOL_SPC_BT709: .bt709
    default: .other
    }
  }
}
