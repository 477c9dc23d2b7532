// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Frames written as image files: black stays black, and white stays white.
struct FrameWriterTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func asset(_ recipe: MovieRecipe) throws -> Asset {
    try recipe.asset(at: directory.file("clip.mov"))
  }

  /// The mean of the first byte of 4 by 4 pixels inside the painted block `block`.
  private func level(_ bytes: [UInt8], block: Int, bytesPerPixel: Int) -> Int {
    var sum = 0
    for y in 2..<6 {
      for x in 2..<6 {
        sum += Int(bytes[(y * PaintedBlocks.width + block * 8 + x) * bytesPerPixel])
      }
    }
    return (sum + 8) / 16
  }

  /// The painted code values are 32 and 208.
  ///
  /// In JPEG's full range they are the gray levels. In video range the gray level is (v −
  /// 16)·255/219.
  @Test(arguments: [(false, 32, 208), (true, 19, 224)])
  func `Raw gray levels take the source color range into account`(
    isVideoRange: Bool, dark: Int, light: Int
  ) throws {
    var recipe = MovieRecipe.constant(30, count: 3)
    if isVideoRange { recipe = recipe.h264(gop: 1, reordered: false, options: ["crf": "0"]) }
    var reader = try FrameReader(try asset(recipe))
    for format in [PixelFormat.gray, .rgb24] {
      var writer = try RawFrameWriter(format)
      let bytes = try writer.data(of: 1, from: &reader)
      let size = format == .gray ? 1 : 3
      #expect(bytes.count == PaintedBlocks.width * PaintedBlocks.height * size)
      // Frame 1 has the first block white and all others black.
      let found = (
        level(bytes, block: 0, bytesPerPixel: size), level(bytes, block: 1, bytesPerPixel: size)
      )
      #expect(abs(found.0 - light) <= 1 && abs(found.1 - dark) <= 1, "\(format): \(found)")
    }
    var video = try RawFrameWriter(.yuv420p)
    let planes = try video.data(of: 1, from: &reader)
    #expect(planes.count == PaintedBlocks.width * PaintedBlocks.height * 3 / 2)
    let stored = isVideoRange ? 208 : 16 + (208 * 219 + 127) / 255
    #expect(abs(level(planes, block: 0, bytesPerPixel: 1) - stored) <= 1)
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `A PNG file has the same pixel values as a raw RGB frame`() async throws {
    let asset = try asset(MovieRecipe.constant(30, count: 3))
    var reader = try FrameReader(asset)
    var png = PNGWriter()
    var raw = try RawFrameWriter(.rgb24)
    let path = try directory.write(try png.data(of: 2, from: &reader), as: "frame.png")
    let bytes = try await FFmpeg.converted(path, ["-f", "rawvideo", "-pix_fmt", "rgb24"])
    #expect(bytes == (try raw.data(of: 2, from: &reader)))
  }

  @Test(
    .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"), arguments: [1, -1])
  func `Raw frames match FFmpeg with and without applied rotation`(sine: Int32) async throws {
    var recipe = MovieRecipe.constant(30, count: 2)
    recipe.displayMatrix = [0, sine << 16, 0, -sine << 16, 0, 0, 0, 0, 1 << 30]
    let asset = try asset(recipe)
    var reader = try FrameReader(asset)
    for (format, name) in [(PixelFormat.gray, "gray"), (.yuv420p, "yuv420p")] {
      for (applies, decoding) in [(true, []), (false, ["-noautorotate"])] {
        var writer = try RawFrameWriter(format, appliesRotation: applies)
        let found = try writer.data(of: 0, from: &reader)
        let wanted = try await FFmpeg.converted(
          asset.path, ["-frames:v", "1", "-f", "rawvideo", "-pix_fmt", name], decoding: decoding)
        #expect(found.count == wanted.count)
        #expect(zip(found, wanted).allSatisfy { abs(Int($0) - Int($1)) <= 2 }, "\(format)")
      }
    }
  }

  @Test(arguments: [(1, 1), (33, 17), (2, 31)])
  func `Raw frames with odd width or height have the full byte count`(
    width: Int, height: Int
  ) throws {
    var recipe = MovieRecipe.constant(30, count: 2)
    recipe.codec = "ffv1"
    recipe.pixelFormat = .yuv420p
    recipe.width = width
    recipe.height = height
    var reader = try FrameReader(try asset(recipe))
    for (format, count) in [
      (PixelFormat.gray, width * height), (.rgb24, width * height * 3),
      (.yuv420p, width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)),
    ] {
      var writer = try RawFrameWriter(format)
      #expect(try writer.data(of: 1, from: &reader).count == count)
    }
  }
}
