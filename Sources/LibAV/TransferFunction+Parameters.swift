// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

extension TransferFunction {
  /// Creates the transfer function that a track's color tags describe.
  package init(_ colors: Encoder.ColorTags) {
    let curve: Curve =
      switch colors.transfer {
      case AVCOL_TRC_GAMMA22: .power(2.2)
      case AVCOL_TRC_GAMMA28: .power(2.8)
      case AVCOL_TRC_LINEAR: .power(1)
      case AVCOL_TRC_IEC61966_2_1: .sRGB
      case AVCOL_TRC_SMPTE2084: .pq
      case AVCOL_TRC_ARIB_STD_B67: .hlg
      default: .bt709
      }
    // The coefficients of video without a matrix tag are those of BT.601, as in libswscale.
    let (red, blue) =
      switch colors.space {
      case AVCOL_SPC_BT709: (0.2126, 0.0722)
      case AVCOL_SPC_BT2020_NCL, AVCOL_SPC_BT2020_CL: (0.2627, 0.0593)
      case AVCOL_SPC_SMPTE240M: (0.212, 0.087)
      case AVCOL_SPC_FCC: (0.30, 0.11)
      default: (0.299, 0.114)
      }
    self.init(curve: curve, red: red, blue: blue)
  }
}
