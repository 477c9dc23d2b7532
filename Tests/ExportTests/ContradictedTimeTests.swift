// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Files in which two frames have the same time, or a presentation time contradicts the decoding
/// order.
///
/// `CopyJudge` decodes each source and each result with FFmpeg.
struct ContradictedTimeTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A file with wrong frame times, made by FFmpeg's `setts` filter or by a coarse timescale.
  enum Kind: String, CaseIterable {
    case pair = "pair.mp4"
    case pairOfKeyFrames = "intra.mov"
    case pairAmongBFrames = "b.mp4"
    case coarse = "coarse.mkv"
    case outOfOrder = "order.mp4"
    case outOfOrderMPEG4 = "order.mov"
    case outOfOrderHEVC = "order.mkv"

    var codec: [String] {
      switch self {
      case .pair, .coarse: ["-c:v", "libx264", "-bf", "0", "-g", "15"]
      case .pairOfKeyFrames: ["-c:v", "mjpeg"]
      case .pairAmongBFrames, .outOfOrder:
        ["-c:v", "libx264", "-g", "15", "-x264-params", "bframes=1:b-adapt=0"]
      case .outOfOrderMPEG4: ["-c:v", "mpeg4", "-bf", "1", "-g", "15"]
      case .outOfOrderHEVC:
        ["-c:v", "libx265", "-g", "15", "-x265-params", "bframes=2:b-adapt=0:log-level=none"]
      }
    }

    /// The expression of the `setts` filter; nil if a table sets the times, or if the ticks are too
    /// coarse.
    var times: String? {
      switch self {
      case .pairAmongBFrames: "setts=pts=if(eq(N\\,9)\\,PTS-512\\,PTS)"
      case .pair, .pairOfKeyFrames, .coarse: nil
      case .outOfOrder: "setts=pts=if(eq(N\\,5)\\,PTS-800\\,PTS)"
      case .outOfOrderMPEG4: "setts=pts=if(eq(N\\,7)\\,PTS-800\\,PTS)"
      case .outOfOrderHEVC: "setts=pts=if(eq(N\\,4)\\,PTS-80\\,PTS)"
      }
    }

    var correctedCount: ClosedRange<Int> { self == .coarse ? 10...20 : 1...1 }
  }

  private func clip(_ kind: Kind) async throws -> Asset {
    let whole = directory.file("whole-\(kind.rawValue)")
    let options = ["-video_track_timescale", "15360"]
    let isMKV = kind.rawValue.hasSuffix("mkv")
    // The filter turns a 30 fps test pattern into 2000 fps, since faster test patterns repeat
    // images.
    try await FFmpeg.makeClip(
      whole, frames: 30,
      ["-s", "64x48"] + kind.codec + (isMKV ? [] : options)
        + (kind == .coarse
          ? ["-vf", "settb=1/2000,setpts=N", "-r", "2000", "-fps_mode", "passthrough"] : []))
    if kind == .pair || kind == .pairOfKeyFrames {
      var movie = try PatchedMovie(whole)
      try movie.replace(
        "moov/trak/mdia/minf/stbl/stts",
        with: PatchedMovie.table([[10, 512], [1, 0], [19, 512]]))
      return try Asset(path: try directory.write(movie.bytes, as: kind.rawValue))
    }
    guard let times = kind.times else { return try Asset(path: whole) }
    let path = directory.file(kind.rawValue)
    try await FFmpeg.make(
      path, ["-i", whole, "-c", "copy", "-bsf:v", times] + (isMKV ? [] : options))
    return try Asset(path: path)
  }

  @Test(arguments: Kind.allCases)
  func `Each frame is shown once even if presentation times conflict`(kind: Kind) async throws {
    let asset = try await clip(kind)
    let frames = try #require(asset.videoTrack).frames
    #expect(frames.entries.count == 30)
    #expect(kind.correctedCount.contains(frames.correctedTimeCount), "\(frames.correctedTimeCount)")
    #expect(zip(frames.entries, frames.entries.dropFirst()).allSatisfy { $0.ticks < $1.ticks })
    let shown = try await CopyJudge.frames(of: asset.path, countsHidden: true).map(\.hash)
    #expect(Set(shown).count == 30)
    var settings = ExportSettings(
      path: directory.file("copy.mov"), mode: .passthrough(boundary: .keyframe))
    let copy = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(copy.framesCopied == 30)
    #expect(try await CopyJudge.frames(of: copy.path, countsHidden: true).map(\.hash) == shown)
    #expect(try Asset(path: copy.path).videoTrack?.frames.correctedTimeCount == 0)
    settings = ExportSettings(
      path: directory.file("made.mov"), mode: .constant(FrameRate(kind == .coarse ? 2_000 : 120)))
    settings.render { $0.encoding = .ffv1 }
    let made = try await ExportSession(Composition(asset), of: asset).export(settings)
    var rendered = try await CopyJudge.frames(of: made.path, countsHidden: true).map(\.hash)
    rendered = rendered.indices.filter { $0 == 0 || rendered[$0] != rendered[$0 - 1] }
      .map { rendered[$0] }
    #expect(rendered == shown)
    var reader = try FrameReader(asset)
    var writer = PNGWriter()
    var all: [[UInt8]] = []
    for index in 0..<30 { all.append(try writer.data(of: index, from: &reader)) }
    #expect(Set(all).count == 30)
    for index in [20, 3, 11, 10, 29, 0, 5, 6] {
      #expect(try writer.data(of: index, from: &reader) == all[index])
    }
    let kept = try Asset(path: asset.path, keepsIndex: true)
    let again = try Asset(path: asset.path, keepsIndex: true)
    #expect(kept.keptIndex?.isWritten == true && again.keptIndex?.isUsed == true)
    #expect(again.videoTrack?.frames.entries == asset.videoTrack?.frames.entries)
  }

  @Test func `An out-of-order presentation time is replaced by decode time`() async throws {
    let frames = try #require(try await clip(.outOfOrder).videoTrack).frames
    #expect(frames.entries.map(\.ticks) == (0..<30).map { $0 * 512 })
  }

  @Test func `Two frames with the same time each last half a tick`() async throws {
    let frames = try #require(try await clip(.coarse).videoTrack).frames
    #expect(frames.timescale == 2_000)
    // The file's rounding puts one frame into the first tick, and two frames into each later tick.
    let ticks = frames.entries.map(\.ticks)
    #expect(ticks == [0] + (2...30).map { $0 }, "\(ticks)")
  }
}
