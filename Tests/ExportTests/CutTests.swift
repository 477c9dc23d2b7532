// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Compositions that start late, end early, jump or repeat.
///
/// They are copied if possible, or refused with the nearest possible cuts.
struct CutTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private var settings: ExportSettings {
    settings(.keyframe)
  }

  private func settings(_ boundary: CutPolicy) -> ExportSettings {
    var settings = ExportSettings(path: directory.file("cut.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: boundary)
    return settings
  }

  /// A movie of two seconds at 100 fps.
  ///
  /// In H.264 it has a key frame every 0.2 s.
  private func asset(_ kind: Kind) throws -> Asset {
    let recipe = MovieRecipe.constant(100, count: 200)
    switch kind {
    case .mjpeg: return try .made(recipe, in: directory)
    case .plain: return try .made(recipe.h264(gop: 20, reordered: false), in: directory)
    case .reordered: return try .made(recipe.h264(gop: 20, reordered: true), in: directory)
    case .openGOP:
      return try .made(
        recipe.h264(
          gop: 20, reordered: true,
          options: ["x264-params": "bframes=2:b-adapt=0:b-pyramid=none:ref=2:open-gop=1"]),
        in: directory)
    }
  }

  enum Kind: CaseIterable { case mjpeg, plain, reordered, openGOP }

  /// Exports ranges and returns the frames that the result shows, by their painted numbers.
  private func numbers(_ kind: Kind, _ ranges: [(Int64, Int64)]) throws -> [Int?] {
    let asset = try asset(kind)
    let composition = try composition(of: asset, ranges)
    let report = try ExportSession(composition, of: asset).export(settings)
    let result = try Asset(path: report.path)
    #expect(result.duration == composition.duration)
    #expect(report.framesCopied == Int64(result.videoTrack?.frameCount ?? 0))
    #expect(report.maxTimeError.wholeNanoseconds == 0)
    let wanted = try composition.shownTimes(of: asset)
    #expect(try result.times() == wanted.map(\.time))
    #expect(try result.numbers() == wanted.map(\.index))
    return try result.numbers()
  }

  @Test func `Motion JPEG is cut at any frame without encoding`() throws {
    let found = try numbers(.mjpeg, [(1_230, 1_260), (40, 70), (40, 70)])
    #expect(found == [123, 124, 125, 4, 5, 6, 4, 5, 6])
  }

  @Test func `A cut during a frame keeps the remaining frame duration`() throws {
    // The range begins 4 ms before the end of frame 12, shows all of frame 13, and ends after 6 ms
    // of frame 14.
    #expect(try numbers(.mjpeg, [(126, 146)]) == [12, 13, 14])
  }

  @Test(arguments: [Kind.plain, .reordered])
  func `Closed GOPs can be copied in any order`(kind: Kind) throws {
    let found = try numbers(kind, [(1_000, 1_200), (200, 400), (200, 400), (1_800, 2_000)])
    #expect(found == (Array(100..<120) + Array(20..<40) + Array(20..<40) + Array(180..<200)))
  }

  @Test func `A copied range can end at any frame if there are no B-frames`() throws {
    #expect(try numbers(.plain, [(400, 470), (0, 130)]) == Array(40..<47) + Array(0..<13))
  }

  @Test(arguments: [
    (Kind.plain, 510, 600, "starts at 0.51 s", "cut at 0.4 s or 0.6 s"),
    (.plain, 1_999, 2_000, "starts at 1.999 s", "cut at 1.8 s, "),
    (.reordered, 10, 600, "starts at 0.01 s", "cut at 0 s or 0.2 s"),
    (.openGOP, 250, 600, "starts at 0.25 s", "cut at 0 s, "),
  ])
  func `Refuses to copy from inside a GOP and suggests nearby cuts`(
    kind: Kind, start: Int64, end: Int64, what: String, cuts: String
  ) throws {
    let asset = try asset(kind)
    let error = try refusal(composition(of: asset, [(start, end)]), of: asset, settings)
    #expect(error.code == .cutNotOnKeyFrame)
    #expect(error.code.rawValue == "cut_not_on_key_frame")
    #expect(error.message.contains(what) && error.message.contains(asset.path), "\(error)")
    #expect(error.recoverySuggestion.contains(cuts), "\(error)")
    #expect(try directory.names() == ["clip.mov"])
  }

  @Test func `Refuses to copy a B-frame without its later reference frame`()
    throws
  {
    let asset = try asset(.reordered)
    // In I0 P3 B1 B2 P6 B4 B5, frames 1 and 2 need frame 3.
    for end in [20, 30] as [Int64] {
      let error = try refusal(composition(of: asset, [(0, end)]), of: asset, settings)
      #expect(error.code == .cutNotOnKeyFrame)
      #expect(error.message.contains("ends at 0.0\(end / 10) s"), "\(error)")
      #expect(error.recoverySuggestion.contains("cut at 0.01 s or 0.04 s"), "\(error)")
    }
    #expect(try numbers(.reordered, [(0, 40)]) == [0, 1, 2, 3])
  }

  @Test func `Each cut that an error message suggests is accepted`() throws {
    for kind in Kind.allCases {
      let asset = try asset(kind)
      for start in stride(from: 15, to: 1_990, by: 185) as StrideTo<Int64> {
        let whole = try composition(of: asset, [(start, 2_000)])
        guard let found = try hint(whole, of: asset) else { continue }
        for text in found.split(separator: " ").compactMap({ Double($0) }) {
          let free = try composition(of: asset, [(Int64((text * 1_000).rounded()), 2_000)])
          #expect(try hint(free, of: asset) == nil, "\(kind) \(text)")
        }
      }
    }
  }

  private func hint(_ composition: Composition, of asset: Asset) throws -> String? {
    do throws(MediaError) {
      try ExportSession(composition, of: asset).check(settings)
      return nil
    } catch {
      #expect(error.code == .cutNotOnKeyFrame)
      return error.recoverySuggestion
    }
  }

  /// Exports ranges in milliseconds with hidden frames, and checks which frames are shown when.
  private func checkSqueezed(_ kind: Kind, _ ranges: [(Int64, Int64)]) throws -> ExportReport {
    let asset = try asset(kind)
    let composition = try composition(of: asset, ranges)
    var squeezing = settings(.squeeze)
    squeezing.overwrites = true
    let report = try ExportSession(composition, of: asset).export(squeezing)
    let result = try Asset(path: report.path)
    #expect(result.duration == composition.duration)
    let wanted = try composition.shownTimes(of: asset)
    let table = try #require(result.videoTrack).frames
    let visible = table.entries.indices.filter { table.entries[$0].duration > 1 }
    #expect(report.framesCopied == Int64(visible.count))
    #expect(try visible.map { try result.times()[$0] } == wanted.map(\.time))
    let numbers = try result.numbers()
    #expect(visible.map { numbers[$0] } == wanted.map(\.index))
    // Frames hidden before the first cut take no time. Each later cut takes 0.25 ms at most.
    #expect(report.hiddenDuration.wholeNanoseconds <= 250_000 * Int64(ranges.count - 1))
    #expect(Int64(table.entries.count) <= report.framesCopied + report.framesHidden)
    return report
  }

  @Test(arguments: [Kind.plain, .reordered])
  func `The cut policy squeeze hides reference frames at a cut`(kind: Kind)
    throws
  {
    // A B-frame at the very end would need a later frame, so the last range ends with a GOP.
    let first = try checkSqueezed(kind, [(510, 700), (1_130, 1_250), (250, 400)])
    #expect(first.framesHidden > 0 && first.maxTimeError.wholeNanoseconds == 0)
    let alone = try checkSqueezed(kind, [(510, 600)])
    #expect(alone.framesHidden == 11 && alone.hiddenDuration.wholeNanoseconds == 0)
    var random = SeededGenerator(seed: 11)
    for _ in 0..<6 {
      var ranges = (0..<Int.random(in: 1...9, using: &random)).map { _ in
        let start = Int64.random(in: 0..<190, using: &random) * 10
        return (start, start + Int64.random(in: 2...9, using: &random) * 10)
      }
      ranges.append((1_805, 2_000))
      _ = try checkSqueezed(kind, ranges)
    }
  }

  @Test func `The cut policy squeeze refuses a cut inside an open GOP`() throws {
    let asset = try asset(.openGOP)
    let composition = try composition(of: asset, [(0, 500), (950, 2_000)])
    let error = try refusal(composition, of: asset, settings(.squeeze))
    #expect(error.code == .cutNotOnKeyFrame)
  }

  @Test func `A passthrough export can change the speed inside a GOP`() throws {
    for kind in Kind.allCases {
      let asset = try asset(kind)
      let composition = try asset.retimed([(range(333, 777), speed(1, 2))])
      var settings = settings
      settings.overwrites = true
      let report = try ExportSession(composition, of: asset).export(settings)
      #expect(report.framesCopied == 200)
      #expect(try Asset(path: report.path).numbers() == (0..<200).map(Int.init))
    }
  }

  @Test func `A passthrough export keeps frames before time zero hidden`()
    throws
  {
    var recipe = MovieRecipe.constant(100, count: 60).h264(gop: 20, reordered: false)
    recipe.times = recipe.times.map { $0 - 50_000 }
    recipe.end -= 50_000
    let asset = try Asset.made(recipe, in: directory)
    #expect(asset.videoTrack?.frameCount == 55)
    let report = try ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.framesCopied == 55 && report.framesHidden == 5)
    #expect(report.hiddenDuration.wholeNanoseconds == 0 && report.cuts.isEmpty)
    #expect(try Asset(path: report.path).numbers() == (5..<60).map(Int.init))
    let late = try composition(of: asset, [(50, 550)])
    let error = try refusal(late, of: asset, settings)
    #expect(error.code == .cutNotOnKeyFrame)
    #expect(error.recoverySuggestion.contains("cut at 0.15 s"), "\(error)")
  }

  @Test func `Passthrough export refuses a gap and suggests a frame rate`() throws {
    let asset = try asset(.mjpeg)
    var composition = try Composition(asset)
    try composition.insertEmptyTimeRange(range(500, 600))
    let error = try refusal(composition, of: asset, settings)
    #expect(error.code == .unsupportedSource)
    #expect(error.recovery?.steps == [.change(.outputFrameRate)])
  }
}
