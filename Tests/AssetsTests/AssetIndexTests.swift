// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAssets

/// The packet index of a movie file, compared with the result of reading all of its packets.
struct AssetIndexTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func recipe(_ name: String) -> MovieRecipe {
    var recipe = MovieRecipe.constant(240, count: 60, timescale: 240_000)
    switch name {
    case "h264": return recipe.h264(gop: 12, reordered: false)
    case "late":
      recipe = recipe.h264(gop: 12, reordered: false)
      recipe.times = recipe.times.map { $0 - 5_500 }
      recipe.end -= 5_500
    case "one group": return recipe.h264(gop: 60, reordered: false)
    case "reordered": return recipe.h264(gop: 12, reordered: true)
    case "hevc":
      recipe.codec = "libx265"
      recipe.pixelFormat = .yuv420p
      recipe.keyFrameInterval = 15
      recipe.options = [
        "preset": "ultrafast",
        "x265-params": "log-level=none:bframes=0:pools=1:frame-threads=1:keyint=15:min-keyint=15",
      ]
    case "fragments":
      recipe = recipe.h264(gop: 12, reordered: false)
      recipe.fragmentMicroseconds = 50_000
    case "front": recipe.hasIndexInFront = true
    case "ffv1":
      recipe.codec = "ffv1"
      recipe.pixelFormat = .yuv420p
      recipe.times = recipe.times.map { $0 * $0 / 1_000 }
      recipe.end = recipe.end * recipe.end / 1_000
    case "mp4": recipe.container = "mp4"
    case "audio", "jittered":
      if name == "jittered" {
        recipe.times = recipe.times.enumerated().map { $1 + Int64($0 * 37 % 400) }
      }
      recipe.audio = MovieRecipe.Audio()
      recipe.audio?.sampleCount = 12_000
    default: break
    }
    return recipe
  }

  @Test(arguments: [
    ("plain", 2), ("h264", 6), ("late", 6), ("one group", 2), ("reordered", 60), ("hevc", 5),
    ("fragments", 60), ("front", 2), ("ffv1", 60), ("mp4", 2), ("jittered", 40), ("audio", 20),
  ])
  func `A movie header and a full read give the same packet index`(
    name: String, maximum: Int
  ) throws {
    let recipe = recipe(name)
    let path = directory.file("clip.\(recipe.container)")
    try recipe.write(to: path)
    let index = try AssetIndex(path)
    let read = try AssetIndex(path, readsAll: true)
    #expect(index.packets == read.packets)
    #expect(try index.videoTrack()?.frames.entries == read.videoTrack()?.frames.entries)
    let track = try #require(try index.videoTrack()?.format.index)
    #expect(index.packets[track]?.count == 60)
    // The first packets are always read, to detect the tracks.
    #expect(index.readCount <= maximum + 5, "\(index.readCount) packets were read")
    #expect(read.readCount >= 60)
    // A truncated file of any length gives the same packets and frames from its index as from
    // reading all packets.
    let whole = try bytes(of: path)
    for length in stride(from: whole.count - 1, to: whole.count / 3, by: -max(1, whole.count / 23))
    {
      let cut = try directory.write(Array(whole[..<length]), as: "cut.\(recipe.container)")
      let parts = [false, true].map { readsAll in
        (try? AssetIndex(cut, readsAll: readsAll)).map { index in
          let video = Result { () throws(MediaError) in try index.videoTrack()?.frames.entries }
          return (index.packets, String(describing: video))
        }
      }
      #expect(parts[0]?.0 == parts[1]?.0, "of \(length) bytes")
      #expect(parts[0]?.1 == parts[1]?.1, "of \(length) bytes")
    }
  }
}
