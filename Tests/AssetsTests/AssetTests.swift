// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// The properties that a movie file states.
struct AssetTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func asset(_ recipe: MovieRecipe) throws -> Asset {
    try recipe.asset(at: directory.file("clip.\(recipe.container)"))
  }

  @Test func `A 4 s clip at 240 fps has 960 frames and ends at 4 s`() throws {
    let recipe = MovieRecipe.constant(240, count: 960)
    let asset = try asset(recipe)
    let video = try #require(asset.videoTrack)
    #expect(asset.container == "mov")
    #expect(asset.duration == MediaTime(seconds: 4))
    #expect(video.codec == .mjpeg)
    #expect(video.width == PaintedBlocks.width && video.height == PaintedBlocks.height)
    #expect(video.frameCount == 960)
    #expect(video.timescale == 1_000_000)
    #expect(video.frames.entries.map(\.ticks) == recipe.times)
    #expect(video.frames.entries.map(\.decodeIndex) == Array(0..<960))
    #expect(video.frames.entries.allSatisfy { $0.isKeyFrame })
    #expect(asset.audioTrack == nil)
    #expect(asset.captureFrameRate == nil)
    #expect(asset.chapters.isEmpty)
  }

  @Test func `Frame durations may differ by one tick at a constant rate`() throws {
    let even = try #require(try asset(.constant(240, count: 100)).videoTrack)
    #expect(!even.frames.isVariable)
    #expect(even.nominalFrameRate == (FrameRate(240)))
    var recipe = MovieRecipe.constant(240, count: 100)
    recipe.times[50] += 2
    let uneven = try #require(try asset(recipe).videoTrack)
    #expect(uneven.frames.isVariable)
  }

  @Test(arguments: [(24_000, 1_001), (60_000, 1_001), (240_000, 1_001), (30, 1), (1_000, 1)])
  func `The nominal frame rate is exact despite rounded frame times`(
    numerator: Int64, denominator: Int64
  ) throws {
    var recipe = MovieRecipe()
    recipe.timescale = 1_000_000
    recipe.times = (0..<90).map {
      (2 * $0 * denominator * 1_000_000 + numerator) / (2 * numerator)
    }
    recipe.end = (2 * 90 * denominator * 1_000_000 + numerator) / (2 * numerator)
    let video = try #require(try asset(recipe).videoTrack)
    #expect(video.nominalFrameRate == (FrameRate(Int(numerator), over: Int(denominator))))
  }

  @Test func `The average frame rate is an exact fraction`() throws {
    var recipe = MovieRecipe.constant(240, count: 961)
    recipe.times[7] += 3
    recipe.end = 4_004_171
    let frames = try #require(try asset(recipe).videoTrack).frames
    #expect(frames.averageFrameRate?.description == "961000000/4004171")
    #expect(frames.isVariable)
  }

  @Test func `A frame is visible until the tick of the next frame`() throws {
    var recipe = MovieRecipe()
    recipe.timescale = 90_000
    recipe.times = [0, 375, 9_000, 9_001]
    recipe.end = 90_000
    let frames = try #require(try asset(recipe).videoTrack).frames
    #expect(frames.entries.map(\.duration) == [375, 8_625, 1, 80_999])
    func index(_ value: Int64, _ timescale: Int32) throws -> Int? {
      frames.index(at: MediaTime(value, over: timescale))
    }
    #expect(try index(0, 1) == 0)
    #expect(try index(374, 90_000) == 0)
    #expect(try index(375, 90_000) == 1)
    // Just before and just after the instant of a tick, in a finer timescale.
    #expect(try index(899_999, 9_000_000) == 1)
    #expect(try index(900_000, 9_000_000) == 2)
    #expect(try index(89_999, 90_000) == 3)
    #expect(try index(1, 1) == nil)
    #expect(try index(-1, 90_000) == nil)
    #expect(try frames.time(ofFrame: 4) == MediaTime(seconds: 1))
    #expect(throws: MediaError.self) { try frames.time(ofFrame: 5) }
  }

  @Test func `Reordered frames are listed in presentation order`() throws {
    let recipe = MovieRecipe.constant(240, count: 61).h264(gop: 20, reordered: true)
    let asset = try asset(recipe)
    let entries = try #require(asset.videoTrack).frames.entries
    #expect(entries.map(\.ticks) == recipe.times)
    #expect(Set(entries.map(\.decodeIndex)) == Set(0..<61))
    #expect(entries.map(\.decodeIndex) != Array(0..<61))
    #expect(entries.indices.filter { entries[$0].isKeyFrame } == [0, 20, 40, 60])
    #expect(asset.duration == (MediaTime(recipe.end, over: 1_000_000)))
  }

  @Test(arguments: [59, 60, 61, 62])
  func `A movie with B-frames ends at its stated duration`(count: Int64) throws {
    var recipe = MovieRecipe.constant(240, count: count).h264(gop: 20, reordered: true)
    // The last frame is shown for a second, unlike all other frames.
    recipe.end = (recipe.times.last ?? 0) + 1_000_000
    let asset = try asset(recipe)
    #expect(asset.duration == (MediaTime(recipe.end, over: 1_000_000)))
  }

  @Test func `Frames hidden by an edit list are not counted`() throws {
    var recipe = MovieRecipe.constant(240, count: 60).h264(gop: 60, reordered: false)
    let hidden = recipe.times[24]
    recipe.times = recipe.times.map { $0 - hidden }
    recipe.end -= hidden
    let asset = try asset(recipe)
    let frames = try #require(asset.videoTrack).frames
    #expect(frames.entries.map(\.ticks) == Array(recipe.times[24...]))
    #expect(frames.entries.first?.decodeIndex == 24)
    #expect(asset.duration == (MediaTime(recipe.end, over: 1_000_000)))
    var reader = try FrameReader(asset)
    let first = try reader.mediaFrame(at: 0)
    #expect(PaintedBlocks.number(in: first) == 24)
  }

  @Test func `Reads the location tag and rotation and capture frame rate`() throws {
    var recipe = MovieRecipe.constant(30, count: 10)
    recipe.metadata = [
      "com.overcrank.capture_frame_rate": "240000/1001", "com.android.capture.fps": "239.76",
      "location": "+52.5000+013.4000/",
    ]
    // A quarter turn clockwise, in 16.16 and 2.30 fixed point.
    recipe.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
    let asset = try asset(recipe)
    #expect(asset.videoTrack?.rotation == 90)
    #expect(asset.metadata["location"] == "+52.5000+013.4000/")
    let capture = try #require(asset.captureFrameRate)
    #expect(capture.rate == (FrameRate(240_000, over: 1_001)))
    #expect(capture.source == "com.overcrank.capture_frame_rate")
  }

  @Test(arguments: [("240.000000", "240/1"), ("239.76", "240000/1001"), ("59.94", "60000/1001")])
  func `The Android tag gives the capture rate if no other tag does`(
    text: String, rate: String
  ) throws {
    var recipe = MovieRecipe.constant(30, count: 3)
    recipe.metadata = ["com.android.capture.fps": text]
    let capture = try #require(try asset(recipe).captureFrameRate)
    #expect(capture.rate.description == rate)
    #expect(capture.source == "com.android.capture.fps")
  }

  @Test(arguments: ["", "fast", "0/1", "-240", "1/0", "99999999999999999999"])
  func `An invalid capture rate tag gives no capture rate`(text: String) throws {
    var recipe = MovieRecipe.constant(30, count: 3)
    recipe.metadata = ["com.overcrank.capture_frame_rate": text]
    #expect(try asset(recipe).captureFrameRate == nil)
  }

  @Test func `A truncated fragmented movie is readable to the truncation`() throws {
    var recipe = MovieRecipe.constant(240, count: 240)
    recipe.fragmentMicroseconds = 250_000
    let whole = directory.file("whole.mov")
    try recipe.write(to: whole)
    #expect(try Asset(path: whole).videoTrack?.frameCount == 240)
    let content = try bytes(of: whole)
    let path = try directory.write(Array(content.prefix(content.count * 6 / 10)), as: "killed.mov")
    let asset = try Asset(path: path)
    let frames = try #require(asset.videoTrack).frames
    let count = frames.entries.count
    #expect((120..<180).contains(count))
    #expect(frames.entries.map(\.ticks) == Array(recipe.times.prefix(count)))
    var reader = try FrameReader(asset)
    for index in 0..<count {
      #expect(try PaintedBlocks.number(in: reader.mediaFrame(at: index)) == index)
    }
  }
}
