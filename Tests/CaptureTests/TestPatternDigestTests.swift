// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// The bytes of frames with `scene=pattern`.
///
/// Fixtures of other projects may contain them.
struct TestPatternDigestTests {
  /// The FNV-1a hash with 64 bits.
  private func digest(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  /// The digests of frames 0, 1, 239, 240 and 299 at 240 fps, from before the ball scene was added.
  @Test(
    arguments: [
      (
        128, 96, .gray,
        [
          0xF0A1_2DDB_CECA_1369, 0x3BB5_F236_77BF_B75D, 0x35EA_98EE_5635_9AD5,
          0xC457_A4CE_5895_14C5, 0xCEAF_9733_B95D_E2E9,
        ]
      ),
      (
        642, 362, .gray,
        [
          0x2EF4_28ED_6DB6_B4DF, 0x87FD_C6C8_3F7B_2E17, 0x08A1_CFA5_DE69_AF47,
          0x2110_299B_7BEE_BACF, 0x548E_13EB_32F8_EC17,
        ]
      ),
      (
        128, 96, .yuyv,
        [
          0x0656_3771_6DCA_1B95, 0x714F_7D42_7C7C_8EC5, 0x0E3B_E368_3E9D_3BA5,
          0xCB9A_A4AE_EAE3_2325, 0x2A9F_0A10_08C7_A1D5,
        ]
      ),
      (
        642, 362, .yuyv,
        [
          0xB4DC_D1F9_0CE4_8D1F, 0x8FC2_4196_8BB7_77A7, 0x0613_C81D_9F17_07F7,
          0x96B0_D8C5_48E8_6A7F, 0x25F3_DB23_4494_58F7,
        ]
      ),
      (
        128, 96, .mjpeg,
        [
          0x9C29_C162_A774_8C49, 0xAF23_F189_5322_3E87, 0x0424_36C6_6D48_523C,
          0x1967_4291_66D6_67A5, 0x9012_3568_0AA5_DF34,
        ]
      ),
      (
        642, 362, .mjpeg,
        [
          0x194B_1C9E_8B36_A405, 0x4D5D_66D6_5A03_DEB5, 0x9F8F_6D5E_01E1_3AB2,
          0x99E5_1D03_5DF8_9DD2, 0x21A7_ACDB_E615_B93B,
        ]
      ),
    ] as [(Int, Int, SyntheticDriver.Settings.Layout, [UInt64])])
  func `The test pattern is unchanged byte for byte`(
    width: Int, height: Int, layout: SyntheticDriver.Settings.Layout, digests: [UInt64]
  ) throws {
    var settings = SyntheticDriver.Settings(
      width: width, height: height, frameRate: FrameRate(240), layout: layout)
    settings.scene = .pattern
    var generator = try settings.generator()
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: generator.maximumByteCount, alignment: 16)
    defer { buffer.deallocate() }
    let found = try [0, 1, 239, 240, 299].map { number in
      let count = try generator.make(
        number: number, isFlash: settings.isFlash(Int64(number)), into: buffer)
      return digest(buffer.prefix(count))
    }
    #expect(found == digests)
  }
}
