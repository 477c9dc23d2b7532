// SPDX-License-Identifier: Apache-2.0

import OvercrankAnalysis
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport

extension FuzzCases {
  /// The error for a wrong result of `retime --for opencv` or `sync -o`.
  private struct WrongResult: Error, CustomStringConvertible {
    let description: String
  }

  /// Opens a damaged movie.
  ///
  /// Exports it for programs that seek by frame number, or as a project of two recordings.
  func damagedSource(_ random: inout SeededGenerator) throws -> String {
    let movie = movies[Int.random(in: 0..<movies.count, using: &random)]
    var mutation = Mutation(random: random)
    let bytes = mutation.movie(movie.bytes, index: movie.index)
    random = mutation.random
    let asset = try Asset(path: directory.write(bytes, as: "s-\(movie.name)"))
    return try "\(movie.name) "
      + (Bool.random(using: &random)
        ? exportForSeeking(asset, &random) : synchronizedProject(asset, &random))
  }

  /// Exports at a constant frame rate, with filled gaps that are marked.
  private func exportForSeeking(
    _ asset: Asset, _ random: inout SeededGenerator
  ) throws -> String {
    let rates: [FrameRate] = [240, 7, FrameRate(60_000, over: 1_001)]
    let given = rates.randomElement(using: &random) ?? 7
    let rate = TimingAudit.constantFrameRate(of: asset) ?? given
    var settings = ExportSettings(
      path: directory.file("seek.mov"), mode: .constant(rate, RenderSettings(encoding: .mjpeg)))
    settings.overwrites = true
    // A damaged movie may state a duration of years, so progress checks are counted.
    var checks = 0
    let report: ExportReport
    do throws(MediaError) {
      report = try ExportSession(Composition(asset), of: asset).export(
        settings,
        isCancelled: {
          checks += 1
          return checks > 300
        })
    } catch {
      guard error.code != .cancelled else { return "for seeking: cancelled" }
      throw error
    }
    let rows = try Asset(path: report.path).frameTimingRows(copiedFrom: asset.frameTimingRows())
    guard Int64(rows.count) == report.framesEncoded else {
      throw WrongResult(description: "\(rows.count) rows of \(report.framesEncoded) frames")
    }
    return "for seeking: \(rows.count) frames"
  }

  /// Makes a project of two recordings at a random time offset, and reads it again.
  private func synchronizedProject(
    _ asset: Asset, _ random: inout SeededGenerator
  ) throws -> String {
    let offset = MediaTime(
      .random(in: Bool.random(using: &random) ? -500...500 : Int64.min...Int64.max, using: &random),
      over: .random(in: 1...100_000, using: &random))
    let recordings = [
      SynchronizedRecording(assets[0]), SynchronizedRecording(asset, offset: offset),
    ]
    let composition = try Composition(synchronizing: recordings)
    let text = try OpenTimelineDocument(composition, name: "fuzz").text()
    let sources = [assets[0], asset]
    let read = try OpenTimelineDocument(parsing: text) { (path) throws(MediaError) in
      try (sources.first { $0.path == path } ?? asset).mediaSource()
    }
    guard read.composition.duration == composition.duration else {
      throw WrongResult(
        description: "\(read.composition.duration) instead of \(composition.duration)")
    }
    return "project of two recordings"
  }
}
