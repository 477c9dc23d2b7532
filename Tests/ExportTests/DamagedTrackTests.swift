// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Further tracks whose tables are unusual, rounded or damaged.
@Suite(.enabled(if: FFmpeg.isInstalled))
struct DamagedTrackTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func copy(
    _ asset: Asset, _ range: TimeRange? = nil, as name: String = "copy.mov"
  ) throws -> ExportReport {
    var composition = Composition()
    try composition.insertTimeRange(
      try range ?? TimeRange(start: .zero, end: asset.duration), of: asset.mediaSource(), at: .zero)
    var settings = ExportSettings(path: directory.file(name), mode: .passthrough())
    settings.overwrites = true
    return try ExportSession(composition, of: [asset]).export(settings)
  }

  /// A movie of 24000/1001 fps whose stored times are rounded to milliseconds, with a timecode.
  private func timecoded() async throws -> String {
    let (rounded, path) = (directory.file("rounded.mkv"), directory.file("coded.mov"))
    try await FFmpeg.make(
      rounded,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=24000/1001", "-frames:v", "30"]
        + ["-c:v", "mjpeg"])
    try await FFmpeg.make(path, ["-i", rounded, "-c", "copy", "-timecode", "01:00:00:00"])
    return path
  }

  @Test func `A copy begins with the timecode of its first frame`() async throws {
    let asset = try Asset(path: try await timecoded())
    let frames = try #require(asset.videoTrack).frames
    for (number, entry) in frames.entries.enumerated().dropFirst() where number < 24 {
      let start = MediaTime(entry.ticks, over: frames.timescale)
      let report = try copy(asset, try TimeRange(start: start, end: asset.duration))
      let timecode = try await FFmpeg.probe(report.path, "stream_tags=timecode", stream: "v:0")
      #expect(timecode == ["01:00:00:\(number < 10 ? "0" : "")\(number)"])
    }
  }

  @Test(arguments: [UInt32(5_000_000_00), .max])
  func `A timecode of tiny frames is named as lost`(timescale: UInt32) async throws {
    var bytes = try bytes(of: try await timecoded())
    // A sample entry begins with its size and type, six zeros, and the index of its data reference.
    let entry = try #require(
      bytes.indices.dropLast(28).first {
        bytes[$0..<$0 + 12].elementsEqual(Array("tmcd".utf8) + [0, 0, 0, 0, 0, 0, 0, 1])
      })
    // The reserved field and the flags precede the timescale and the duration of a frame.
    withUnsafeBytes(of: timescale.bigEndian) {
      bytes.replaceSubrange(entry + 20..<entry + 24, with: $0)
    }
    withUnsafeBytes(of: UInt32(1).bigEndian) {
      bytes.replaceSubrange(entry + 24..<entry + 28, with: $0)
    }
    let report = try copy(try Asset(path: try directory.write(bytes, as: "tiny.mov")))
    #expect(report.lostMetadata == ["timecode track"])
    #expect(report.framesCopied == 30)
  }

  @Test func `A second audio track needs no edit list`() async throws {
    let path = directory.file("two.mp4")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=25", "-f", "lavfi", "-i", "sine=440"]
        + ["-f", "lavfi", "-i", "sine=880", "-map", "0", "-map", "1", "-map", "2", "-t", "1"]
        + ["-c:v", "libx264", "-bf", "2", "-c:a", "aac", "-use_editlist", "0"])
    let report = try copy(try Asset(path: path), as: "copy.mp4")
    let codecs = try await FFmpeg.probe(report.path, "stream=codec_name")
    #expect(codecs == ["h264", "aac", "aac"])
  }
}
