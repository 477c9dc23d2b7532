// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// An export in shards.
///
/// Any number of shards gives the same file, with every frame once.
struct ShardTests {
  private let directory: Scratch
  private let asset: Asset
  private let composition: Composition
  /// 35 s at 5 fps are 18 GOPs: 17 of 10 frames, and the last of 5.
  private static let (frameCount, groupLength) = (175, 10)

  init() throws {
    directory = try Scratch()
    var recipe = MovieRecipe.constant(20, count: 400).h264(gop: 50, reordered: true)
    var audio = MovieRecipe.Audio()
    audio.sampleCount = 20 * 48_000
    audio.clicks = (1..<20).map { $0 * 48_000 }
    recipe.audio = audio
    asset = try Asset.made(recipe, in: directory)
    composition = try asset.retimed([(range(5_000, 10_000), speed(1, 4))])
  }

  private var session: ExportSession { ExportSession(composition, of: asset) }

  private func settings(
    _ name: String, _ codec: VideoEncoding = .h264(EncoderSettings(preset: "superfast")),
    container: String = "mov"
  ) throws -> ExportSettings {
    let output = directory.file(name)
    try FileManager.default.createDirectory(
      atPath: output, withIntermediateDirectories: true)
    var settings = ExportSettings(
      path: "\(output)/movie.\(container)", mode: .constant(FrameRate(5)))
    settings.render { $0.encoding = codec }
    settings.audioTimePitchAlgorithm = .varispeed
    settings.part = .joined
    settings.digest = try session.digest(settings, version: "1")
    return settings
  }

  private func shard(_ number: Int, _ count: Int) throws -> ExportShard {
    try #require(ExportShard(exactly: number, of: count))
  }

  /// Makes some shards of an export, and returns their paths.
  @discardableResult
  private func make(
    _ numbers: some Sequence<Int>, of count: Int, _ settings: ExportSettings
  ) throws -> [String] {
    try numbers.map {
      var part = settings
      part.part = .shard(try shard($0, count))
      return try session.export(part).path
    }
  }

  private func refusal(_ settings: ExportSettings) -> MediaError? {
    do throws(MediaError) { try session.export(settings) } catch { return error }
    return nil
  }

  @Test func `Export shards join to the same file for any shard count`() throws {
    var files: [[UInt8]] = []
    var path = ""
    for count in [1, 2, 3, 8, 17] {
      let settings = try settings("\(count)")
      // The shards are made in reverse order.
      try make((1...count).reversed(), of: count, settings)
      let report = try session.export(settings)
      #expect(report.framesEncoded == Int64(Self.frameCount))
      files.append(try bytes(of: report.path))
      path = report.path
    }
    #expect(files.allSatisfy { $0 == files[0] })
    let joined = try Asset(path: path)
    // Each output frame shows the last source frame that is due.
    let shown = try composition.shownTimes(of: asset, isForSlots: true)
    let numbers = try joined.numbers()
    #expect(numbers.count == Self.frameCount)
    for (slot, time) in try joined.times().enumerated() {
      #expect(time == Rational(Int128(slot), over: 5))
      #expect(numbers[slot] == shown.last { $0.time <= time }?.index, "frame \(slot)")
    }
    #expect(joined.duration == MediaTime(seconds: 35))
    // Each GOP can be decoded independently.
    let entries = try #require(joined.videoTrack).frames.entries
    for (slot, entry) in entries.enumerated() {
      let group = slot / Self.groupLength
      #expect(entry.decodeIndex / Self.groupLength == group)
      if slot % Self.groupLength == 0 {
        #expect(entry.isKeyFrame && entry.decodeIndex == slot)
      }
    }
    // The audio equals that of an export without shards.
    var whole = try settings("whole")
    whole.part = .whole
    #expect(try Asset(path: session.export(whole).path).audio() == joined.audio())
  }

  // An MP4 file also states the bit rate of the whole video.
  @Test(arguments: [
    (VideoEncoding.h264(), "mp4"), (.hevc(EncoderSettings(preset: "ultrafast")), "mp4"),
    (.ffv1, "mov"), (.mjpeg, "mov"),
  ])
  func `Export shards of every video codec can be joined`(
    codec: VideoEncoding, container: String
  ) throws {
    var files: [[UInt8]] = []
    for count in [1, 5] {
      let settings = try settings("\(count)", codec, container: container)
      try make(1...count, of: count, settings)
      let report = try session.export(settings)
      files.append(try bytes(of: report.path))
      #expect(try Asset(path: report.path).numbers().count == Self.frameCount)
    }
    #expect(files[0] == files[1])
  }

  @Test func `An error names the missing or damaged or unrelated shard`() throws {
    let settings = try settings("movie")
    let paths = try make(1...4, of: 4, settings)
    let good = try bytes(of: paths[2])
    func refused(_ code: MediaError.Code, _ recovery: String = "make shard 3/4 again, then join")
      throws
    {
      let error = try #require(refusal(settings))
      #expect(error.code == code)
      #expect(error.recoverySuggestion == recovery)
      #expect(!FileManager.default.fileExists(atPath: settings.path))
    }
    func replace(_ bytes: [UInt8]) throws {
      try Data(bytes).write(to: URL(fileURLWithPath: paths[2]))
    }
    try FileManager.default.removeItem(atPath: paths[2])
    try refused(.shardMissing)
    for offset in [good.count / 2, good.count - 1] {
      var damaged = good
      damaged[offset] ^= 1
      try replace(damaged)
      try refused(.shardDamaged)
    }
    try replace(Array(good.prefix(good.count * 2 / 3)))
    try refused(.shardDamaged)
    try replace(try bytes(of: asset.path))
    try refused(.shardForeign)
    #expect(refusal(try part(3, settings))?.code == .outputExists)
    try replace(try bytes(of: paths[1]))
    try refused(.shardForeign)
    try FileManager.default.removeItem(atPath: paths[0])
    try refused(.shardMissing, "make the shards 1/4, 3/4 again, then join")
    // Making the shards that the error names again is enough to join.
    try make([1, 3], of: 4, settings)
    #expect(try session.export(settings).framesEncoded == Int64(Self.frameCount))
    #expect(session.isFinished(settings))
    #expect(try bytes(of: paths[2]) == good)
  }

  private func part(_ number: Int, _ settings: ExportSettings) throws -> ExportSettings {
    var part = settings
    part.part = .shard(try shard(number, 4))
    return part
  }

  @Test func `Shards of an export with different settings are not joined`() throws {
    let settings = try settings("movie")
    try make(1...4, of: 4, settings)
    #expect(session.isFinished(try part(2, settings)))
    var other = settings
    other.render { $0.encoding = .h264(EncoderSettings(crf: 30)) }
    other.digest = try session.digest(other, version: "1")
    #expect(other.digest != settings.digest)
    #expect(try !session.isFinished(part(2, other)))
    #expect(refusal(other)?.code == .shardForeign)
    var newer = settings
    newer.digest = try session.digest(settings, version: "2")
    #expect(refusal(newer)?.code == .shardForeign)
  }

  @Test func `Shards of older settings do not block joining newer shards`() throws {
    var older = try settings("movie")
    older.render { $0.encoding = .h264(EncoderSettings(crf: 30)) }
    older.digest = try session.digest(older, version: "1")
    try make(1...2, of: 2, older)
    let settings = try settings("movie")
    try make(1...2, of: 3, settings)
    #expect(refusal(settings)?.code == .shardForeign)
    try make([3], of: 3, settings)
    #expect(try session.export(settings).framesEncoded == Int64(Self.frameCount))
    // The shards of the older settings can still be joined, too.
    older.overwrites = true
    #expect(try session.export(older).framesEncoded == Int64(Self.frameCount))
  }

  @Test func `A title tag that looks like a shard checksum is kept`() throws {
    var recipe = MovieRecipe.constant(20, count: 100).h264(gop: 50, reordered: true)
    recipe.metadata = ["title": "sha256:" + String(repeating: "a", count: 64), "zz": "sha256:"]
    let tagged = try Asset.made(recipe, in: directory, "tagged")
    #expect(tagged.metadata["title"]?.hasPrefix("sha256:") == true)
    let session = ExportSession(try Composition(tagged), of: tagged)
    var settings = try settings("movie")
    settings.digest = try session.digest(settings, version: "1")
    for number in 1...2 {
      settings.part = .shard(try shard(number, 2))
      let path = try session.export(settings).path
      #expect(session.isFinished(settings))
      #expect(try Asset(path: path).metadata["title"] == nil)
    }
    settings.part = .joined
    #expect(try Asset(path: session.export(settings).path).metadata["title"] != nil)
  }

  @Test func `Invalid shard settings are refused before a file is created`() throws {
    let settings = try settings("movie")
    #expect(refusal(settings)?.code == .shardMissing)
    var refused = settings
    refused.part = .shard(try shard(1, 19))
    #expect(refusal(refused)?.code == .shardRefused)
    refused.part = .shard(try shard(1, 2))
    refused.undecodableFrames = .skip
    #expect(refusal(refused)?.code == .shardRefused)
    refused.undecodableFrames = .stop
    refused.mode = .passthrough()
    #expect(refusal(refused)?.code == .shardRefused)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("movie")) == [])
    for (number, count) in [(0, 1), (2, 1), (1, 0), (-1, 3)] {
      #expect(ExportShard(exactly: number, of: count) == nil)
    }
  }
}
