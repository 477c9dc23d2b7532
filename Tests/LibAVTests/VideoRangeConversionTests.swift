// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
import Testing

@testable import OvercrankLibAV

/// Conversion from full range to video range, compared with libswscale.
struct VideoRangeConversionTests {
  private static let formats = [
    (AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P), (AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P),
    (AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P),
  ]

  /// A frame of odd size that contains all levels in each plane.
  private func frame(_ format: LibAVPixelFormat) throws -> MediaFrame {
    let (width, height) = (77, 41)
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    for plane in 0..<3 {
      let data = try #require(frame.planeData(plane))
      let is444 = [AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUVJ444P].contains(format)
      let is420 = [AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P].contains(format)
      let columns = plane == 0 || is444 ? width : (width + 1) / 2
      let rows = plane > 0 && is420 ? (height + 1) / 2 : height
      for y in 0..<rows {
        for x in 0..<columns {
          data[y * frame.bytesPerRow(plane) + x] =
            UInt8(truncatingIfNeeded: (y * columns + x) * (plane * 2 + 1))
        }
      }
    }
    return frame
  }

  @Test(arguments: formats)
  func `Conversion from full to video range matches libswscale`(
    source: LibAVPixelFormat, target: LibAVPixelFormat
  ) throws {
    let full = try frame(source)
    var scaler = try Scaler(
      from: (full.width, full.height, source, true), to: (full.width, full.height, target, false))
    let expected = try scaler.convert(full).packedBytes()
    var converter = FrameConverter(to: target, isFullRange: false)
    let found = try converter.convert(full)
    #expect(found.pixelFormat == target)
    #expect(try found.packedBytes() == expected)
    #expect(try expected != full.packedBytes())
    // A full-range tag means the same as a JPEG pixel format.
    let tagged = try frame(target)
    tagged.pointer.pointee.color_range = AVCOL_RANGE_JPEG
    #expect(try converter.convert(tagged).packedBytes() == expected)
    // A frame that is already in video range is not changed.
    let plain = try frame(target)
    #expect(try converter.convert(plain).packedBytes() == plain.packedBytes())
  }
}
