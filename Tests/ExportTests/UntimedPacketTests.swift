// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Files whose packets have no presentation times; `CopyJudge` checks each copy with FFmpeg.
struct UntimedPacketTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A container that leaves out packet times, with or without B-frames.
  enum Kind: String, CaseIterable {
    case xvid = "xvid.avi"
    case h264AVI = "h264.avi"
    case h264Pyramid = "pyramid.avi"
    case plainH264 = "plain.avi"
    case mpeg2 = "mpeg2.mpg"
    case mpeg1 = "mpeg1.mpg"
    case h264Program = "h264.vob"

    var options: [String] {
      let h264 = ["-c:v", "libx264", "-g", "30", "-bf", "3", "-x264-params"]
      switch self {
      case .xvid: return ["-c:v", "mpeg4", "-vtag", "XVID", "-bf", "2", "-g", "30"]
      case .h264AVI: return h264 + ["b-adapt=0:b-pyramid=none"]
      case .h264Pyramid: return h264 + ["bframes=6:b-adapt=0:b-pyramid=normal:ref=4"]
      case .plainH264: return h264 + ["bframes=0"]
      case .mpeg2: return ["-c:v", "mpeg2video", "-bf", "2", "-g", "15"]
      case .mpeg1: return ["-c:v", "mpeg1video", "-bf", "2", "-g", "15"]
      case .h264Program: return h264 + ["b-adapt=0:b-pyramid=normal", "-f", "vob"]
      }
    }
  }

  private func clip(_ kind: Kind) async throws -> Asset {
    let path = directory.file(kind.rawValue)
    try await FFmpeg.makeClip(path, kind.options)
    return try Asset(path: path)
  }

  @Test(arguments: Kind.allCases)
  func `Packets without timestamps are exported at even intervals`(kind: Kind) async throws {
    let asset = try await clip(kind)
    let frames = try #require(asset.videoTrack).frames
    #expect(frames.entries.count == 90)
    let seconds = (0...90 as ClosedRange<Int64>).map { Rational(Int128($0), over: 30) }
    #expect(
      try (0...90 as ClosedRange<Int64>).map { try frames.time(ofFrame: $0).seconds } == seconds)
    var settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: .keyframe)
    // FFmpeg can only guess the times of such a file, so the expected times are passed.
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.framesCopied == 90 && report.framesHidden == 0)
    let expected = seconds.dropLast().enumerated().map {
      CopyJudge.Expectation(index: $0, time: $1)
    }
    let complaints = try await CopyJudge.complaints(
      about: report.path, of: asset.path, showing: expected)
    #expect(complaints.isEmpty, "\(complaints)")
  }

  @Test(arguments: Kind.allCases)
  func `Frames of packets without timestamps can be read by number`(kind: Kind) async throws {
    let asset = try await clip(kind)
    var settings = ExportSettings(
      path: directory.file("frames.mov"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .ffv1 }
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    let shown = try await CopyJudge.frames(of: asset.path, countsHidden: true)
    let made = try await CopyJudge.frames(of: report.path, countsHidden: true)
    #expect(shown.map(\.hash) == made.map(\.hash))
    var reader = try FrameReader(asset)
    var writer = PNGWriter()
    var all: [[UInt8]] = []
    for index in 0..<90 { all.append(try writer.data(of: index, from: &reader)) }
    #expect(Set(all).count == 90)
    for index in [70, 3, 4, 89, 0, 41] {
      #expect(try writer.data(of: index, from: &reader) == all[index])
    }
  }

  @Test func `Packets without timestamps can be cut and retimed exactly`() async throws {
    let asset = try await clip(.h264Pyramid)
    let source = try asset.mediaSource()
    var composition = Composition()
    for (start, end) in [(400, 900), (100, 300), (1_000, 3_000)] as [(Int64, Int64)] {
      try composition.insertTimeRange(range(start, end), of: source, at: composition.duration)
    }
    try composition.scaleTimeRange(range(600, 700), toDuration: .milliseconds(800))
    var settings = ExportSettings(path: directory.file("cut.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: .squeeze)
    let report = try await ExportSession(composition, of: asset).export(settings)
    let expected = try composition.shownTimes(of: asset).map {
      CopyJudge.Expectation(index: $0.index, time: $0.time)
    }
    #expect(
      try await CopyJudge.complaints(about: report.path, of: asset.path, showing: expected) == [])
  }
}
