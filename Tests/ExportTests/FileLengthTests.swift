// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports with a file size limit.
struct FileLengthTests {
  /// A model of an encoder.
  ///
  /// Audio and headers have a fixed size, and the size of the video falls as the CRF rises.
  private struct Model {
    let fixed: Double
    let video: Double
    /// The increases of the CRF that halve the video size, below and above a CRF of 30.
    let halving: (Double, Double)

    func size(_ crf: Double) -> Int64 {
      let octaves = min(crf, 30) / halving.0 + max(0, crf - 30) / halving.1
      return Int64(fixed + video * exp2(-octaves))
    }
  }

  /// Runs a file size search; nil if the file size limit was refused.
  private func search(_ model: Model, _ limit: Int64, crf: Int = 18) throws
    -> ExportReport.FileLength?
  {
    var search = FileLengthSearch(limit: limit, crf: crf)
    for _ in 0..<20 {
      do throws(MediaError) {
        if let kept = try search.kept(model.size(search.crf), path: "a.mp4") { return kept }
      } catch {
        #expect(error.code == .fileLengthRefused)
        return nil
      }
    }
    throw Unexpected(description: "the search does not end")
  }

  @Test func `A file size search fills 90 percent of the limit in 10 tries`()
    throws
  {
    var random = SeededGenerator(seed: 28)
    var maximum = 0
    for _ in 0..<2_000 {
      let model = Model(
        fixed: .random(in: 0...200_000, using: &random),
        video: .random(in: 1e5...1e9, using: &random),
        halving: (.random(in: 3...9, using: &random), .random(in: 3...9, using: &random)))
      let limit = Int64.random(in: 10_000...10_000_000, using: &random)
      guard let found = try search(model, limit) else {
        #expect(model.size(51) > limit)
        continue
      }
      maximum = max(maximum, found.attemptCount)
      let crf = try #require(found.crf)
      #expect(found.byteCount <= limit && found.byteCount == model.size(crf))
      #expect(found.crf == 18 || found.byteCount * 10 >= limit * 9, "\(model) \(limit)")
    }
    print("maximum attempts: \(maximum)")
    #expect(maximum <= 10)
  }

  @Test func `If file sizes jump past the limit the smaller file is kept`() throws {
    var search = FileLengthSearch(limit: 1_000, crf: 18)
    var kept: ExportReport.FileLength?
    while kept == nil { kept = try search.kept(search.crf < 33.3 ? 2_000 : 500, path: "a.mp4") }
    let found = try #require(kept)
    #expect(found.byteCount == 500 && found.attemptCount <= 10)
    #expect((33.3...34.5).contains(try #require(found.crf)))
  }

  private func export(
    _ asset: Asset, _ directory: Scratch, limit: Int64, _ encoding: VideoEncoding
  ) throws -> ExportReport {
    var settings = ExportSettings(
      path: directory.file("out.mp4"),
      mode: .constant(FrameRate(30), RenderSettings(encoding: encoding)))
    settings.fileLengthLimit = limit
    settings.overwrites = true
    return try ExportSession(Composition(asset), of: asset).export(settings)
  }

  private func noise(_ directory: Scratch) throws -> Asset {
    var recipe = MovieRecipe.constant(30, count: 45)
    recipe.height += 96
    recipe.hasNoise = true
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 24_000
    return try Asset.made(recipe, in: directory)
  }

  @Test(arguments: [VideoEncoding.h264(EncoderSettings(preset: "veryfast")), .hevc()])
  func `Export encodes a movie again until it fits the size limit`(encoding: VideoEncoding) throws {
    let directory = try Scratch()
    let asset = try noise(directory)
    let whole = try export(asset, directory, limit: .max, encoding)
    let full = try #require(whole.fileLength)
    #expect(full.attemptCount == 1 && full.crf == 18)
    for share in [80, 50, 30] as [Int64] {
      let limit = full.byteCount * share / 100
      let report = try export(asset, directory, limit: limit, encoding)
      let found = try #require(report.fileLength)
      print("\(found.byteCount) of \(limit) bytes, \(found.attemptCount) attempts")
      #expect(found.byteCount <= limit && found.byteCount * 10 >= limit * 9)
      #expect(try bytes(of: report.path).count == Int(found.byteCount))
      #expect(try Asset(path: report.path).numbers() == Array(0..<45))
    }
  }

  @Test func `An unreachable file size limit keeps the old output file`() throws {
    let directory = try Scratch()
    let asset = try noise(directory)
    let old = try directory.write(Array("old".utf8), as: "out.mp4")
    let error = #expect(throws: MediaError.self) {
      try export(asset, directory, limit: 2_000, .h264())
    }
    #expect(error?.code == .fileLengthRefused)
    #expect(error?.message.contains("2000 bytes") == true, "\(error.debugDescription)")
    #expect(try bytes(of: old) == Array("old".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 2)
  }

  @Test func `A file size limit needs an encoding with a quality setting`() throws {
    let directory = try Scratch()
    let asset = try Asset.made(.constant(30, count: 4), in: directory)
    let session = ExportSession(try Composition(asset), of: asset)
    let modes: [ExportMode] = [
      .passthrough(), .constant(30, RenderSettings(encoding: .mjpeg)),
      .constant(30, RenderSettings(encoding: .ffv1)),
    ]
    for mode in modes {
      var settings = ExportSettings(path: directory.file("out.mov"), mode: mode)
      settings.fileLengthLimit = 1_000_000
      let error = #expect(throws: MediaError.self) { try session.plan(settings) }
      #expect(error?.code == .fileLengthRefused)
    }
  }
}
