// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Reads frames by number, and checks the number painted into each frame.
struct FrameReaderTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  enum Kind: CaseIterable {
    case mjpeg, ffv1, intraH264, plainH264, reorderedH264, openGOP

    var recipe: MovieRecipe {
      var recipe = MovieRecipe.constant(240, count: 150)
      switch self {
      case .mjpeg: return recipe
      case .ffv1:
        recipe.codec = "ffv1"
        recipe.pixelFormat = .yuv420p
        return recipe
      case .intraH264: return recipe.h264(gop: 1, reordered: false)
      case .plainH264: return recipe.h264(gop: 50, reordered: false)
      case .reorderedH264: return recipe.h264(gop: 50, reordered: true)
      case .openGOP:
        return recipe.h264(
          gop: 25, reordered: true,
          options: ["x264-params": "bframes=2:b-adapt=0:b-pyramid=none:ref=2:open-gop=1"])
      }
    }
  }

  private func asset(_ recipe: MovieRecipe) throws -> Asset {
    try recipe.asset(at: directory.file("clip.\(recipe.container)"))
  }

  @Test(arguments: Kind.allCases)
  func `Frames can be read by number in any order`(_ kind: Kind) throws {
    let asset = try asset(kind.recipe)
    #expect(asset.videoTrack?.frameCount == 150)
    var reader = try FrameReader(asset)
    for index in 0..<150 {
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
    }
    for index in (0..<150).reversed() where index % 7 == 0 {
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
    }
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<60 {
      let index = Int.random(in: 0..<150, using: &generator)
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
    }
    for index in stride(from: 0, to: 150, by: 8) {
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
    }
  }

  @Test func `Reading a missing frame throws and the reader stays usable`() throws {
    var reader = try FrameReader(try asset(MovieRecipe.constant(240, count: 10)))
    for index in [-1, 10, Int.max] {
      do {
        _ = try reader.mediaFrame(at: index)
        Issue.record("frame \(index) came")
      } catch {
        #expect(error.code == .outsideSource)
        #expect(error.message.contains("clip.mov"))
      }
    }
    #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: 9)) == 9)
  }

  @Test func `Reads frames by number or time in a requested pixel format`() throws {
    let asset = try asset(MovieRecipe.constant(240, count: 60).h264(gop: 20, reordered: true))
    let frames = try #require(asset.videoTrack).frames
    var reader = try FrameReader(asset)
    for index in [40, 3, 59] {
      let image = try reader.pixelBuffer(ofFrame: index)
      #expect(image.format == .bgra && image.bytes.count == image.width * image.height * 4)
      #expect(PaintedBlocks.number(in: image) == index)
      let gray = try reader.pixelBuffer(at: frames.time(ofFrame: Int64(index)), as: .gray)
      #expect(PaintedBlocks.number(in: gray) == index)
    }
    var gray = PixelBuffer(format: .gray)
    var addresses: Set<UnsafeRawPointer?> = []
    for index in 10..<20 {
      try reader.copyFrame(at: index, into: &gray)
      #expect(PaintedBlocks.number(in: gray) == index)
      addresses.insert(gray.withUnsafeBytes(ofPlane: 0) { $0.baseAddress })
    }
    #expect(addresses.count == 1)
    for format in ["none such", "pal8", "vaapi"] {
      let code: MediaError.Code?
      do throws(MediaError) {
        _ = try reader.pixelBuffer(ofFrame: 0, as: PixelFormat(rawValue: format))
        code = nil
      } catch { code = error.code }
      #expect(code == .notConvertible, "\(format)")
    }
    do throws(MediaError) {
      _ = try reader.pixelBuffer(at: MediaTime(seconds: 1))
      Issue.record("a frame at the end was returned")
    } catch { #expect(error.code == .outsideSource) }
  }

  @Test func `A movie with only audio has no frames to read`() throws {
    var recipe = MovieRecipe()
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = "pcm_s16le"
    recipe.audio?.sampleCount = 4_800
    let asset = try asset(recipe)
    #expect(asset.videoTrack == nil)
    #expect(asset.duration == (MediaTime(1, over: 10)))
    #expect(throws: MediaError.self) { _ = try FrameReader(asset) }
  }
}
