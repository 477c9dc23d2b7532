// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// The output file of an export: its path and metadata, and that no temporary file remains.
struct OutputTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func asset(_ change: (inout MovieRecipe) -> Void = { _ in }) throws -> Asset {
    var recipe = MovieRecipe.constant(100, count: 100)
    change(&recipe)
    return try .made(recipe, in: directory)
  }

  private func settings(_ name: String, _ mode: ExportMode = .passthrough()) -> ExportSettings {
    ExportSettings(path: directory.file(name), mode: mode)
  }

  @Test(arguments: ["mov", "mp4", "m4v", "MOV"])
  func `The file extension selects the container`(suffix: String) throws {
    let asset = try asset()
    let report = try ExportSession(Composition(asset), of: asset).export(settings("a.\(suffix)"))
    #expect(try Asset(path: report.path).videoTrack?.frameCount == 100)
    #expect(try directory.names().sorted() == ["a.\(suffix)", "clip.mov"].sorted())
  }

  @Test(arguments: ["a.mkv", "a.avi", "a", "mov", ".", "a.mov.txt", ""])
  func `The error for an unknown extension lists the supported ones`(name: String) throws {
    let asset = try asset()
    let error = try refusal(Composition(asset), of: asset, settings(name))
    #expect(error.code == .unsupportedContainer)
    #expect(error.code.rawValue == "unsupported_container")
    #expect(error.recoverySuggestion.contains(".mov, .mp4 or .m4v"))
    #expect(try directory.names() == ["clip.mov"])
  }

  @Test func `An existing file is refused unless overwriting is allowed`() throws {
    let asset = try asset()
    var settings = settings("taken.mov")
    _ = try directory.write([1, 2, 3], as: "taken.mov")
    let error = try refusal(Composition(asset), of: asset, settings)
    #expect(error.code == .outputExists && error.code.rawValue == "output_exists")
    #expect(try bytes(of: settings.path) == [1, 2, 3])
    settings.overwrites = true
    try ExportSession(Composition(asset), of: asset).export(settings)
    #expect(try Asset(path: settings.path).videoTrack?.frameCount == 100)
    #expect(try directory.names() == ["clip.mov", "taken.mov"])
  }

  @Test func `An export can overwrite the movie that it reads`() throws {
    let asset = try asset()
    var settings = settings("clip.mov")
    settings.overwrites = true
    let composition = try asset.retimed([(range(0, 500), speed(1, 2))])
    try ExportSession(composition, of: asset).export(settings)
    #expect(try Asset(path: settings.path).duration == .milliseconds(1_500))
    #expect(try directory.names() == ["clip.mov"])
  }

  @Test func `An unusable output directory or path is refused`() throws {
    let asset = try asset()
    _ = try directory.write([1], as: "file")
    for name in ["missing/a.mov", "file/a.mov"] {
      let error = try refusal(Composition(asset), of: asset, settings(name))
      #expect(error.code == .cannotCreate && error.code.rawValue == "cannot_create")
      #expect(error.message.contains(name))
    }
    try FileManager.default.createDirectory(
      atPath: directory.file("dir.mov"), withIntermediateDirectories: false)
    var settings = settings("dir.mov")
    settings.overwrites = true
    #expect(try refusal(Composition(asset), of: asset, settings).code == .cannotCreate)
  }

  @Test(arguments: [true, false], [0, 1, 40, 49])
  func `A cancelled export leaves no file`(isCopy: Bool, after count: Int) throws {
    let asset = try asset()
    let mode = isCopy ? ExportMode.passthrough() : .constant(FrameRate(50))
    let session = ExportSession(try Composition(asset), of: asset)
    var done: Int64 = 0
    do throws(MediaError) {
      try session.export(settings("a.mov", mode), isCancelled: { done >= count }) { now, _ in
        done = max(done, now)
      }
      Issue.record("the export went on")
    } catch {
      #expect(error.code == .cancelled && error.code.rawValue == "cancelled")
    }
    #expect(try directory.names() == ["clip.mov"])
  }

  /// The export is cancelled at several points, since audio and video are written in turn.
  @Test(arguments: [true, false], [1, 2, 5, 20, 60])
  func `A cancelled export with audio leaves no file`(
    isCopy: Bool, question: Int
  ) throws {
    let asset = try asset {
      $0.audio = MovieRecipe.Audio()
      $0.audio?.sampleCount = 48_000
    }
    let composition = try asset.retimed([(range(0, 500), speed(1, 8))])
    let settings = settings(
      "a.mp4", isCopy ? .passthrough() : .constant(50, RenderSettings(encoding: .mjpeg)))
    var questions = 0
    let error = #expect(throws: MediaError.self) {
      try ExportSession(composition, of: asset).export(
        settings,
        isCancelled: {
          questions += 1
          return questions >= question
        })
    }
    #expect(error?.code == .cancelled)
    #expect(try directory.names() == ["clip.mov"])
  }

  @Test(arguments: [true, false])
  func `Export progress never falls and ends at the frame count`(isCopy: Bool) throws {
    let asset = try asset()
    let mode = isCopy ? ExportMode.passthrough() : .constant(FrameRate(50))
    var reported: [Int64] = []
    var totals: Set<Int64> = []
    let report = try ExportSession(Composition(asset), of: asset).export(
      settings("a.mov", mode), isCancelled: { false }
    ) {
      reported.append($0)
      totals.insert($1)
    }
    #expect(reported == reported.sorted())
    #expect(totals == [report.framesCopied + report.framesEncoded])
    #expect(reported.last == totals.first)
  }

  @Test func `A truncated or missing source fails and leaves no file`() throws {
    let asset = try asset { $0.hasIndexInFront = true }
    let session = ExportSession(try Composition(asset), of: asset)
    let content = try bytes(of: asset.path)
    for mode in [ExportMode.passthrough(), .constant(FrameRate(100))] {
      _ = try directory.write(Array(content.dropLast(2_000)), as: "clip.mov")
      #expect(throws: MediaError.self) { try session.export(settings("a.mov", mode)) }
      try FileManager.default.removeItem(atPath: asset.path)
      #expect(throws: MediaError.self) { try session.export(settings("a.mov", mode)) }
      #expect(try directory.names() == [])
    }
  }

  @Test(
    .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"),
    arguments: ["mov", "mp4"])
  func `Each export mode keeps tags and rotation and language`(container: String) async throws {
    let asset = try asset {
      $0.metadata = [
        "com.overcrank.capture_frame_rate": "240/1", "com.android.capture.fps": "240.000000",
        "creation_time": "2024-05-06T07:08:09.000000Z", "title": "A drop of milk",
        "com.overcrank.recording": "{\"device\":\"d\"}",
      ]
      $0.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
      $0.language = "deu"
    }
    let composition = try asset.retimed([(range(0, 500), speed(1, 2))])
    for mode in [ExportMode.passthrough(), .constant(FrameRate(50))] {
      var settings = settings("a.\(container)", mode)
      settings.overwrites = true
      let report = try await ExportSession(composition, of: asset).export(settings)
      #expect(report.lostMetadata == ["com.overcrank.recording"])
      let result = try Asset(path: report.path)
      #expect(result.captureFrameRate?.rate == FrameRate(240))
      #expect(result.metadata["com.android.capture.fps"] == "240.000000")
      #expect(result.metadata["title"] == "A drop of milk")
      #expect(result.metadata["com.overcrank.recording"] == nil)
      #expect(result.metadata["creation_time"] == "2024-05-06T07:08:09.000000Z")
      #expect(result.videoTrack?.rotation == 90)
      // ffprobe prints a comma for the display matrix.
      let language = try await FFmpeg.probe(report.path, "stream_tags=language", stream: "v")
      #expect(language == ["ger,"])
    }
    // The recording tag stays valid if every frame keeps its time.
    let whole = try await ExportSession(Composition(asset), of: asset)
      .export(settings("whole.\(container)"))
    #expect(whole.lostMetadata == [])
    #expect(
      try Asset(path: whole.path).metadata["com.overcrank.recording"] == "{\"device\":\"d\"}")
  }

  @Test func `Refuses to export an empty or audio-only composition`() throws {
    let asset = try asset()
    let empty = try refusal(Composition(), of: asset, settings("a.mov"))
    #expect(empty.code == .unsupportedSource)
    let other = try MediaSource(path: "/other.mov", duration: MediaTime(seconds: 1))
    let foreign = try refusal(Composition(other), of: asset, settings("a.mov"))
    #expect(foreign.code == .unsupportedSource && foreign.message.contains("/other.mov"))
    var recipe = MovieRecipe()
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 4_800
    let audio = try Asset.made(recipe, in: directory, "audio")
    let silent = try refusal(Composition(audio), of: audio, settings("a.mov"))
    #expect(silent.code == .unsupportedSource)
  }
}
