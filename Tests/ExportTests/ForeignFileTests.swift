// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Movies of other programs.
///
/// They have pixel aspect ratios, color profiles, fields, wrong sync sample tables, encryption, or
/// codecs that MOV or MP4 cannot store.
struct ForeignFileTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func copy(_ path: String, as name: String = "copy.mov") throws -> ExportReport {
    let asset = try Asset(path: path)
    var settings = ExportSettings(path: directory.file(name), mode: .passthrough())
    settings.overwrites = true
    return try ExportSession(Composition(asset), of: asset).export(settings)
  }

  private func render(
    _ path: String, _ codec: VideoEncoding, as name: String = "made.mov",
    _ change: (inout ExportSettings) -> Void = { _ in }
  ) throws -> ExportReport {
    let asset = try Asset(path: path)
    var settings = ExportSettings(
      path: directory.file(name), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = codec }
    settings.overwrites = true
    change(&settings)
    return try ExportSession(Composition(asset), of: asset).export(settings)
  }

  @Test func `The pixel aspect ratio of the container overrides the codec`()
    async throws
  {
    let narrow = directory.file("narrow.mp4")
    try await FFmpeg.makeClip(narrow, frames: 10, ["-vf", "setsar=27/64", "-c:v", "libx264"])
    let square = directory.file("square.mp4")
    try await FFmpeg.make(square, ["-i", narrow, "-c", "copy", "-aspect", "4:3"])
    let wide = directory.file("wide.mkv")
    try await FFmpeg.makeClip(wide, frames: 10, ["-vf", "setsar=64/45", "-c:v", "mjpeg"])
    for (path, aspect) in [(narrow, "27:64"), (square, "1:1"), (wide, "64:45")] {
      for container in ["mov", "mp4"] {
        let copied = try copy(path, as: "copy.\(container)")
        #expect(
          try await FFmpeg.probe(copied.path, "stream=sample_aspect_ratio") == [aspect],
          "\(path) as \(container)")
      }
      let made = try render(path, .h264())
      #expect(try await FFmpeg.probe(made.path, "stream=sample_aspect_ratio") == [aspect])
    }
  }

  @Test func `An export keeps the embedded color profile`() async throws {
    let path = directory.file("tagged.mov")
    try await FFmpeg.makeClip(
      path, frames: 10,
      ["-c:v", "libx264", "-color_primaries", "bt709", "-color_trc", "bt709"]
        + ["-colorspace", "bt709"])
    // QuickTime's color tags are six bytes after the box type. Here these bytes replace a short
    // color profile.
    var movie = try bytes(of: path)
    let tags = try #require(movie.firstRange(of: Array("colrnclc".utf8)))
    movie.replaceSubrange(tags, with: Array("colrprof".utf8))
    let profile = Array(movie[tags.upperBound..<tags.upperBound + 6])
    let profiled = try directory.write(movie, as: "profiled.mov")
    for container in ["mov", "mp4"] {
      let reports = [
        try copy(profiled, as: "copy.\(container)"),
        try render(profiled, .h264(), as: "made.\(container)"),
      ]
      for report in reports {
        #expect(report.lostMetadata == [])
        let made = try bytes(of: report.path)
        #expect(made.firstRange(of: Array("colrprof".utf8) + profile) != nil, "\(report.path)")
        // The H.264 stream has the color tags, too.
        let tags = try await FFmpeg.probe(report.path, "stream=color_primaries")
        #expect(tags.first?.hasPrefix("bt709") == true)
      }
    }
  }

  @Test(arguments: ["mjpeg", "libx264"])
  func `FFV1 output of a full-range clip keeps pixels and color tags`(
    encoder: String
  ) async throws {
    let path = directory.file("full.mov")
    try await FFmpeg.makeClip(
      path, frames: 20,
      ["-c:v", encoder, "-pix_fmt", "yuvj420p", "-color_primaries", "bt709"]
        + ["-color_trc", "iec61966-2-1", "-colorspace", "bt470bg"])
    let report = try render(path, .ffv1)
    let entries = "stream=color_range,color_space,color_transfer,color_primaries"
    #expect(
      try await FFmpeg.probe(report.path, entries) == ["pc,bt470bg,iec61966-2-1,bt709"])
    // `CopyJudge` compares samples and ignores the color range tag.
    #expect(try await CopyJudge.complaints(about: report.path, of: path) == [])
    // Exporting the result again must keep the color box at the same position.
    let copied = try copy(report.path)
    #expect(try await FFmpeg.probe(copied.path, "stream=color_range") == ["pc"])
    #expect(try await CopyJudge.complaints(about: copied.path, of: path) == [])
    #expect(try Asset(path: copied.path).videoTrack?.frameCount == 20)
  }

  @Test func `The error for a codec in the wrong container names the codec`()
    async throws
  {
    let vp8 = directory.file("clip.webm")
    try await FFmpeg.makeClip(vp8, frames: 10, ["-c:v", "libvpx"])
    for container in ["mov", "mp4"] {
      let asset = try Asset(path: vp8)
      let error = try refusal(
        Composition(asset), of: asset,
        ExportSettings(path: directory.file("a.\(container)"), mode: .passthrough()))
      #expect(error.code == .unsupportedContainer)
      #expect(error.message.contains("vp8") && error.message.contains(container.uppercased()))
    }
    let h264 = directory.file("clip.mp4")
    try await FFmpeg.makeClip(h264, frames: 10, ["-c:v", "libx264"])
    let asset = try Asset(path: h264)
    var settings = ExportSettings(
      path: directory.file("a.mp4"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .ffv1 }
    #expect(
      try refusal(Composition(asset), of: asset, settings).code == .unsupportedContainer)
    let raw = directory.file("clip.h264")
    try await FFmpeg.makeClip(raw, frames: 10, ["-c:v", "libx264"])
    let untimed = #expect(throws: MediaError.self) { try Asset(path: raw) }
    #expect(untimed?.message.contains("has no presentation time") == true)
  }

  @Test(arguments: [
    ("libopus", "mkv", "mov"), ("flac", "mkv", "mp4"), ("adpcm_ima_wav", "avi", "mov"),
    ("adpcm_ms", "avi", "mp4"), ("wmav2", "mkv", "mp4"), ("wmav2", "mkv", "mov"),
    ("wmav1", "avi", "mov"), ("libvorbis", "mkv", "mov"),
  ])
  func `Audio that a container cannot store is encoded as AAC`(
    codec: String, source: String, container: String
  ) async throws {
    let path = directory.file("clip.\(source)")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=30", "-f", "lavfi"]
        + ["-i", "sine=440:r=48000", "-t", "1", "-c:v", "mjpeg", "-c:a", codec, "-strict", "-2"])
    let report = try copy(path, as: "copy.\(container)")
    #expect(report.audio.map { $0.algorithm != "copy" } == true)
    #expect(try await FFmpeg.probe(report.path, "stream=codec_name", stream: "a:0") == ["aac"])
    let audio = try await FFmpeg.audio(of: report.path, channelCount: 1)[0]
    let power = audio[4_000..<44_000].reduce(0) { $0 + $1 * $1 } / 40_000
    // The generated sine has an eighth of full scale.
    #expect((power * 128).squareRoot() > 0.9 && (power * 128).squareRoot() < 1.1)
  }

  @Test func `AMR audio is copied into MOV and encoded for MP4`()
    async throws
  {
    // Two seconds of frames in the lowest AMR mode: a header of one byte, then arbitrary bits.
    var voice = Array("#!AMR\n".utf8)
    for frame in 0..<100 {
      voice.append(0x04)
      voice += (0..<12).map { UInt8(truncatingIfNeeded: frame * 7 + $0) }
    }
    let raw = try directory.write(voice, as: "voice.amr")
    let path = directory.file("clip.3gp")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=30", "-f", "amr", "-i", raw, "-t", "2"]
        + ["-c:v", "libx264", "-c:a", "copy"])
    for (container, codec) in [("mov", "amr_nb"), ("mp4", "aac")] {
      let report = try copy(path, as: "copy.\(container)")
      #expect(report.audio.map { $0.algorithm == "copy" } == (container == "mov"))
      #expect(
        try await FFmpeg.probe(report.path, "stream=codec_name", stream: "a:0") == [codec])
    }
  }

  @Test func `Two AVCHD fields are read as one frame`() async throws {
    let raw = try directory.write(FieldCodedVideo(frameCount: 13).bytes, as: "fields.h264")
    let path = directory.file("fields.ts")
    try await FFmpeg.make(
      path,
      ["-framerate", "25", "-f", "h264", "-i", raw, "-f", "lavfi", "-i", "sine=440:r=48000"]
        + ["-t", "0.52", "-c:v", "copy", "-c:a", "aac"])
    let asset = try Asset(path: path)
    let track = try #require(asset.videoTrack)
    #expect(track.frameCount == 13)
    #expect(try track.frames.time(ofFrame: 12).seconds == Rational(12, over: 25))
    #expect(track.nominalFrameRate == FrameRate(25))
    var reader = try FrameReader(asset)
    for frame in Array(0..<13) + [4, 11, 0] {
      let image = try reader.mediaFrame(at: frame)
      let rows = try #require(image.planeData(0))
      #expect(rows[0] == FieldCodedVideo.luma(ofFrame: frame, isBottom: false))
      #expect(
        rows[image.bytesPerRow(0)] == FieldCodedVideo.luma(ofFrame: frame, isBottom: true))
    }
    let report = try copy(path)
    #expect(report.framesCopied == 13)
    let complaints = try await CopyJudge.complaints(about: report.path, of: path)
    #expect(complaints == [])
    let packets = try await FFmpeg.probe(report.path, "packet=pts", stream: "v:0")
    #expect(packets.count == 13)
  }

  @Test(arguments: [["png"], ["cfhd", "-pix_fmt", "yuv422p10"]])
  func `Copies of intra codecs keep every key frame`(codec: [String]) async throws {
    let path = directory.file("intra.mov")
    try await FFmpeg.makeClip(path, frames: 9, ["-s", "64x48", "-c:v"] + codec)
    #expect(try Asset(path: path).videoTrack?.frames.entries.allSatisfy(\.isKeyFrame) == true)
    let flags = try await FFmpeg.probe(copy(path).path, "packet=flags", stream: "v:0")
    #expect(flags.count { $0.contains("K") } == 9)
  }

  @Test(arguments: [
    ["prores_ks", "-profile:v", "4444", "-pix_fmt", "yuva444p10le"],
    ["utvideo", "-pix_fmt", "gbrp"],
    ["v210", "-pix_fmt", "yuv422p10le"], ["rawvideo", "-pix_fmt", "bgra"],
  ])
  func `Copies keep the variant of a codec`(codec: [String]) async throws {
    let path = directory.file("variant.mov")
    try await FFmpeg.makeClip(path, frames: 5, ["-s", "96x64", "-c:v"] + codec)
    let report = try copy(path)
    let entries = "stream=codec_tag_string,pix_fmt"
    #expect(try await FFmpeg.probe(report.path, entries) == FFmpeg.probe(path, entries))
    let images = ["-f", "rawvideo", "-fps_mode", "passthrough"]
    #expect(try await FFmpeg.converted(report.path, images) == FFmpeg.converted(path, images))
  }

  @Test(arguments: ["yuv420p", "nv12", "gray16le"])
  func `Uncompressed frames that MOV cannot name are refused`(format: String) async throws {
    let path = directory.file("raw.nut")
    try await FFmpeg.makeClip(
      path, frames: 3, ["-s", "64x48", "-c:v", "rawvideo", "-pix_fmt", format])
    #expect {
      try copy(path)
    } throws: {
      ($0 as? MediaError)?.code == .unsupportedContainer
    }
  }

  @Test func `Parameter sets between two fields apply to the second`() async throws {
    let video = FieldCodedVideo(frameCount: 6, frameWithChange: 2)
    let raw = try directory.write(video.bytes, as: "fields.h264")
    let path = directory.file("fields.ts")
    try await FFmpeg.make(path, ["-framerate", "25", "-f", "h264", "-i", raw, "-c:v", "copy"])
    let expected = try await FFmpeg.converted(path, ["-f", "rawvideo", "-fps_mode", "passthrough"])
    let asset = try Asset(path: path)
    #expect(asset.notes.count { $0.contains("two fields of 1 frames") } == 1)
    let report = try copy(path)
    #expect(report.warnings.contains { $0.contains("two fields") })
    // FFmpeg would decode the copy wrong, but this library does not.
    for path in [path, report.path] {
      var reader = try FrameReader(Asset(path: path))
      var writer = try RawFrameWriter(PixelFormat(rawValue: "yuv420p"))
      var images: [UInt8] = []
      for frame in 0..<6 { images += try writer.data(of: frame, from: &reader) }
      #expect(images == expected)
    }
    let size = 32 * 32 * 3 / 2
    #expect(expected[2 * size] != expected[2 * size + 32] && expected[0] == expected[32])
  }

  @Test func `A passthrough export keeps the leading frames of an open GOP`()
    async throws
  {
    let whole = directory.file("whole.mp4")
    try await FFmpeg.makeClip(
      whole,
      ["-c:v", "libx264", "-bf", "2", "-g", "30"]
        + ["-x264-params", "b-adapt=0:b-pyramid=none:open-gop=1"])
    // Like a recording of a broadcast, the file begins with an open GOP, here the second one.
    let stream = directory.file("whole.ts")
    try await FFmpeg.make(
      stream, ["-i", whole, "-c", "copy", "-bsf:v", "h264_mp4toannexb,dump_extra=freq=keyframe"])
    let entries = try await FFmpeg.probe(stream, "packet=pos,flags", stream: "v:0")
    let start = try #require(entries.filter { $0.contains("K") }.dropFirst().first)
    let position = try #require(start.split(separator: ",").compactMap { Int($0) }.first)
    let all = try bytes(of: stream)
    // The first packets contain the program tables of the transport stream.
    let path = try directory.write(Array(all[..<564] + all[position...]), as: "tuned.ts")
    let asset = try Asset(path: path)
    let frames = try #require(asset.videoTrack).frames.entries
    #expect(frames.first?.decodeIndex != 0)
    for container in ["mov", "mp4"] {
      let report = try copy(path, as: "copy.\(container)")
      #expect(try await CopyJudge.complaints(about: report.path, of: path) == [])
      #expect(report.framesCopied == Int64(frames.count))
      #expect(try Asset(path: report.path).videoTrack?.frameCount == frames.count)
      // The edit list hides no frame of the export, whether or not a decoder shows the leading
      // frames.
      let flags = try await FFmpeg.probe(report.path, "packet=flags", stream: "v:0")
      #expect(flags.count == frames.count && !flags.contains { $0.contains("D") })
    }
  }

  @Test func `Wrong sync sample entries do not affect reads or exports`() async throws {
    let plain = directory.file("plain.mp4")
    try await FFmpeg.makeClip(
      plain, ["-c:v", "libx264", "-bf", "2", "-g", "30", "-x264-params", "b-adapt=0"])
    var movie = try PatchedMovie(plain)
    var table = BoxBytes()
    table.append(UInt32(0))
    table.append(UInt32(90))
    for sample in 1...90 as ClosedRange<UInt32> { table.append(sample) }
    try movie.replace("moov/trak/mdia/minf/stbl/stss", with: table.bytes)
    let path = try directory.write(movie.bytes, as: "lying.mp4")
    let asset = try Asset(path: path)
    let keys = try #require(asset.videoTrack).frames.entries.indices.filter {
      asset.videoTrack?.frames.entries[$0].isKeyFrame == true
    }
    #expect(keys == [0, 30, 60])
    var reader = try FrameReader(asset)
    var straight = try FrameReader(Asset(path: plain))
    var writer = PNGWriter()
    var other = PNGWriter()
    for frame in [47, 12, 89, 58, 31, 3] {
      let found = try writer.data(of: frame, from: &reader)
      #expect(found == (try other.data(of: frame, from: &straight)), "frame \(frame)")
    }
    let report = try copy(path)
    #expect(try await CopyJudge.complaints(about: report.path, of: plain) == [])
    let flags = try await FFmpeg.probe(report.path, "packet=flags", stream: "v:0")
    #expect(flags.count { $0.hasPrefix("K") } == 3)
  }

  @Test(arguments: [["h263", "-s", "128x96"], ["mpeg4", "-bf", "0"], ["mpeg2video", "-bf", "0"]])
  func `Key frames are detected without a sync sample table`(
    coding: [String]
  ) async throws {
    let plain = directory.file("plain.mov")
    try await FFmpeg.makeClip(plain, frames: 40, ["-g", "12", "-c:v"] + coding)
    var movie = try bytes(of: plain)
    let table = try #require(movie.firstRange(of: Array("stss".utf8)))
    movie.replaceSubrange(table, with: Array("free".utf8))
    let path = try directory.write(movie, as: "tableless.mov")
    let asset = try Asset(path: path)
    let entries = try #require(asset.videoTrack).frames.entries
    let keys = entries.indices.filter { entries[$0].isKeyFrame }
    #expect(keys == (coding[0] == "h263" ? [0] : [0, 12, 24, 36]))
    var composition = Composition()
    try composition.insertTimeRange(range(700, 1_200), of: asset.mediaSource(), at: .zero)
    var settings = ExportSettings(path: directory.file("cut.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: .squeeze)
    let report = try await ExportSession(composition, of: asset).export(settings)
    #expect(report.framesHidden > 0)
    let expected = try composition.shownTimes(of: asset).map {
      CopyJudge.Expectation(index: $0.index, time: $0.time)
    }
    let complaints = try await CopyJudge.complaints(
      about: report.path, of: plain, showing: expected)
    #expect(complaints == [])
  }

  @Test func `An encrypted file is refused and named in the error`() async throws {
    let plain = directory.file("plain.mp4")
    try await FFmpeg.make(
      plain,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=30", "-f", "lavfi"]
        + ["-i", "sine=440:r=48000", "-t", "1", "-c:v", "libx264", "-c:a", "aac"])
    let path = directory.file("encrypted.mp4")
    try await FFmpeg.make(
      path,
      ["-i", plain, "-c", "copy", "-encryption_scheme", "cenc-aes-ctr", "-encryption_key"]
        + ["00112233445566778899aabbccddeeff", "-encryption_kid"]
        + ["ffeeddccbbaa99887766554433221100"])
    let error = #expect(throws: MediaError.self) { try Asset(path: path) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains("are encrypted") == true)
    #expect(error?.message.contains(path) == true)
  }
}
