// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
import Testing

@testable import OvercrankLibAV

struct TransferFunctionTests {
  private static let curves: [TransferFunction.Curve] = [
    .bt709, .sRGB, .power(2.2), .power(1), .pq, .hlg,
  ]

  @Test(arguments: curves)
  func `Encoding a linearized signal returns the same signal`(curve: TransferFunction.Curve) {
    let transfer = TransferFunction(curve: curve, red: 0.2126, blue: 0.0722)
    for step in -200...200 {
      let signal = Double(step) / 200
      #expect(abs(transfer.encode(transfer.linearize(signal)) - signal) < 1e-6, "\(signal)")
    }
    #expect(transfer.linearize(0.25) < transfer.linearize(0.5))
  }

  @Test(arguments: [
    (AVCOL_TRC_SMPTE2084, AVCOL_SPC_BT2020_NCL, TransferFunction.Curve.pq, 0.2627),
    (AVCOL_TRC_ARIB_STD_B67, AVCOL_SPC_BT2020_CL, .hlg, 0.2627),
    (AVCOL_TRC_IEC61966_2_1, AVCOL_SPC_BT709, .sRGB, 0.2126),
    (AVCOL_TRC_GAMMA28, AVCOL_SPC_FCC, .power(2.8), 0.30),
    (AVCOL_TRC_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, .bt709, 0.299),
  ])
  func `Color tags select the transfer curve and the luma weights`(
    transfer: AVColorTransferCharacteristic, space: AVColorSpace, curve: TransferFunction.Curve,
    red: Double
  ) throws {
    var track = avcodec_parameters_alloc()
    defer { avcodec_parameters_free(&track) }
    let stored = try #require(track)
    (stored.pointee.color_trc, stored.pointee.color_space) = (transfer, space)
    let parameters = try CodecParameters(copying: stored)
    let function = TransferFunction(
      Encoder.ColorTags(parameters, storedAs: AV_PIX_FMT_YUV420P))
    #expect(function.curve == curve && function.red == red)
  }
}
