// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Clips whose edit list hides packets that shown frames depend on, as phones and trimmers write
/// them.
///
/// `ffmpeg` judges each passthrough export.
struct EditListTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// An encoding with or without reordered frames.
  enum ReorderedEncoding {
    case h264, hevc, openHEVC, plainH264, plainHEVC

    static let reordered = [h264, hevc, openHEVC]

    var options: [String] {
      switch self {
      case .h264:
        ["-c:v", "libx264", "-bf", "3", "-g", "30", "-x264-params", "b-adapt=0:b-pyramid=normal"]
      case .plainH264: ["-c:v", "libx264", "-bf", "0", "-g", "30"]
      case .plainHEVC:
        [
          "-c:v", "libx265", "-tag:v", "hvc1", "-x265-params",
          "log-level=error:bframes=0:keyint=30:open-gop=0",
        ]
      case .hevc:
        [
          "-c:v", "libx265", "-tag:v", "hvc1", "-x265-params",
          "log-level=error:bframes=3:b-adapt=0:keyint=30:open-gop=0",
        ]
      case .openHEVC:
        [
          "-c:v", "libx265", "-tag:v", "hvc1", "-x265-params",
          "log-level=error:bframes=3:b-adapt=0:keyint=30:open-gop=1",
        ]
      }
    }
  }

  /// A clip of three seconds at 30 fps.
  private func clip(_ coding: ReorderedEncoding) async throws -> String {
    let path = directory.file("\(coding).mp4")
    try await FFmpeg.makeClip(path, coding.options)
    return path
  }

  /// The clip with a new edit list.
  ///
  /// Its entries are durations in milliseconds and start times in ticks.
  private func edited(
    _ clip: String, _ entries: [(duration: UInt32, mediaTime: Int32)], _ name: String
  ) throws -> String {
    var movie = try PatchedMovie(clip)
    try movie.replace("moov/trak/edts/elst", with: PatchedMovie.editList(entries))
    return try directory.write(movie.bytes, as: "\(name).mp4")
  }

  /// Exports all of a clip by passthrough, or ranges of it in milliseconds.
  private func copy(
    _ path: String, _ boundary: CutPolicy, _ ranges: [(Int64, Int64)] = []
  ) throws -> (report: ExportReport, composition: Composition, asset: Asset) {
    let asset = try Asset(path: path)
    var composition = try ranges.isEmpty ? Composition(asset) : Composition()
    for (start, end) in ranges {
      try composition.insertTimeRange(
        range(start, end), of: asset.mediaSource(), at: composition.duration)
    }
    var settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: boundary)
    settings.overwrites = true
    return (try ExportSession(composition, of: asset).export(settings), composition, asset)
  }

  /// Exports all of a clip by passthrough, and lets `ffmpeg` judge the result.
  private func checkWhole(
    _ path: String, _ boundary: CutPolicy, sourceFrames: [CopyJudge.Frame]? = nil
  ) async throws -> ExportReport {
    let (report, _, asset) = try copy(path, boundary)
    #expect(report.framesEncoded == 0 && report.framesSkipped == 0)
    #expect(report.framesCopied == Int64(asset.videoTrack?.frameCount ?? 0))
    #expect(report.maxTimeError.wholeNanoseconds == 0)
    let complaints = try await CopyJudge.complaints(
      about: report.path, of: path, sourceFrames: sourceFrames)
    #expect(complaints.isEmpty, "\(complaints)")
    return report
  }

  @Test(arguments: ReorderedEncoding.reordered)
  func `Reference frames after the end of an edit list are copied`(
    coding: ReorderedEncoding
  ) async throws {
    let clip = try await clip(coding)
    var hidden: Set<Int64> = []
    // The edit list ends at various positions among the B-frames of a GOP.
    for frames in RunSize.isFull ? [58, 59, 60, 61, 62, 63, 64, 65] : [58, 61, 64] as [UInt32] {
      let path = try edited(clip, [(frames * 100 / 3, 1_024)], "end")
      let report = try await checkWhole(path, frames % 2 == 0 ? .auto : .keyframe)
      hidden.insert(report.framesHidden)
      #expect(report.hiddenDuration.wholeNanoseconds < 50_000)
    }
    #expect(hidden.count > 1 && hidden.contains { $0 > 0 }, "\(hidden)")
  }

  /// Writes the packets of a movie again, without one of them.
  private func rewrite(_ path: String, to other: String, without dropped: Int64) throws {
    var demuxer = try Demuxer(opening: path)
    let track = try #require(demuxer.tracks.first)
    let timescale = try #require(Int32(exactly: track.timeBase.denominator))
    let file = try MovieFile(creating: other, overwrites: true)
    var writer = try MovieWriter(
      path: file.writtenPath,
      settings: MovieWriter.Settings(container: .mov, movieTimescale: timescale))
    let number = try writer.addTrack(track.parameters, timescale: timescale)
    try writer.begin()
    var packets: [Packet] = []
    while let packet = try demuxer.nextPacket() { packets.append(packet) }
    let first = try #require(packets.first?.dts)
    let length = try #require(demuxer.index(ofTrack: 0).ticks)
    for (position, packet) in packets.enumerated() where Int64(position) != dropped {
      let (pts, dts) = (try #require(packet.pts), try #require(packet.dts))
      // libavformat reports too long a duration for the last packet: it adds the time by which
      // decoding begins before zero.
      let duration = position == packets.count - 1 ? length + first - dts : packet.duration
      try writer.write(packet, track: number, pts: pts, dts: dts, duration: duration)
    }
    try writer.finish()
  }

  @Test func `The check of a passthrough export finds any missing packet`() async throws {
    let path = try edited(try await clip(.h264), [(2_100, 1_024)], "end")
    let report = try await checkWhole(path, .auto)
    #expect(report.framesHidden > 0)
    let count = report.framesCopied + report.framesHidden
    let frames = try await CopyJudge.frames(of: path, countsHidden: true)
    func complaints(dropping packet: Int64) async throws -> [String] {
      let other = directory.file("other.mov")
      try rewrite(report.path, to: other, without: packet)
      return try await CopyJudge.complaints(about: other, of: path, sourceFrames: frames)
    }
    let none = try await complaints(dropping: -1)
    #expect(none.isEmpty, "\(none)")
    // The last packets, of which one is a hidden reference frame.
    for packet in count - 4..<count { #expect(try await complaints(dropping: packet) != []) }
    for packet in [0, 1, 17, 30] as [Int64] {
      #expect(try await complaints(dropping: packet) != [])
    }
  }

  @Test(arguments: ReorderedEncoding.reordered)
  func `Exporting a trimmed clip copies hidden frames at the start`(
    coding: ReorderedEncoding
  ) async throws {
    let clip = try await clip(coding)
    let trimmed = directory.file("trimmed.mp4")
    for start in RunSize.isFull ? ["0.10", "0.35", "0.95", "1.30"] : ["0.35", "1.30"] {
      try await FFmpeg.make(trimmed, ["-ss", start, "-i", clip, "-c", "copy"])
      let frames = try await CopyJudge.frames(of: trimmed, countsHidden: true)
      for boundary in [CutPolicy.auto, .squeeze, .keyframe] {
        let report = try await checkWhole(trimmed, boundary, sourceFrames: frames)
        #expect(report.framesHidden > 0 && report.hiddenDuration.wholeNanoseconds == 0)
        #expect(report.cuts.isEmpty)
      }
    }
  }

  @Test func `Exporting a trimmed clip can copy over 100 hidden frames`() async throws {
    let clip = directory.file("fast.mp4")
    try await FFmpeg.makeClip(
      clip, frames: 240, rate: "240",
      ["-c:v", "libx265", "-tag:v", "hvc1"]
        + ["-x265-params", "log-level=error:bframes=3:keyint=240"])
    let trimmed = directory.file("trimmed.mp4")
    try await FFmpeg.make(trimmed, ["-ss", "0.6", "-i", clip, "-c", "copy"])
    let report = try await checkWhole(trimmed, .auto)
    #expect(report.framesHidden > 100)
  }

  @Test(arguments: ReorderedEncoding.reordered)
  func `A cut in a trimmed clip copies reference frames as hidden`(coding: ReorderedEncoding)
    async throws
  {
    let trimmed = directory.file("trimmed.mp4")
    try await FFmpeg.make(
      trimmed, ["-ss", "0.35", "-i", try await clip(coding), "-c", "copy"])
    let compositions: [[(Int64, Int64)]] = [
      [(0, 400)], [(200, 500)], [(0, 300), (100, 600), (0, 2_000)],
    ]
    let frames = try await CopyJudge.frames(of: trimmed, countsHidden: true)
    for ranges in compositions {
      let (report, composition, asset) = try copy(trimmed, .squeeze, ranges)
      #expect(report.framesEncoded == 0)
      let expected = try composition.shownTimes(of: asset).map {
        CopyJudge.Expectation(index: $0.index, time: $0.time)
      }
      let complaints = try await CopyJudge.complaints(
        about: report.path, of: trimmed, sourceFrames: frames, showing: expected)
      #expect(complaints.isEmpty, "\(complaints)")
    }
  }

  @Test(arguments: [ReorderedEncoding.plainH264, .plainHEVC])
  func `Reference frames that an edit list skips are copied hidden`(
    coding: ReorderedEncoding
  ) async throws {
    // The edit list plays half a second from 0.5 s, and then the part after 1.7 s. Neither part
    // starts at a key frame.
    let path = try edited(
      try await clip(coding), [(500, 7_680), (700, 26_112)], "jump")
    let report = try await checkWhole(path, .auto)
    #expect(report.framesHidden > 20)
    #expect(
      report.hiddenDuration.wholeNanoseconds > 0 && report.hiddenDuration.wholeNanoseconds < 500_000
    )
  }

  @Test func `Frames are decoded exactly despite gaps in an edit list`() async throws {
    let path = try edited(
      try await clip(.plainH264), [(500, 7_680), (700, 26_112)], "jump")
    let settings = ExportSettings(
      path: directory.file("plain.mov"), mode: .constant(FrameRate(30)))
    var lossless = settings
    lossless.render { $0.encoding = .ffv1 }
    let asset = try Asset(path: path)
    let report = try await ExportSession(Composition(asset), of: asset).export(lossless)
    let shown = try await CopyJudge.frames(of: path, countsHidden: true)
    let made = try await CopyJudge.frames(of: report.path, countsHidden: true)
    #expect(shown.map(\.hash) == made.map(\.hash))
  }

  /// libavformat drops the frames after a key frame in one case: the key frame is decoded long
  /// before it is shown, and its decoding time is after the end of the edit list.
  @Test func `FFmpeg decodes all frames of an export with a slow range`() async throws {
    let plain = directory.file("plain.mp4")
    let keyFrames = [0, 1, 4, 7, 10]
    let isKeyFrame = keyFrames.map { "eq(n,\($0))" }.joined(separator: "+")
    try await FFmpeg.makeClip(
      plain, frames: 13, rate: "1",
      ["-c:v", "libx264", "-bf", "0", "-g", "99", "-force_key_frames", "expr:\(isKeyFrame)"])
    // The frames are I I b b I b b and so on. The first is hidden, and each lasts one frame period.
    let frame: UInt32 = 16_384
    let delays: [UInt32] = [2] + Array([[4, 2, 0], [4, 2, 0], [4, 2, 0], [4, 2, 0]].joined())
    var movie = try PatchedMovie(plain)
    let table = "moov/trak/mdia/minf/stbl"
    try movie.append("ctts", PatchedMovie.table(delays.map { [1, $0 * frame] }), to: table)
    try movie.replace(
      "moov/trak/edts/elst", with: PatchedMovie.editList([(12_000, Int32(3 * frame))]))
    let path = try directory.write(movie.bytes, as: "reordered.mp4")
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.frameCount == 12)
    for start in 0..<Int64(12) {
      for end in [start + 1, start + 3] where end <= 12 {
        var composition = try Composition(asset)
        try composition.scaleTimeRange(
          range(start * 1_000, end * 1_000),
          toDuration: MediaTime(seconds: (end - start) * 4))
        var settings = ExportSettings(path: directory.file("slow.mov"), mode: .passthrough())
        settings.overwrites = true
        let report = try await ExportSession(composition, of: asset).export(settings)
        let shown = try await FFmpeg.probe(report.path, "packet=flags", stream: "v:0")
          .count { !$0.contains("D") }
        #expect(shown == 12, "\(start)..<\(end)")
      }
    }
  }
}
