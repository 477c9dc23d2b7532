// SPDX-License-Identifier: Apache-2.0

import Foundation
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
      // The copy by ffmpeg has no end of the edit list, so that frames hidden there are shown.
      #expect(frames.count == shownCount || file == stripped && frames.count > shownCount)
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
  func `Cut policy auto encodes frames rather than hide them`() async throws {
    let asset = try asset(reordered: true)
    let ranges: [(Int64, Int64)] = [(0, 500), (1_300, 2_000)]
    let encoded = try await check(asset, ranges, .auto)
    let start = encoded.cuts.first(where: \.isStart)
    #expect(encoded.framesHidden == 0 && start?.method == .rendered && start?.frames == 70)
    let hidden = try await check(asset, ranges, .squeeze)
    #expect(hidden.framesHidden > 0 && hidden.framesEncoded == 0)
    #expect(hidden.cuts.map(\.method) == [.free, .hidden] || hidden.cuts[1].method == .hidden)
    let error = try refusal(
      composition(of: asset, [(0, 500), (1_800, 3_000)]), of: asset, settings(.squeeze))
    #expect(error.code == .cutNotOnKeyFrame)
    // The first range is too short to hide frames in it.
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

  /// An HEVC movie of three seconds at 100 fps.
  private func hevc(_ parameters: String, format: String = "yuv420p") async throws -> Asset {
    let path = directory.file("hevc.mp4")
    try await FFmpeg.makeClip(
      path, frames: 300, rate: "100",
      ["-pix_fmt", format, "-tag:v", "hvc1", "-c:v", "libx265", "-preset", "ultrafast"]
        + ["-x265-params", "log-level=none:scenecut=0:pools=1:frame-threads=1:" + parameters])
    return try Asset(path: path)
  }

  /// Exports ranges of an HEVC movie, and compares the frames that are shown with those of the source.
  ///
  /// Copied frames must be equal, and encoded ones must come at the right times.
  private func checkHEVC(
    _ asset: Asset, _ ranges: [(Int64, Int64)], _ boundary: CutPolicy = .auto
  ) async throws -> ExportReport {
    let composition = try composition(of: asset, ranges)
    var settings = settings(boundary)
    settings.path = directory.file("cut.mp4")
    let planned = try ExportSession(composition, of: asset).plan(settings)
    let report = try await ExportSession(composition, of: asset).export(settings)
    #expect(planned.framesHeaderChanged == report.framesHeaderChanged)
    let source = try await CopyJudge.frames(of: asset.path, countsHidden: true)
    let shown = try await CopyJudge.frames(of: report.path, countsHidden: false)
    let wanted = try composition.shownTimes(of: asset)
    #expect(shown.map(\.time) == wanted.map(\.time))
    let entries = try #require(asset.videoTrack).frames.entries
    let copied = Set(
      report.copies.flatMap { $0.firstPacket..<$0.firstPacket + $0.packetCount }.map { Int($0) })
    var copiedCount: Int64 = 0
    for (frame, expected) in zip(shown, wanted)
    where copied.contains(entries[expected.index].decodeIndex) {
      copiedCount += 1
      #expect(frame.hash == source[expected.index].hash, "frame \(expected.index)")
    }
    #expect(copiedCount == report.framesCopied)
    #expect(report.framesCopied + report.framesEncoded == Int64(wanted.count))
    #expect(try Asset(path: report.path).duration == composition.duration)
    // Only the edit list hides frames, so that a player without it shows exactly those of the file.
    let all = try await CopyJudge.frames(of: report.path, countsHidden: true, ignoresEdits: true)
    #expect(all.count == Int(report.framesCopied + report.framesEncoded + report.framesHidden))
    return report
  }

  @Test(
    .enabled(if: FFmpeg.isInstalled),
    arguments: [
      ("keyint=50:bframes=3:open-gop=1", "yuv420p"), ("keyint=50:bframes=3:open-gop=0", "yuv420p"),
      ("keyint=50:bframes=4:open-gop=1", "yuv420p10le"),
      ("keyint=50:bframes=2:open-gop=1:slices=2:ctu=32:min-cu-size=16", "yuv422p10le"),
      ("keyint=50:bframes=4:radl=2:open-gop=0", "yuv444p"),
    ])
  func `HEVC cuts and joins encode only a part of a GOP`(
    parameters: String, format: String
  ) async throws {
    let asset = try await hevc(parameters, format: format)
    let report = try await checkHEVC(asset, [(1_300, 2_210), (100, 840), (2_300, 2_360)])
    #expect(report.framesHidden == 0 && report.framesEncoded > 0)
    #expect(report.cuts.allSatisfy { $0.frames <= 55 })
    // A copy of the copy starts at its BLA frames, too, with a third set of parameter sets.
    let copy = directory.file("again.mp4")
    try FileManager.default.moveItem(atPath: report.path, toPath: copy)
    let again = try Asset(path: copy)
    let second = try await checkHEVC(again, [(250, 900), (1_010, 1_600)])
    #expect(second.framesHidden == 0 && second.framesCopied > 0)
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `Decoding starts at the CRA frames of open GOPs`() async throws {
    let asset = try await hevc("keyint=50:min-keyint=50:bframes=0:open-gop=1")
    let whole = try await checkHEVC(asset, [(1_000, 2_000)], .keyframe)
    #expect(whole.framesCopied == 100 && whole.framesHeaderChanged == 0)
    let joined = try await checkHEVC(asset, [(0, 500), (1_500, 2_000)], .keyframe)
    #expect(joined.framesHeaderChanged == 1 && joined.framesEncoded == 0)
    let squeezed = try await checkHEVC(asset, [(1_100, 1_500)], .squeeze)
    #expect(squeezed.framesHidden == 10)
    let reordered = try await hevc("keyint=50:min-keyint=50:bframes=3:b-adapt=0:open-gop=1")
    let late = try await checkHEVC(reordered, [(0, 520), (1_700, 1_800)], .squeeze)
    #expect(late.framesHidden >= 20 && late.framesEncoded == 0)
    // The frames that the last one needs come after the end of the edit list.
    for end in stride(from: 1_210, through: 1_250, by: 10) as StrideThrough<Int64> {
      let report = try await checkHEVC(reordered, [(1_100, end)], .squeeze)
      #expect(report.framesEncoded == 0 && report.hiddenDuration.wholeNanoseconds == 0)
    }
  }

  @Test(
    .enabled(if: FFmpeg.isInstalled),
    arguments: [
      [
        "libx265", "-tag:v", "hvc1", "-x265-params",
        "lossless=1:keyint=50:bframes=3:log-level=none",
      ],
      ["libx264", "-qp", "0", "-profile:v", "high444", "-g", "50"],
    ])
  func `Frames encoded between lossless ones are lossless`(encoder: [String]) async throws {
    let path = directory.file("lossless.mp4")
    try await FFmpeg.makeClip(
      path, frames: 200, rate: "100",
      ["-pix_fmt", "yuv420p", "-preset", "ultrafast", "-c:v"] + encoder)
    let asset = try Asset(path: path)
    let composition = try composition(of: asset, [(300, 1_030), (1_200, 1_250)])
    let report = try await ExportSession(composition, of: asset).export(settings(.auto))
    #expect(report.framesEncoded > 20 && report.framesHidden == 0)
    let source = try await CopyJudge.frames(of: path, countsHidden: true).map(\.hash)
    let shown = try await CopyJudge.frames(of: report.path, countsHidden: true).map(\.hash)
    #expect(shown == Array(source[30..<103] + source[120..<125]))
    guard asset.videoTrack?.codec == .hevc else { return }
    let levels = try [asset, Asset(path: report.path)].map {
      $0.videoTrack?.format.parameters.extradata[12]
    }
    #expect(levels[0] == levels[1])
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `Frames are hidden where the encoder cannot be opened`() async throws {
    // libx265 encodes no frames that are narrower than a block, and these are cropped to 50 columns.
    let path = directory.file("narrow.mp4")
    try await FFmpeg.makeClip(
      path, frames: 300, rate: "100",
      ["-s", "64x64", "-pix_fmt", "yuv420p", "-tag:v", "hvc1", "-c:v", "libx265", "-x265-params"]
        + ["keyint=50:ctu=64:log-level=none", "-bsf:v", "hevc_metadata=crop_right=14"])
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.width == 50)
    let report = try await checkHEVC(asset, [(300, 1_200)])
    #expect(report.framesEncoded == 0 && report.framesHidden > 0)
    let reason = "the encoder refuses the source's format"
    #expect(report.warnings.contains { $0.hasSuffix(reason) }, "\(report.warnings)")
    let error = try refusal(composition(of: asset, [(300, 1_200)]), of: asset, settings(.render))
    #expect(error.message.contains(reason))
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `Joined HEVC clips need the same parameter sets`() async throws {
    let first = try await hevc("keyint=50:bframes=2:b-adapt=0")
    let same = directory.file("same.mp4")
    try FileManager.default.copyItem(atPath: first.path, toPath: same)
    let settings = settings(.auto)
    func export(_ path: String) async throws -> ExportReport {
      let second = try Asset(path: path)
      var composition = try Composition(first)
      try composition.insertTimeRange(
        range(1_200, 1_900), of: second.mediaSource(), at: composition.duration)
      return try await ExportSession(composition, of: [first, second]).export(settings)
    }
    let report = try await export(same)
    let source = try await CopyJudge.frames(of: same, countsHidden: true).map(\.hash)
    let shown = try await CopyJudge.frames(of: report.path, countsHidden: true).map(\.hash)
    #expect(shown.count == 370 && Array(shown[..<300]) == source)
    #expect(report.framesEncoded > 0 && report.framesHidden == 0)
    #expect(Set(report.copies.map(\.path)) == [first.path, same])
    #expect(Array(shown[330..<360]) == Array(source[150..<180]))
    for (options, difference) in [
      (["-x265-params", "keyint=50:bframes=2:b-adapt=0:ref=5:log-level=none"], "parameter sets"),
      (["-s", "64x48", "-x265-params", "log-level=none"], "64x48, not"),
      (["-pix_fmt", "yuv420p10le", "-x265-params", "log-level=none"], "yuv420p10le, not yuv420p"),
    ] {
      let path = directory.file("other.mp4")
      try await FFmpeg.makeClip(
        path, frames: 200, rate: "100",
        ["-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-pix_fmt", "yuv420p"]
          + options)
      let error = await #expect(throws: MediaError.self) { try await export(path) }
      #expect(error?.message.contains(difference) == true, "\(error?.message ?? "")")
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `A long range without a start of decoding is not encoded`() async throws {
    let path = directory.file("refresh.mp4")
    try await FFmpeg.makeClip(
      path, frames: 500, rate: "100",
      ["-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"]
        + ["-x265-params", "log-level=none:keyint=-1:bframes=0:pools=1:frame-threads=1"])
    let asset = try Asset(path: path)
    let long = try await checkHEVC(asset, [(1_000, 4_900)])
    #expect(long.framesHidden == 100 && long.framesEncoded == 0)
    let short = try await checkHEVC(asset, [(1_000, 1_200)])
    #expect(short.framesHidden == 0 && short.framesEncoded == 20)
  }
}
