// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// Rotation, mirroring and zoom in movies.
struct MovieGeometryTests {
  /// The nine numbers of each display matrix for frames of 128x96, written by hand.
  ///
  /// They are the directions of the columns and rows of the image, and the translation back into
  /// view.
  private static let matrices: [(angle: Int, isMirrored: Bool, numbers: [Int32])] = [
    (0, false, []),
    (90, false, [0, 1, 0, -1, 0, 0, 96, 0, 1]),
    (180, false, [-1, 0, 0, 0, -1, 0, 128, 96, 1]),
    (270, false, [0, -1, 0, 1, 0, 0, 0, 128, 1]),
    (0, true, [-1, 0, 0, 0, 1, 0, 128, 0, 1]),
    (90, true, [0, 1, 0, 1, 0, 0, 0, 0, 1]),
    (180, true, [1, 0, 0, 0, -1, 0, 0, 96, 1]),
    (270, true, [0, -1, 0, -1, 0, 0, 96, 128, 1]),
  ]

  /// A gray camera.
  ///
  /// Each of its frames shows four different quarters.
  private func corners(_ count: Int) throws -> (ScriptedCamera, [ScriptedDriver.Step]) {
    var camera = try ScriptedCamera(240)
    camera.layout = .gray
    let image = CornerImage.gray(width: 128, height: 96)
    return (
      camera, try (0..<count).map { .frameWithBytes(try camera.observation(Int64($0)), image) }
    )
  }

  /// Records the frames of a script, with a connection that the closure configures.
  private func record(
    _ camera: ScriptedCamera, _ steps: [ScriptedDriver.Step], _ codec: VideoOutputSettings,
    to path: String, _ prepare: (CaptureConnection, DeviceInput) throws -> Void
  ) throws -> RecordingReport {
    var settings = RecordingSettings(path: path)
    settings.video = codec
    let session = try camera.session(ScriptedDriver(steps))
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    let connection = try #require(session.connections.first)
    try prepare(connection, try #require(session.inputs.first as? DeviceInput))
    return try output.record()
  }

  @Test(arguments: [VideoOutputSettings.raw, .ffv1, .mjpeg, .h264])
  func `Rotation and mirroring are recorded as the display matrix`(
    codec: VideoOutputSettings
  ) async throws {
    let scratch = try Scratch()
    for (row, matrix) in zip(CornerImage.table, Self.matrices) {
      let path = scratch.file("\(row.angle)-\(row.isMirrored).mov")
      let (camera, steps) = try corners(12)
      let report = try record(camera, steps, codec, to: path) { connection, _ in
        connection.automaticallyAdjustsVideoMirroring = false
        try connection.setVideoRotationAngle(row.angle)
        try connection.setVideoMirrored(row.isMirrored)
      }
      #expect(report.isPlayable && report.problem == nil && report.warnings.isEmpty)
      let demuxer = try Demuxer(opening: path)
      let track = try #require(demuxer.tracks.first { $0.kind == .video })
      let numbers = track.displayMatrix.enumerated().map { $0 == 8 ? $1 >> 30 : $1 >> 16 }
      #expect(numbers == matrix.numbers, "\(row)")
      #expect(track.parameters.width == 128 && track.parameters.height == 96)
      let asset = try Asset(path: path)
      var reader = try FrameReader(asset)
      #expect(
        CornerImage.corners(
          try reader.pixelBuffer(ofFrame: 3, as: .gray).bytes, width: 128, height: 96) == "ABCD")
      // FFmpeg applies the display matrix as players do.
      let isUpright = row.angle % 180 == 0
      let shown = try await FFmpeg.converted(
        path, ["-frames:v", "1", "-pix_fmt", "gray", "-f", "rawvideo"])
      #expect(shown.count == 128 * 96)
      #expect(
        CornerImage.corners(shown, width: isUpright ? 128 : 96, height: isUpright ? 96 : 128)
          == row.corners, "\(row)")
    }
  }

  @Test func `A recovered take keeps the display matrix and clean aperture`() throws {
    let scratch = try Scratch()
    let path = scratch.file("killed.mov")
    let camera = try ScriptedCamera(240)
    var configuration = try camera.configuration(to: path)
    let input = configuration.input
    let output = MovieFileOutput(settings: RecordingSettings(path: path))
    defer { withExtendedLifetime(output) {} }
    let connection = CaptureConnection(input, output, .video)
    try connection.setVideoRotationAngle(90)
    try input.setVideoZoomFactor(1)
    try connection.setVideoScaleAndCropFactor(2)
    configuration.geometry = connection.geometry
    do {
      var writer = TakeFileWriter(configuration, into: try configuration.settings.makeFile())
      for (number, image) in try camera.images(0..<60).enumerated() {
        var observation = try camera.observation(Int64(number))
        observation.outcome = .taken
        image.withUnsafeBytes {
          _ = writer.store(QueuedFrame(observation: observation, bytes: $0))
        }
      }
      let isOver = writer.isOver
      #expect(!isOver)
      #expect(try aperture(of: path) == .init(width: Rational(64), height: Rational(48)))
      // The file is left unfinished, as if the process were killed.
    }
    let report = try MovieRecovery.recover(path)
    #expect(report.frameCount > 30 && !report.wasIntact)
    #expect(try Asset(path: path).videoTrack?.rotation == 90)
    #expect(try aperture(of: path) == .init(width: Rational(64), height: Rational(48)))
  }

  /// The clean aperture of a file's video track.
  private func aperture(of path: String) throws -> CleanApertureBox.Size? {
    let file = try MovieBoxes(opening: path, forWriting: false)
    let boxes = file.boxes()
    let movie = try #require(boxes.first { $0.type == BoxType.movie })
    let bytes = file.bytes(of: movie) ?? []
    let track = try #require(MovieTrack.list(in: bytes).first)
    return CleanApertureBox.read(from: try #require(track.descriptions.first))
  }

  @Test func `Zoom without encoding is stored as the clean aperture`()
    async throws
  {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(240)
    for (factor, width, height) in [
      (2.0, Rational(64), Rational(48)), (3, Rational(42_667, over: 1_000), Rational(32)),
    ] {
      let path = scratch.file("\(factor).mov")
      let report = try record(camera, camera.frames(0..<40), .passthrough, to: path) { _, input in
        try input.setVideoZoomFactor(factor)
      }
      #expect(report.isPlayable)
      #expect(report.cleanAperture?.width == width && report.cleanAperture?.height == height)
      #expect(report.warnings.count == 1 && report.warnings[0].contains("clap"))
      #expect(try aperture(of: path) == .init(width: width, height: height))
      #expect(try frameBytes(path) == camera.images(0..<40))
      #expect(try paintedNumbers(Asset(path: path)) == (0..<40).map { $0 })
      #expect(try await FFmpeg.probe(path, "stream=width,height", stream: "v:0") == ["128,96"])
    }
    let path = scratch.file("changed.mov")
    var zoomed: DeviceInput?
    let changed = try record(
      camera, camera.frames(0..<40), .passthrough, to: path
    ) { _, input in
      try input.ramp(toVideoZoomFactor: 4, withRate: 0.02)
      zoomed = input
    }
    #expect(changed.warnings.contains { $0.contains("changed during the take") })
    // Each frame after the first one has its own factor.
    let items = try Asset(path: path).timedMetadata()
    #expect(items.map(\.frameIndex) == (1..<40).map { $0 })
    for item in items {
      let time = try camera.observation(item.frameIndex).microseconds
      let factor = try #require(zoomed).geometry.zoom.factor(at: time)
      #expect(item.key == "com.overcrank.zoom_factor" && item.value == .number(factor))
    }
    let plain = scratch.file("plain.mov")
    let report = try record(camera, camera.frames(0..<40), .passthrough, to: plain) { _, _ in }
    #expect(try aperture(of: plain) == nil)
    #expect(report.cleanAperture == nil && report.warnings.isEmpty)
    #expect(try !holdsBox("clap", plain))
  }

  @Test(arguments: [VideoOutputSettings.raw, .ffv1, .h264], [false, true])
  func `Each encoded frame has the zoom factor of its capture time`(
    codec: VideoOutputSettings, decodes: Bool
  ) throws {
    if codec == .raw, decodes { return }  // MJPEG cannot be stored uncompressed.
    let scratch = try Scratch()
    var camera = try ScriptedCamera(30)
    (camera.width, camera.height) = (640, 480)
    camera.layout = decodes ? .mjpeg : .gray
    let path = scratch.file("zoomed.mov")
    var begin: Int64 = 0
    // The script's clock is 60 s before its first frame. So the ramp starts there, and has doubled
    // the zoom at frame 0.
    let report = try record(camera, camera.frames(0..<30), codec, to: path) { _, input in
      try input.ramp(toVideoZoomFactor: 6, withRate: 1.0 / 60)
      begin = try #require(input.geometry.zoom.last?.begin)
      #expect(input.videoZoomFactor == 1)
    }
    #expect(report.isPlayable && report.cleanAperture == nil && report.warnings.isEmpty)
    let pattern = TestPattern(width: 640, height: 480)
    var reader = try FrameReader(try Asset(path: path))
    camera.layout = .gray
    let originals = try camera.images(0..<30)
    for number in [0, 7, 15, 29] {
      let time = try camera.observation(Int64(number)).microseconds
      let expected = exp2(Double(time - begin) / 60_000_000)
      #expect(expected > 1.99)
      let image = try reader.pixelBuffer(ofFrame: number, as: .gray)
      #expect(image.width == 640 && image.height == 480)
      let found = ImageFactor(
        originals[number], width: 640, height: 480, rows: pattern.numberHeight..<480
      ).read(image.bytes, upTo: 4)
      #expect(abs(found / expected - 1) < 0.005, "\(found) of \(expected)")
    }
  }

  @Test func `A triggered clip has the display matrix of the connection`() throws {
    let scratch = try Scratch()
    let path = scratch.file("clip.mov")
    let (camera, steps) = try corners(60)
    let session = try camera.session(ScriptedDriver(steps))
    var settings = RecordingSettings(path: path)
    settings.video = .raw
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    try #require(session.connections.first).setVideoRotationAngle(270)
    let triggers = TriggerSettings(preDuration: .zero, postDuration: MediaTime(1, over: 10))
    output.trigger(CaptureTrigger(source: .call, microseconds: camera.base + 20_000))
    let report = try output.record(on: triggers)
    #expect(report.clips.count == 1)
    #expect(try Asset(path: path).videoTrack?.rotation == 270)
  }
}
