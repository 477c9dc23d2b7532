// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Slow-motion movies of phones in HEVC: HLG in 10 bits, with Dolby Vision and open GOPs.
struct PhoneFootageTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private static let appleIntent = "com.apple.quicktime.full-frame-rate-playback-intent"
  private static let androidRate = "com.android.capture.fps"

  /// The slow motion of an iPhone at 1/8, from 0.1 s to 0.3 s.
  private static let sidecar = """
    <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>
    <key>adjustmentFormatIdentifier</key><string>com.apple.video.slomo</string>
    <key>adjustmentData</key><data>
    YnBsaXN0MDDRAQJac2xvd01vdGlvbtIDBAUGVHJhdGVXcmVnaW9ucyM/wAAAAAAAAKEH0QgJWXRp
    bWVSYW5nZdIKCwwVWGR1cmF0aW9uVXN0YXJ01A0ODxAREhMUVWVwb2NoVWZsYWdzWXRpbWVzY2Fs
    ZVV2YWx1ZRAAEAERAlgQeNQNDg8QERITFhA8CAsWGyAoMTM2QEVOVF1jaXN5e32AgosAAAAAAAAB
    AQAAAAAAAAAXAAAAAAAAAAAAAAAAAAAAjQ==
    </data></dict></plist>
    """

  /// A movie of 480 frames with a tag, as a phone makes it.
  private func footage(_ name: String, tag: String, _ value: String, rate: Int = 240) async throws
    -> Asset
  {
    let path = directory.file("plain-\(name)")
    try await FFmpeg.makeClip(
      path, frames: 480, rate: "\(rate)",
      [
        "-pix_fmt", "yuv420p10le", "-color_primaries", "bt2020", "-color_trc", "arib-std-b67",
        "-colorspace", "bt2020nc", "-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1",
        "-x265-params",
        "log-level=none:keyint=60:bframes=3:open-gop=1:colorprim=bt2020:transfer=arib-std-b67"
          + ":colormatrix=bt2020nc", "-metadata", "\(tag)=\(value)", "-movflags",
        "use_metadata_tags",
      ])
    return try claimingDolbyVision(path, directory.file(name))
  }

  /// Copies a composition, and checks the times, the frames and the marks of the copy.
  private func check(
    _ composition: Composition, of asset: Asset, as name: String
  ) async throws -> (report: ExportReport, copy: Asset) {
    var settings = ExportSettings(path: directory.file(name), mode: .passthrough())
    settings.overwrites = true
    let report = try await ExportSession(composition, of: asset).export(settings)
    let source = try await CopyJudge.frames(of: asset.path, countsHidden: true)
    let shown = try await CopyJudge.frames(of: report.path, countsHidden: false)
    let wanted = try composition.shownTimes(of: asset)
    #expect(shown.map(\.time) == wanted.map { $0.time - wanted[0].time })
    let entries = try #require(asset.videoTrack).frames.entries
    let copied = Set(
      report.copies.flatMap { $0.firstPacket..<$0.firstPacket + $0.packetCount }.map { Int($0) })
    for (frame, expected) in zip(shown, wanted)
    where copied.contains(entries[expected.index].decodeIndex) {
      #expect(frame.hash == source[expected.index].hash, "frame \(expected.index)")
    }
    #expect(report.framesCopied + report.framesEncoded == Int64(wanted.count))
    #expect(report.framesHidden == 0 && report.lostMetadata.isEmpty, "\(report.lostMetadata)")
    #expect(report.framesWithoutRPU == report.framesEncoded)
    let copy = try Asset(path: report.path)
    let track = try #require(copy.videoTrack)
    #expect(track.dolbyVision == asset.videoTrack?.dolbyVision && track.dolbyVision != nil)
    #expect(track.bitDepth == 10 && track.transferFunction == "arib-std-b67")
    #expect(copy.duration == composition.duration)
    return (report, copy)
  }

  @Test(.enabled(if: FFmpeg.isInstalled), arguments: ["mov", "mp4"])
  func `HEVC of an iPhone is copied at the speeds of its AAE file`(
    container: String
  ) async throws {
    let asset = try await footage("phone.mov", tag: Self.appleIntent, "0")
    #expect(asset.captureFrameRate?.rate == 240)
    #expect(asset.captureFrameRate?.source == Self.appleIntent)
    let markers = try SlowMotionMarkers(aae: Self.sidecar)
    var composition = try markers.composition(of: asset.mediaSource())
    #expect(composition.duration == .milliseconds(3_400))
    let (whole, copy) = try await check(composition, of: asset, as: "whole.\(container)")
    #expect(whole.framesCopied == 480 && copy.captureFrameRate?.rate == 240)
    // A cut inside the slow motion, and one after it.
    try composition.removeTimeRange(range(2_430, 3_400))
    try composition.removeTimeRange(range(0, 500))
    let (cut, _) = try await check(composition, of: asset, as: "cut.\(container)")
    #expect(cut.framesCopied > 100 && (1...70).contains(cut.framesEncoded))
    #expect(cut.framesHeaderChanged == 1)
    // Rendered frames have no metadata of Dolby Vision.
    var settings = ExportSettings(
      path: directory.file("made.\(container)"),
      mode: .constant(30, RenderSettings(encoding: .hevc(EncoderSettings(preset: "ultrafast")))))
    settings.overwrites = true
    let made = try await ExportSession(composition, of: asset).export(settings)
    #expect(made.framesEncoded == 58)
    let track = try #require(try Asset(path: made.path).videoTrack)
    #expect(track.dolbyVision == nil && track.bitDepth == 10)
    #expect(track.transferFunction == "arib-std-b67")
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `HEVC of Android plays at full speed and by its markers`() async throws {
    // Some phones store 240 fps at 30 fps.
    let slow = try await footage("slow.mp4", tag: Self.androidRate, "240.000000", rate: 30)
    #expect(slow.captureFrameRate?.rate == 240 && slow.duration == MediaTime(seconds: 16))
    var full = try Composition(slow)
    try full.scaleTimeRange(TimeRange(duration: slow.duration), toDuration: MediaTime(seconds: 2))
    let (_, fast) = try await check(full, of: slow, as: "fast.mp4")
    #expect(fast.captureFrameRate?.rate == 240)
    #expect(fast.videoTrack?.nominalFrameRate == 240)
    let asset = try await footage("fast.mp4", tag: Self.androidRate, "240.000000")
    func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    // At 1/4 from 0.5 s to 1.5 s.
    let data =
      bytes(Float(1).bitPattern) + bytes(UInt32(2)) + bytes(UInt64(500_000))
      + bytes(Float(0.25).bitPattern) + bytes(UInt64(1_500_000)) + bytes(Float(1).bitPattern)
    let markers = try SlowMotionMarkers(android: data, duration: asset.duration)
    var composition = try markers.composition(of: asset.mediaSource())
    #expect(composition.duration == MediaTime(seconds: 5))
    _ = try await check(composition, of: asset, as: "marked.mp4")
    try composition.removeTimeRange(range(0, 1_110))
    let (cut, _) = try await check(composition, of: asset, as: "marked.mp4")
    #expect(cut.framesEncoded > 0)
  }

  @Test(.enabled(if: FFmpeg.isInstalled))
  func `HEVC slowed or trimmed by its edit list is copied`() async throws {
    let asset = try await footage("edited.mov", tag: "comment", "none")
    #expect(asset.captureFrameRate == nil)
    var movie = try PatchedMovie(asset.path)
    // An edit list box has a version, the number of entries, and then the first entry.
    try movie.set(0x2000 as UInt32, at: 16, of: "moov/trak/edts/elst")
    let slowed = try Asset(path: directory.write(movie.bytes, as: "slowed.mov"))
    #expect(slowed.captureFrameRate?.rate == 240)
    #expect(slowed.captureFrameRate?.source == "edit_list")
    let (whole, _) = try await check(Composition(slowed), of: slowed, as: "whole.mov")
    #expect(whole.framesCopied == 480)
    // The phone's own trim: the first 110 frames are in the file, and hidden.
    let scale = Int64(try #require(asset.videoTrack).timescale)
    let start = try movie.number(4, at: 12, of: "moov/trak/edts/elst")
    try movie.set(UInt32(start) + UInt32(scale * 110 / 240), at: 12, of: "moov/trak/edts/elst")
    try movie.set(UInt32(1_500), at: 8, of: "moov/trak/edts/elst")
    try movie.set(0x1_0000 as UInt32, at: 16, of: "moov/trak/edts/elst")
    let trimmed = try Asset(path: directory.write(movie.bytes, as: "trimmed.mov"))
    #expect(trimmed.videoTrack?.frameCount == 360)
    let part = try composition(of: trimmed, [(100, 1_000)])
    let (cut, _) = try await check(part, of: trimmed, as: "cut.mov")
    #expect(cut.framesEncoded < 75)
  }
}
