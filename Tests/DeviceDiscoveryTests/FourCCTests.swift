// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery

/// The names of pixel formats.
struct FourCCTests {
  @Test(
    "A FourCC is written without trailing spaces as in v4l2-ctl",
    arguments: [
      (0x5659_5559, "YUYV"), (0x4750_4A4D, "MJPG"), (0x2036_3159, "Y16"), (0x5945_5247, "GREY"),
      (0x2036_3159 | 1 << 31, "Y16-BE"), (0x3531_5241 | 1 << 31, "AR15-BE"),
      (0x4141_4770, "pGAA"), (0x4141_6770, "pgAA"),
      (0, "0x00000000"), (1, "0x00000001"), (0x2020_2020, "0x20202020"), (.max, "0xffffffff"),
      (0x412F_4241, "0x412f4241"), (0x3130_3031, "0x31303031"), (0x5600_5559, "0x56005559"),
      (0x5659_55D9, "0x565955d9"), (0x4542_2D59, "0x45422d59"),
    ] as [(UInt32, String)])
  func writing(number: UInt32, text: String) {
    #expect(FourCC(rawValue: number).description == text)
    #expect(FourCC(text)?.rawValue == number)
    #expect(FourCC(rawValue: number).isNamed(text.lowercased()))
  }

  @Test(
    "Refuses text that is not a FourCC",
    arguments: [
      "", " ", "    ", "YUYVX", "Yé", "Y/16", "a@b", "-BE", "0x123456789", "YUYV-XX",
    ])
  func noCode(text: String) {
    #expect(FourCC(text) == nil)
  }

  @Test func `Every FourCC number is parsed back from its text`() {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<20_000 {
      let code = FourCC(rawValue: UInt32(truncatingIfNeeded: random.next()))
      #expect(FourCC(code.description) == code)
    }
  }
}

/// The table of formats that can be stored.
struct FourCCFormatTests {
  @Test func `The table of storable formats has each FourCC once`() {
    #expect(FourCCFormat.table.count == 64)
    #expect(Set(FourCCFormat.table.map(\.fourcc)).count == FourCCFormat.table.count)
  }

  @Test("FFmpeg knows each storable format and its bits per pixel", arguments: FourCCFormat.table)
  func name(format known: FourCCFormat) throws {
    switch known.mediaSubType {
    case .codec(let name):
      #expect(avcodec_descriptor_get_by_name(name.rawValue) != nil)
      #expect(known.bitsPerPixel == 0)
      #expect(known.colorModel == .compressed)
    case .pixels(let name):
      let format = av_get_pix_fmt(name.rawValue)
      let description = try #require(av_pix_fmt_desc_get(format), "\(name)")
      #expect(Int(av_get_padded_bits_per_pixel(description)) == known.bitsPerPixel)
      let isBayer = description.pointee.flags & UInt64(AV_PIX_FMT_FLAG_BAYER) != 0
      #expect((known.colorModel == .bayer) == isBayer)
      let isGray = description.pointee.nb_components == 1
      #expect((known.colorModel == .gray) == isGray)
    }
  }

  @Test(
    "Formats without an FFmpeg equivalent are not storable",
    arguments: ["YV12", "NV61", "VYUY", "Y10P", "BG10", "PAL8", "HSV3", "Z16", "AVC1", "PJPG"])
  func unknown(text: String) throws {
    #expect(FourCCFormat(try #require(FourCC(text))) == nil)
  }
}
