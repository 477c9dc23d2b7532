// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Cuts inside GOPs.
///
/// A part of the group is encoded so that the rest can be copied.
struct BoundaryTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A movie of three seconds at 100 fps, with a key frame and parameter sets each second.
  private func asset(
    reordered: Bool, more parameters: String = "", options: [String: String] = [:]
  ) throws -> Asset {
    let frames = reordered ? "bframes=2:b-adapt=0:b-pyramid=none:ref=2" : "bframes=0"
    let recipe = MovieRecipe.constant(100, count: 300).h264(
      gop: 100, reordered: reordered,
      options: ["x264-params": frames + ":repeat-headers=1" + parameters]
        .merging(options) { $1 })
    return try .made(recipe, in: directory)
  }

  private func settings(_ boundary: CutPolicy) -> ExportSettings {
    var settings = ExportSettings(path: directory.file("cut.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: boundary)
    settings.overwrites = true
    return settings
  }

  /// Exports ranges, and checks that the file shows the expected frames and that FFmpeg decodes all
  /// of them.
  private func check(
    _ asset: Asset, _ ranges: [(Int64, Int64)], _ boundary: CutPolicy = .render
  ) async throws -> ExportReport {
    let composition = try composition(of: asset, ranges)
    let session = ExportSession(composition, of: asset)
    let planned = try session.plan(settings(boundary))
    let report = try await session.export(settings(boundary))
    let result = try Asset(path: report.path)
    let table = try #require(result.videoTrack).frames
    let wanted = try composition.shownTimes(of: asset)
    let visible = table.entries.indices.filter { table.entries[$0].duration > 1 }
    let (times, numbers) = (try result.times(), try result.numbers())
    #expect(visible.map { times[$0] } == wanted.map(\.time))
    #expect(visible.map { numbers[$0] } == wanted.map(\.index))
    #expect(result.duration == composition.duration)
    #expect(report.framesCopied + report.framesEncoded == Int64(wanted.count))
    #expect(planned.cuts == report.cuts && planned.copies == report.copies)
    #expect(planned.framesEncoded == report.framesEncoded)
    let copied = report.copies.reduce(0) { $0 + $1.packetCount }
    #expect(copied == report.framesCopied + report.framesHidden)
    let encoded = report.cuts.reduce(0) { $0 + ($1.method == .rendered ? $1.frames : 0) }
    #expect(encoded == report.framesEncoded)
    #expect(report.cuts.allSatisfy { $0.method != .rendered || $0.frames <= 100 })
    // The file contains every packet that counts as copied in the report, byte for byte and in
    // order.
    let source = try packets(of: asset.path)
    let expected = report.copies.flatMap { copy in
      source[Int(copy.firstPacket)..<Int(copy.firstPacket + copy.packetCount)]
    }
    var rest = try packets(of: report.path)[...]
    for packet in expected {
      let position = try #require(rest.firstIndex(of: packet))
      rest = rest[(position + 1)...]
    }
    try await decodes(report.path, shownCount: table.entries.count)
    return report
  }

  private func packets(of path: String) throws -> [[UInt8]] {
    var demuxer = try Demuxer(opening: path)
    var packets: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      packets.append(packet.withBytes { [UInt8]($0) })
    }
    return packets
  }

  /// Checks that FFmpeg decodes all frames without an error, also after in-band parameter sets are
  /// removed.
  private func decodes(_ path: String, shownCount: Int) async throws {
    let stripped = directory.file("stripped.mov")
    let strip = try await run(
      "ffmpeg",
      [
        "-v", "error", "-y", "-i", path, "-c", "copy", "-bsf:v", "filter_units=remove_types=7-8",
        "-video_track_timescale", "240000", stripped,
      ])
    #expect(strip.status == 0, "\(strip.errors)")
    for file in [path, stripped] {
      let decoded = try await run(
        "ffmpeg",
        [
          "-v", "error", "-i", file, "-vsync", "passthrough", "-enc_time_base", "-1", "-f",
          "framehash", "-",
        ])
      #expect(decoded.status == 0 && decoded.errors.isEmpty, "\(decoded.errors)")
      let frames = decoded.output.split(separator: "\n").filter { !$0.hasPrefix("#") }
      #expect(frames.count == shownCount)
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled), arguments: [false, true])
  func `A cut inside a GOP encodes only a part of the GOP`(
    reordered: Bool
  ) async throws {
    let asset = try asset(reordered: reordered)
    // The first range starts and ends between key frames, the second goes back in time, and the
    // third is inside one GOP.
    let report = try await check(asset, [(1_300, 2_500), (100, 1_410), (250, 300)])
    #expect(report.framesHidden == 0 && report.hiddenDuration.wholeNanoseconds == 0)
    #expect(report.cuts.filter(\.isStart).map(\.frames) == [70, 90, 5])
    #expect(report.cuts.filter(\.isStart).map(\.method) == [.rendered, .rendered, .rendered])
    #expect(report.cuts[0].freeBefore == .milliseconds(1_000))
    #expect(report.cuts[0].freeAfter == .milliseconds(2_000))
    // If no frame is reordered, the end of a range needs no encoding.
    let ends = report.cuts.filter { !$0.isStart }
    #expect(ends.allSatisfy { reordered ? $0.frames <= 2 : $0.method == .free })
    let whole = try await check(asset, [(0, 3_000)])
    #expect(whole.framesEncoded == 0 && whole.cuts.isEmpty)
  }

  @Test(.enabled(if: FFmpeg.isInstalled), arguments: ["baseline", "main", "high", "high422"])
  func `Frames encoded at a cut use the H.264 profile of the source`(profile: String) async throws {
    let asset = try asset(
      reordered: false, more: profile == "high422" ? ":qp=10" : "",
      options: ["profile": profile])
    let report = try await check(asset, [(300, 2_000)])
    #expect(report.framesEncoded == 70)
    let found = try await FFmpeg.probe(report.path, "stream=profile", stream: "v")
    let source = try await FFmpeg.probe(asset.path, "stream=profile", stream: "v")
    #expect(found == source)
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `Cut policy auto encodes if a copy would hide too many frames`() async throws {
    let asset = try asset(reordered: true)
    let few = try await check(asset, [(0, 500), (1_300, 2_000)], .auto)
    #expect(few.framesHidden > 0 && few.framesEncoded == 0)
    #expect(few.cuts.map(\.method) == [.free, .hidden] || few.cuts[1].method == .hidden)
    let many = try await check(asset, [(0, 500), (1_800, 3_000)], .auto)
    #expect(many.cuts.last?.method == .rendered && many.cuts.last?.frames == 20)
    let error = try refusal(
      composition(of: asset, [(0, 500), (1_800, 3_000)]), of: asset, settings(.squeeze))
    #expect(error.code == .cutNotOnKeyFrame)
    // The first range is too short to hide frames in it, so the frames before the cut are encoded.
    var fast = try composition(of: asset, [(0, 1_000), (1_300, 3_000)])
    try fast.scaleTimeRange(range(0, 1_000), toDuration: MediaTime(200, over: 240_000))
    let report = try await ExportSession(fast, of: asset).export(settings(.auto))
    #expect(report.framesHidden == 0 && report.framesEncoded == 70)
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `A range end at a B-frame can hide the later reference frame`() async throws {
    let asset = try asset(reordered: true)
    // In I0 P3 B1 B2 P6 B4 B5, frames 1 and 2 need frame 3.
    let report = try await check(asset, [(1_000, 1_020)], .auto)
    #expect(report.framesEncoded > 0 && report.framesHidden == 0)
    let hidden = try await check(asset, [(1_000, 1_020)], .squeeze)
    #expect(hidden.framesHidden == 1 && hidden.framesEncoded == 0)
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `A cut inside an open GOP encodes the frames of that GOP`() async throws {
    let asset = try asset(reordered: true, more: ":open-gop=1")
    let composition = try composition(of: asset, [(0, 500), (1_950, 2_100)])
    let error = try refusal(composition, of: asset, settings(.keyframe))
    #expect(error.code == .cutNotOnKeyFrame)
    // No frame after the first key frame can be decoded independently, so all frames are encoded.
    let report = try await check(asset, [(0, 500), (1_950, 2_100)], .render)
    #expect(report.cuts.last { $0.isStart }?.frames == 15)
  }

  @Test func `An HEVC cut that needs encoding is refused with a reason`() throws {
    var recipe = MovieRecipe.constant(100, count: 100)
    recipe.codec = "libx265"
    recipe.pixelFormat = .yuv420p
    recipe.keyFrameInterval = 80
    recipe.options = [
      "preset": "ultrafast", "x265-params": "log-level=none:open-gop=0:bframes=2:min-keyint=80",
    ]
    let hevc = try Asset.made(recipe, in: directory, "hevc")
    let late = try composition(of: hevc, [(0, 520), (700, 800)])
    for boundary in [CutPolicy.auto, .render] {
      let error = try refusal(late, of: hevc, settings(boundary))
      #expect(error.code == .cutNotOnKeyFrame)
      #expect(error.message.contains("HEVC frames cannot be encoded between copies"), "\(error)")
      #expect(error.recoverySuggestion.contains("cut at 0 s or 0.8 s"), "\(error)")
    }
    // If a cut needs only a few earlier frames, these frames are hidden, even in a codec that cannot
    // be encoded at cuts.
    let near = try composition(of: hevc, [(0, 520), (200, 700)])
    #expect(try ExportSession(near, of: hevc).plan(settings(.auto)).framesHidden >= 20)
  }
}
