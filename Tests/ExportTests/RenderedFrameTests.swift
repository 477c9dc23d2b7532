// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming
import TestSupport
import Testing

/// The frames of a rendered export: blending, cropping, rotation, and kept properties.
struct RenderedFrameTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func settings(
    _ rate: Int64 = 25, _ codec: VideoEncoding = .ffv1, _ container: String = "mov"
  ) throws -> ExportSettings {
    var settings = ExportSettings(
      path: directory.file("out.\(container)"), mode: .constant(FrameRate(Int(rate))))
    settings.render { $0.encoding = codec }
    settings.overwrites = true
    return settings
  }

  private func frame(_ index: Int, of asset: Asset) throws -> MediaFrame {
    var reader = try FrameReader(asset)
    return try reader.mediaFrame(at: index)
  }

  /// An export of all frames as they are stored, without processing.
  private func stored(_ asset: Asset, _ rate: Int64) throws -> Asset {
    var settings = try settings(rate)
    settings.path = directory.file("stored.mov")
    return try Asset(path: ExportSession(Composition(asset), of: asset).export(settings).path)
  }

  // MARK: Mixing

  /// A source of 100 fps.
  ///
  /// An output frame covers four source frames at 25 fps, and three and a third at 30 fps.
  @Test(arguments: [25, 30] as [Int64])
  func `Blending weights each frame by its share of the output frame`(rate: Int64) throws {
    let asset = try Asset.made(.constant(100, count: 40, timescale: 240_000), in: directory)
    var settings = try settings(rate)
    settings.render { $0.sampling = .blend }
    let report = try ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.framesSkipped == 0)
    let result = try Asset(path: report.path)
    let count = Int((40 * rate + 99) / 100)
    #expect(result.videoTrack?.frameCount == count)
    let stored = try stored(asset, 100)
    let source = try (0..<40).map { try frame($0, of: stored) }
    let transfer = TransferFunction(curve: .bt709, red: 0.299, blue: 0.114)
    for slot in 0..<count {
      let mixed = try frame(slot, of: result)
      for block in 0..<16 {
        // The frames are gray, so only luma is compared. Times are in hundredths of a second.
        func level(_ frame: MediaFrame) -> Int {
          Int(frame.planeData(0)?[4 * frame.bytesPerRow(0) + block * 8 + 4] ?? 0)
        }
        let start = Double(slot) * 100 / Double(rate)
        let end = min(start + 100 / Double(rate), 40)
        var light = 0.0
        for frame in Int(start)..<min(40, Int(end.rounded(.up))) {
          let share = min(end, Double(frame + 1)) - max(start, Double(frame))
          // FFV1 keeps the full range of JPEG.
          light += share * transfer.linearize(Double(level(source[frame])) / 255)
        }
        let due = 255 * transfer.encode(light / (end - start))
        #expect(abs(Double(level(mixed)) - due) <= 1, "slot \(slot), block \(block)")
      }
    }
  }

  // MARK: Size and rotation

  /// The frame is higher than the area with the painted numbers.
  @Test func `Rendering can crop the center of a frame to the output size`() throws {
    var recipe = MovieRecipe.constant(50, count: 3)
    (recipe.width, recipe.height) = (PaintedBlocks.width, 96)
    let asset = try Asset.made(recipe, in: directory)
    let whole = try frame(2, of: stored(asset, 50))
    var settings = try settings(50)
    settings.render { $0.box = VideoSize(width: PaintedBlocks.width, height: 32) }
    let report = try ExportSession(Composition(asset), of: asset).export(settings)
    let cut = try frame(2, of: Asset(path: report.path))
    #expect((cut.width, cut.height) == (128, 32))
    // The result is rows 32 to 63 of 96, without scaling.
    for y in 0..<32 {
      for x in 0..<128 {
        #expect(
          cut.planeData(0)?[y * cut.bytesPerRow(0) + x]
            == whole.planeData(0)?[(y + 32) * whole.bytesPerRow(0) + x])
      }
    }
    settings.render { $0.box = VideoSize(width: 64, height: 48) }
    settings.render { $0.encoding = .h264() }
    let small = try ExportSession(Composition(asset), of: asset).export(settings)
    let track = try #require(try Asset(path: small.path).videoTrack)
    #expect((track.width, track.height) == (64, 48))
    settings.render { $0.box = VideoSize(width: 63, height: 48) }
    #expect(
      try refusal(Composition(asset), of: asset, settings).recoverySuggestion.contains("even sides")
    )
  }

  @Test(
    "Export can apply the rotation of a movie or keep it as a tag",
    arguments: [
      [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30], [-65_536, 0, 0, 0, -65_536, 0, 0, 0, 1 << 30],
      [0, -65_536, 0, 65_536, 0, 0, 0, 0, 1 << 30],
    ] as [[Int32]])
  func rotated(matrix: [Int32]) async throws {
    var recipe = MovieRecipe.constant(50, count: 6)
    recipe.displayMatrix = matrix
    let asset = try Asset.made(recipe, in: directory)
    var settings = try settings(50)
    settings.render { $0.appliesRotation = true }
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    let upright = try Asset(path: report.path)
    #expect(upright.videoTrack?.rotation == 0)
    #expect(try #require(asset.videoTrack).rotation != 0)
    let (from, to) = (try frame(5, of: stored(asset, 50)), try frame(5, of: upright))
    let onSide = matrix[0] == 0
    #expect((to.width, to.height) == (onSide ? 32 : 128, onSide ? 128 : 32))
    for q in 0..<32 {
      for p in 0..<128 {
        // The display matrix maps each pixel of the stored frame to a pixel of the upright frame,
        // relative to the centers of the frames.
        let (cx, cy) = (Double(p) - 63.5, Double(q) - 15.5)
        let unit = 65_536.0
        let x = (Double(matrix[0]) * cx + Double(matrix[3]) * cy) / unit
        let y = (Double(matrix[1]) * cx + Double(matrix[4]) * cy) / unit
        let column = Int(x + Double(to.width) / 2 - 0.5)
        let row = Int(y + Double(to.height) / 2 - 0.5)
        #expect(
          to.planeData(0)?[row * to.bytesPerRow(0) + column]
            == from.planeData(0)?[q * from.bytesPerRow(0) + p])
      }
    }
    settings.render { $0.appliesRotation = false }
    settings.render { $0.box = VideoSize(width: 64, height: 96) }
    let kept = try await Asset(
      path: ExportSession(Composition(asset), of: asset).export(settings).path)
    let track = try #require(kept.videoTrack)
    #expect(track.rotation == asset.videoTrack?.rotation)
    #expect((track.width, track.height) == (onSide ? 96 : 64, onSide ? 64 : 96))
  }

  // MARK: Kept properties

  @Test(
    .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"),
    arguments: [VideoEncoding.h264(), .hevc(), .ffv1])
  func `Rendering keeps ten bits per sample and color tags`(codec: VideoEncoding) async throws {
    let source = directory.file("deep.mov")
    _ = try await run(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=0.2", "-vf",
        "format=yuv420p10le", "-c:v", "libx264", "-preset", "ultrafast", "-color_primaries",
        "bt2020", "-color_trc", "arib-std-b67", "-colorspace", "bt2020nc", source,
      ])
    let asset = try Asset(path: source)
    let report = try await ExportSession(Composition(asset), of: asset).export(settings(25, codec))
    #expect(
      try await FFmpeg.probe(
        report.path, "stream=pix_fmt,color_space,color_transfer,color_primaries", stream: "v")
        == ["yuv420p10le,bt2020nc,arib-std-b67,bt2020"])
    #expect(
      try await FFmpeg.probe(report.path, "stream=codec_tag_string", stream: "v").first
        == [.h264: "avc1", .hevc: "hvc1", .ffv1: "FFV1"][codec.codec])
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `The x264 preset and profile are applied and validated`() async throws {
    let asset = try Asset.made(.constant(50, count: 5), in: directory)
    var settings = try settings(
      50, .h264(EncoderSettings(preset: "ultrafast", profile: "baseline")))
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(
      try await FFmpeg.probe(report.path, "stream=profile", stream: "v")
        == ["Constrained Baseline"])
    settings.render { $0.encoding = .h264(EncoderSettings(profile: "vhs")) }
    let error = try #require(throws: MediaError.self) {
      try ExportSession(Composition(asset), of: asset).export(settings)
    }
    #expect(error.message.contains("libx264"))
    #expect(try directory.names().sorted() == ["clip.mov", "out.mov"])
  }

  /// A reader that knows which frames are needed does not decode the others.
  @Test func `Skipping unneeded frames does not change the decoded frames`() throws {
    let asset = try Asset.made(
      MovieRecipe.constant(240, count: 96).h264(gop: 48, reordered: true), in: directory)
    var picky = try FrameReader(asset, wanted: (0..<96).map { $0 % 8 == 1 })
    var plain = try FrameReader(asset)
    for index in stride(from: 1, to: 96, by: 8) {
      #expect(
        try picky.mediaFrame(at: index).packedBytes() == plain.mediaFrame(at: index).packedBytes())
    }
    // A frame that was not announced as needed can still be read.
    #expect(PaintedBlocks.number(in: try picky.mediaFrame(at: 50)) == 50)
    #expect(PaintedBlocks.number(in: try picky.mediaFrame(at: 57)) == 57)
  }

  @Test(arguments: ["mov", "mp4"])
  func `The index of an exported movie lies before the media data`(container: String) throws {
    var recipe = MovieRecipe.constant(50, count: 50)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 48_000
    recipe.metadata = ["title": String(repeating: "long ", count: 2_000)]
    let asset = try Asset.made(recipe, in: directory)
    for composition in [try Composition(asset), try asset.retimed([(range(0, 500), speed(1, 2))])] {
      let report = try ExportSession(composition, of: asset).export(
        settings(50, .h264(), container))
      let content = try bytes(of: report.path)
      func position(of name: String) -> Int? {
        let wanted = Array(name.utf8)
        return content.indices.dropLast(4).first { Array(content[$0..<$0 + 4]) == wanted }
      }
      #expect(try #require(position(of: "moov")) < #require(position(of: "mdat")))
      #expect(try Asset(path: report.path).metadata["title"] == recipe.metadata["title"])
    }
  }

  @Test(arguments: [nil, AudioCodec.aac, .pcm])
  func `Exported audio is stored in the requested codec`(codec: AudioCodec?) throws {
    var recipe = MovieRecipe.constant(50, count: 25)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 24_000
    let asset = try Asset.made(recipe, in: directory)
    let composition = try asset.retimed([(range(0, 200), speed(1, 2))])
    var settings = try settings(50, .mjpeg)
    settings.audioCodec = codec
    let result = try Asset(path: ExportSession(composition, of: asset).export(settings).path)
    #expect(result.audioTrack?.codec == (codec ?? .aac))
    #expect(result.audioTrack?.sampleCount == 33_600)
    settings.path = directory.file("out.mp4")
    if codec == .pcm {
      #expect(try refusal(composition, of: asset, settings).code == .unsupportedContainer)
    }
  }
}
