// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Seeded recordings and passthrough exports of them: media, times, tags and boxes.
@Suite(.enabled(if: FFmpeg.isInstalled))
struct WrittenMovieTests {
  private static let groups = 4
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private struct Sample: Equatable {
    let time: Rational
    let isKeyFrame: Bool
    let bytes: [UInt8]
  }

  /// The samples of each track in the order of the file; times are in seconds after the first frame.
  private func samples(_ asset: Asset) throws -> [[Sample]] {
    var demuxer = try Demuxer(opening: asset.path)
    let bases = demuxer.tracks.map(\.timeBase)
    var samples = bases.map { _ in [Sample]() }
    while let packet = try demuxer.nextPacket() {
      let ticks = try #require(packet.pts)
      samples[packet.trackIndex].append(
        Sample(
          time: Rational(ticks) * bases[packet.trackIndex] - asset.origin,
          isKeyFrame: packet.isKeyFrame, bytes: packet.withBytes { [UInt8]($0) }))
    }
    return samples
  }

  private func recipe(_ random: inout SeededGenerator) -> MovieRecipe {
    var recipe = MovieRecipe.constant(
      [30, 60, 240].randomElement(using: &random) ?? 30,
      count: .random(in: 250...300, using: &random),
      timescale: [90_000, 240_000, 1_000_000].randomElement(using: &random) ?? 90_000)
    (recipe.width, recipe.height) = (64, 48)
    recipe.container = Bool.random(using: &random) ? "mov" : "mp4"
    // Some frames are missing.
    let lost = Set((0..<3).map { _ in Int.random(in: 1..<recipe.times.count, using: &random) })
    recipe.times = recipe.times.enumerated().filter { !lost.contains($0.offset) }.map(\.element)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: break
    case 1 where recipe.container == "mov":
      (recipe.codec, recipe.pixelFormat) = ("ffv1", .yuv420p)
    case 2: recipe = recipe.h264(gop: 12, reordered: true)
    default: recipe = recipe.h264(gop: 12, reordered: false)
    }
    recipe.metadata = [
      "title": "seeded \(Int.random(in: 0...999, using: &random))", "make": "Größe",
    ]
    if Bool.random(using: &random) { recipe.metadata["com.android.capture.fps"] = "240.000000" }
    if Bool.random(using: &random) { recipe.language = "ger" }
    if Bool.random(using: &random) {
      recipe.displayMatrix = [0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30]
    }
    recipe.hasIndexInFront = Bool.random(using: &random)
    if Bool.random(using: &random) {
      var audio = MovieRecipe.Audio()
      audio.codec = recipe.container == "mov" && Bool.random(using: &random) ? "pcm_s16le" : "aac"
      audio.sampleCount = Int(recipe.end * 48_000 / Int64(recipe.timescale))
      audio.clicks = [4_800]
      recipe.audio = audio
    }
    return recipe
  }

  /// Writes a plain movie, a fragmented one, or a fragmented one that is then finished in place.
  private func take(_ recipe: MovieRecipe, _ random: inout SeededGenerator) throws -> Asset {
    var recipe = recipe
    let form = Int.random(in: 0..<3, using: &random)
    if form > 0 { recipe.fragmentMicroseconds = 150_000 }
    let path = directory.file("take-\(random.next()).\(recipe.container)")
    try recipe.write(to: path)
    if form == 2 {
      let movie = try MovieFinalizer(RandomAccessFile(opening: path).file)
      _ = try movie.finish(
        ends: [.at(recipe.end)] + (recipe.audio.map { [.at(Int64($0.sampleCount))] } ?? []),
        tags: recipe.metadata, chapters: [])
    }
    return try Asset(path: path)
  }

  private func compareWhole(_ asset: Asset, _ copy: Asset) throws {
    let (taken, copied) = (try samples(asset), try samples(copy))
    let isSame = taken == copied
    #expect(isSame, "\(asset.path)")
    for (key, value) in asset.metadata
    where !["encoder", "major_brand", "minor_version", "compatible_brands"].contains(key) {
      let found = copy.metadata[key] ?? "nothing"
      #expect(key == "comment" || found == value, "\(key) of \(asset.path)")
    }
    for number in taken.indices {
      let stored = try [asset, copy].map {
        try #require(SourceDescriptions(ofTrack: number, in: $0.path)).descriptions
      }
      #expect(stored[0] == stored[1], "track \(number) of \(asset.path)")
    }
  }

  /// Compares a retimed copy with the packets and the times that its composition asks for.
  private func compare(
    _ asset: Asset, _ composition: Composition, _ copy: Asset, _ report: ExportReport
  ) throws {
    let video = try #require(asset.videoTrack).format.index
    let (taken, copied) = (try samples(asset)[video], try samples(copy)[0])
    let expected = report.copies.flatMap { range in
      taken[Int(range.firstPacket)..<Int(range.firstPacket + range.packetCount)].map(\.bytes)
    }
    let isSame = expected == copied.map(\.bytes)
    #expect(isSame, "\(asset.path): \(expected.count) and \(copied.count) packets")
    guard report.framesHidden == 0 else { return }
    let shown = try composition.shownTimes(of: asset).map(\.time)
    let times = try copy.times()
    let slack = Rational(1, over: 100_000)
    let isTimed =
      shown.count == times.count
      && zip(shown, times).allSatisfy { ($0 - shown[0] - $1).magnitude <= slack }
    let isRamp = composition.segments.contains { $0.mapping?.line == nil }
    #expect(isRamp || isTimed, "\(asset.path): \(shown.count) and \(times.count) times")
  }

  @Test(arguments: 0..<groups)
  func `Recordings and copies keep media and times and tags`(group: Int) async throws {
    var paths: [String] = []
    for seed in 1...RunSize.cases(40, full: 500) where seed % Self.groups == group {
      var random = SeededGenerator(seed: UInt64(seed))
      let asset = try take(recipe(&random), &random)
      let isWhole = Bool.random(using: &random)
      let composition =
        isWhole ? try Composition(asset) : try .random(asset, seed: UInt64(seed))
      var settings = ExportSettings(
        path: directory.file("copy-\(seed).\(isWhole ? asset.path.suffix(3) : "mov")"),
        mode: .passthrough(boundary: .squeeze))
      settings.overwrites = true
      let report = try await ExportSession(composition, of: asset).export(settings)
      let copy = try Asset(path: report.path)
      if isWhole {
        try compareWhole(asset, copy)
      } else {
        try compare(asset, composition, copy, report)
      }
      for path in [asset.path, report.path] {
        let warnings = try await MovieCheck.warnings(path)
        #expect(warnings == "", "seed \(seed): \(warnings)")
      }
      paths += [asset.path, report.path]
    }
    let faults = try await MovieCheck.boxes(paths)
    #expect(faults == "", "\(faults)")
  }
}
