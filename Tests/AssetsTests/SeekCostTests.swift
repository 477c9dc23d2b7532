// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// The number of packets that a seek decodes.
struct SeekCostTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  enum Kind: CaseIterable {
    case intra, plain, reordered, deep, reorderedMP4

    var recipe: MovieRecipe {
      let recipe = MovieRecipe.constant(240, count: 240)
      switch self {
      case .intra: return recipe
      case .plain: return recipe.h264(gop: 30, reordered: false)
      case .reordered: return recipe.h264(gop: 30, reordered: true)
      case .deep:
        return recipe.h264(
          gop: 30, reordered: true,
          options: ["x264-params": "bframes=3:b-adapt=0:b-pyramid=normal:ref=3"])
      case .reorderedMP4:
        var recipe = recipe.h264(gop: 24, reordered: true)
        recipe.container = "mp4"
        return recipe
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func `A seek decodes only from the key frame before its target`(
    _ kind: Kind
  ) throws {
    let recipe = kind.recipe
    let asset = try recipe.asset(at: directory.file("clip.\(recipe.container)"))
    let frames = try #require(asset.videoTrack?.frames)
    var reader = try FrameReader(asset, wanted: nil, threadCount: 1)
    var random = SeededGenerator(seed: 30)
    for number in 0..<40 {
      // One of the seeks goes back to the start.
      let target = number == 20 ? 0 : Int.random(in: 0..<240, using: &random)
      let before = reader.sentPacketCount
      var found: [Int?] = []
      try reader.readFrames(in: target...target, wanted: { _ in true }) { _, image in
        found.append(PaintedBlocks.number(in: image))
        return true
      }
      #expect(found == [target])
      let key = frames.entries[...target].last(where: \.isKeyFrame)?.decodeIndex ?? 0
      let needed = frames.entries[target].decodeIndex - key + 1
      // A decoder returns a frame only after it has decoded all frames that could be shown earlier.
      let delay = kind == .intra ? 0 : 6
      let sent = reader.sentPacketCount - before
      #expect(sent <= needed + delay, "frame \(target)")
    }
  }
}
