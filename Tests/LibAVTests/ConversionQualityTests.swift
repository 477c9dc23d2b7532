// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Testing

@testable import OvercrankLibAV

/// Fast pixel conversions for the screen, compared with exact conversions for files and
/// measurements.
struct ConversionQualityTests {
  private static let (width, height) = (64, 32)

  /// Stripes of 16 pixels, in the colors of a palette from index `first`.
  private func stripes(_ first: Int) throws -> MediaFrame {
    let image = try MediaFrame.video(width: Self.width, height: Self.height, pixelFormat: .rgb24)
    let data = try #require(image.planeData(0))
    for y in 0..<Self.height {
      for x in 0..<Self.width {
        let color = (first + x / 16) * 37 % 125
        for channel in 0..<3 {
          let level = [color / 25, color / 5 % 5, color % 5][channel]
          data[y * image.bytesPerRow(0) + x * 3 + channel] = UInt8(level * 255 / 4)
        }
      }
    }
    return image
  }

  @Test(arguments: [AV_PIX_FMT_YUYV422, AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_NV12])
  func `Fast pixel conversion is within 3 levels of exact conversion`(
    format: LibAVPixelFormat
  ) throws {
    let range = format.isFullRange
    var largest = 0
    for space in [AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT709] {
      var exact = FrameConverter(to: .bgra, isFullRange: true)
      var fast = FrameConverter(to: .bgra, isFullRange: true, quality: .fast)
      for first in stride(from: 0, to: 125, by: 4) {
        var source = try Scaler(
          from: (Self.width, Self.height, .rgb24, true),
          to: (Self.width, Self.height, format, range), colorSpace: space)
        let frame = try source.convert(stripes(first))
        frame.pointer.pointee.colorspace = space
        frame.pointer.pointee.color_range = range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        let (one, other) = (try exact.convert(frame), try fast.convert(frame))
        let (wanted, found) = (try #require(one.planeData(0)), try #require(other.planeData(0)))
        for y in 0..<Self.height {
          // Near the edges of stripes, the fast conversion does not interpolate chroma.
          for x in 0..<Self.width where (3..<13).contains(x % 16) {
            for channel in 0..<3 {
              let difference =
                Int(wanted[y * one.bytesPerRow(0) + x * 4 + channel])
                - Int(found[y * other.bytesPerRow(0) + x * 4 + channel])
              largest = max(largest, abs(difference))
            }
          }
        }
      }
    }
    #expect((1...3).contains(largest), "\(format.name): \(largest) levels")
  }
}
