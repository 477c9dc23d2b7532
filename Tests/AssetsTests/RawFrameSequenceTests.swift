// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAssets

/// Raw video frames that are decoded ahead, compared with frames that are decoded one by one.
struct RawFrameSequenceTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func asset(_ codec: String, extra: Int = 0) throws -> Asset {
    var recipe = MovieRecipe.constant(60, count: 40, timescale: 60_000)
    // The decoder pads rows of this width.
    recipe.width += extra
    recipe.height += extra
    if codec == "h264" { recipe = recipe.h264(gop: 12, reordered: true) }
    return try recipe.asset(at: directory.file("\(codec)\(extra).mov"))
  }

  @Test(arguments: ["h264", "mjpeg"], [PixelFormat.yuv420p, .gray, .rgb24])
  func `A raw video frame read in parts equals one read at once`(
    codec: String, format: PixelFormat
  ) throws {
    for extra in [0, 34] {
      let asset = try asset(codec, extra: extra)
      let orders = [Array(0..<40), [39, 0, 12, 12, 3, 25, 26]]
      for indices in orders {
        var frames = try RawFrameSequence(asset, frames: indices, as: format)
        var reader = try FrameReader(asset)
        var writer = try RawFrameWriter(format)
        for index in indices {
          let frame = try #require(try frames.nextFrame())
          var parts: [UInt8] = []
          try frame.withParts { parts += $0 }
          let expected = try writer.data(of: index, from: &reader)
          #expect(frame.index == index && parts == expected && frame.bytes == expected)
          #expect(frame.byteCount == expected.count && !frame.isUndecodable)
          #expect(frame.width == writer.frameWidth && frame.height == writer.frameHeight)
        }
        #expect(try frames.nextFrame() == nil)
        #expect(try frames.nextFrame() == nil)
      }
    }
  }

  @Test(arguments: ["h264", "mjpeg"])
  func `Reading raw video fails only at a frame number out of range`(codec: String) throws {
    let asset = try asset(codec)
    for count in 0..<4 {
      var frames = try RawFrameSequence(asset, frames: Array(0..<40), as: .gray)
      for index in 0..<count { #expect(try frames.nextFrame()?.index == index) }
    }
    var frames = try RawFrameSequence(asset, frames: [3, 99, 4, 5, 6, 7], as: .gray)
    #expect(try frames.nextFrame()?.index == 3)
    #expect { _ = try frames.nextFrame() } throws: {
      ($0 as? MediaError)?.code == .outsideSource
    }
    for index in 4...7 { #expect(try frames.nextFrame()?.index == index) }
    #expect(try frames.nextFrame() == nil)
  }
}
