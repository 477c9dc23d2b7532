// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankExport

/// The search for settings at which a GIF or WebP fits a file size.
struct AnimatedImageSearchTests {
  private static let frame = VideoSize(width: 64, height: 48)

  @Test(arguments: [VideoEncoding.gif, .webp(), .webp(quality: 50), .webp(quality: 20)])
  func `Finds the best GIF or WebP settings within a file size limit`(encoding: VideoEncoding)
    throws
  {
    let steps = AnimatedImageSearch(limit: 1, encoding).steps
    #expect(Set(steps).count == steps.count && steps[0].sixteenths == 16)
    for best in steps.indices {
      var search = AnimatedImageSearch(limit: 1_000, encoding)
      var found: ExportReport.FileLength?
      while found == nil {
        let position = try #require(steps.firstIndex(of: search.step))
        let size: Int64 = position < best ? 1_001 : 1_000
        found = try search.kept(size, frame: Self.frame, path: "a")
      }
      let kept = try #require(found)
      #expect(search.step == steps[best], "step \(best)")
      #expect(kept.quality == steps[best].quality && kept.colorCount == steps[best].colorCount)
      #expect(kept.crf == nil && kept.width == 64 && kept.byteCount == 1_000)
      #expect(kept.attemptCount <= (best == 0 ? 1 : 6), "step \(best): \(kept.attemptCount)")
    }
    var search = AnimatedImageSearch(limit: 1_000, encoding)
    let error = #expect(throws: MediaError.self) {
      while try search.kept(1_001, frame: Self.frame, path: "a.gif") == nil {}
    }
    #expect(error?.code == .fileLengthRefused)
  }

  @Test func `A GIF or WebP size search ends even if file sizes are random`() throws {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<500 {
      var search = AnimatedImageSearch(limit: 1_000, .gif)
      var (sizes, attemptCount): ([AnimatedImageSearch.Step: Int64], Int) = ([:], 0)
      do throws(MediaError) {
        while true {
          attemptCount += 1
          let size = sizes[search.step] ?? .random(in: 500...1_500, using: &random)
          sizes[search.step] = size
          if let kept = try search.kept(size, frame: Self.frame, path: "a.gif") {
            #expect(kept.byteCount <= 1_000)
            break
          }
        }
      } catch { #expect(error.code == .fileLengthRefused) }
      #expect(attemptCount <= search.steps.count)
    }
  }

  @Test(arguments: [VideoEncoding.gif, .webp()])
  func `Export shrinks a GIF or WebP until it fits the size limit`(encoding: VideoEncoding) throws {
    let directory = try Scratch()
    let format = try #require(LibAVPixelFormat(named: "bgr0"))
    var random = SeededGenerator(seed: 7)
    let frames = try (0..<10).map { _ in
      try FrameSamples.frame(width: 64, height: 48, format) { _, x, y in
        Int(x + y) + Int.random(in: 0..<120, using: &random)
      }
    }
    let asset = try Asset.lossless(frames, rate: 30, at: directory.file("source.mov"))
    let name = encoding == .gif ? "a.gif" : "a.webp"
    func export(_ limit: Int64?) throws -> ExportReport {
      var settings = ExportSettings(
        path: directory.file(name), mode: .constant(30, RenderSettings(encoding: encoding)))
      settings.fileLengthLimit = limit
      settings.overwrites = true
      return try ExportSession(try Composition(asset), of: asset).export(settings)
    }
    _ = try export(nil)
    let full = Int64(try bytes(of: directory.file(name)).count)
    for share in [100, 80, 30, 12] as [Int64] {
      let limit = full * share / 100
      let report = try export(limit)
      let found = try #require(report.fileLength)
      let file = try bytes(of: report.path)
      #expect(file.count == Int(found.byteCount) && found.byteCount <= limit)
      #expect(share < 100 || (found.attemptCount == 1 && found.width == 64))
      #expect(share > 12 || (found.width ?? 64) < 64, "\(found)")
      #expect(report.framesEncoded == 10)
      if encoding == .gif {
        let track = try #require(try Asset(path: report.path).videoTrack)
        #expect(track.width == found.width && track.height == found.height)
        let colors = try #require(found.colorCount)
        #expect(colors <= 255 && (found.width == 64 || colors == 64))
        let starts = try (0..<10).map { try track.frames.time(ofFrame: Int64($0)) }
        let nearest = (0..<Int64(10)).map { slot in MediaTime((slot * 200 + 30) / 60, over: 100) }
        #expect(starts == nearest)
      } else {
        let image = try #require(try AnimatedWebP(file))
        #expect(image.width == found.width && image.height == found.height)
        #expect(image.frames.map(\.milliseconds).reduce(0, +) == 333)
      }
    }
    let error = #expect(throws: MediaError.self) { try export(100) }
    #expect(error?.code == .fileLengthRefused)
  }
}
