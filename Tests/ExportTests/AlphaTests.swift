// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Rendered exports of movies with an alpha channel.
struct AlphaTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func movie(_ codec: [String]) async throws -> Asset {
    let path = directory.file("clip.mov")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.2,format=rgba"]
        + ["-vf", "geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='X*4'", "-c:v"] + codec)
    return try Asset(path: path)
  }

  private func render(_ asset: Asset, _ encoding: VideoEncoding, _ name: String) throws
    -> ExportReport
  {
    var settings = ExportSettings(
      path: directory.file(name), mode: .constant(FrameRate(25)))
    settings.render { $0.encoding = encoding }
    return try ExportSession(Composition(asset), of: asset).export(settings)
  }

  /// The alpha of all frames, as FFmpeg decodes them.
  private func alpha(_ path: String) async throws -> [UInt8] {
    try await FFmpeg.converted(path, ["-vf", "alphaextract,format=gray", "-f", "rawvideo"])
  }

  @Test(arguments: [["qtrle"], ["png"], ["prores_ks", "-profile:v", "4444"]])
  func `A lossless export keeps alpha`(codec: [String]) async throws {
    let asset = try await movie(codec)
    let report = try render(asset, .ffv1, "made.mov")
    #expect(!report.lostMetadata.contains("alpha channel"))
    let expected = try await alpha(asset.path)
    #expect(Set(expected).count > 60)
    let found = try await alpha(report.path)
    #expect(found.count == expected.count)
    #expect(zip(found, expected).allSatisfy { abs(Int($0) - Int($1)) <= 2 })
  }

  @Test func `Exporting alpha with a codec that lacks it gives a warning`() async throws {
    let asset = try await movie(["png"])
    for (encoding, name) in [
      (VideoEncoding.h264(), "a.mov"), (.hevc(), "b.mov"), (.mjpeg, "c.mov"), (.gif, "d.gif"),
    ] {
      let report = try render(asset, encoding, name)
      #expect(report.lostMetadata.contains("alpha channel"), "\(name)")
    }
    let opaque = directory.file("opaque.mov")
    try await FFmpeg.makeClip(opaque, frames: 5, ["-c:v", "png", "-pix_fmt", "rgb24"])
    let report = try render(Asset(path: opaque), .h264(), "e.mov")
    #expect(!report.lostMetadata.contains("alpha channel"))
  }

  @Test func `Alpha that the decoder cannot return is reported as lost`() async throws {
    let path = directory.file("clip.webm")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.2,format=yuva420p", "-c:v", "libvpx"]
        + ["-auto-alt-ref", "0"])
    let report = try render(Asset(path: path), .ffv1, "made.mov")
    #expect(report.lostMetadata.contains("alpha channel"))
  }
}
