// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// A composition of clips with different rotations or shapes.
struct RotatedClipTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// Makes a clip of five frames, each with four different quarters.
  ///
  /// Players rotate the clip clockwise.
  private func clip(_ degrees: Int, width: Int = 64, height: Int = 48) async throws -> Asset {
    let image = try directory.write(
      CornerImage.gray(width: width, height: height), as: "\(degrees).gray")
    let plain = directory.file("\(degrees)-plain.mov")
    try await FFmpeg.make(
      plain,
      ["-f", "rawvideo", "-pixel_format", "gray", "-video_size", "\(width)x\(height)"]
        + ["-framerate", "30", "-i", image, "-vf", "loop=4:1", "-c:v", "mjpeg", "-q:v", "2"])
    let path = directory.file("\(degrees).mov")
    try await FFmpeg.make(
      path, ["-i", plain, "-c", "copy", "-metadata:s:v", "rotate=\((360 - degrees) % 360)"])
    return try Asset(path: path)
  }

  private func session(_ assets: [Asset]) throws -> ExportSession {
    var composition = Composition()
    for asset in assets { try composition.append(asset) }
    return try ExportSession(composition, of: assets)
  }

  /// The images of a movie after FFmpeg has rotated them, as players do.
  private func images(_ path: String, _ count: Int) async throws -> [[UInt8]] {
    let bytes = try await FFmpeg.converted(path, ["-pix_fmt", "gray", "-f", "rawvideo"])
    #expect(bytes.count % count == 0)
    return (0..<count).map {
      Array(bytes[$0 * bytes.count / count..<($0 + 1) * bytes.count / count])
    }
  }

  @Test func `Clips of different rotations are each encoded upright`() async throws {
    let assets = try await [clip(0), clip(180), clip(90), clip(270)]
    #expect(assets.map { $0.videoTrack?.rotation } == [0, 180, 90, 270])
    var order: [String] = []
    for asset in assets {
      let isTall = asset.videoTrack.map { $0.rotation % 180 != 0 } == true
      let image = try await images(asset.path, 5)[0]
      order.append(
        CornerImage.corners(image, width: isTall ? 48 : 64, height: isTall ? 64 : 48))
    }
    #expect(order == ["ABCD", "DCBA", "CADB", "BDAC"])
    for applies in [false, true] {
      for encoding in [VideoEncoding.ffv1, .h264()] {
        var settings = ExportSettings(
          path: directory.file("made.mov"), mode: .constant(FrameRate(30)))
        settings.render { ($0.encoding, $0.appliesRotation) = (encoding, applies) }
        settings.overwrites = true
        try await session(assets).export(settings)
        let made = try await images(settings.path, 20)
        for (number, image) in made.enumerated() {
          #expect(image.count == 64 * 48)
          guard number >= 10 else {
            #expect(CornerImage.corners(image, width: 64, height: 48) == order[number / 5])
            continue
          }
          // A portrait image of 36x48 is centered between black bars.
          let inner = (0..<48).flatMap { y in image[y * 64 + 14..<y * 64 + 50] }
          #expect(CornerImage.corners(inner, width: 36, height: 48) == order[number / 5])
          #expect(image[0] < 24 && image[63] < 24 && image[12] < 24 && image[51] < 24)
        }
      }
    }
  }

  @Test func `Clips of equal rotation keep the rotation as metadata`() async throws {
    let assets = try await [clip(90), clip(90, width: 48, height: 36)]
    var settings = ExportSettings(
      path: directory.file("made.mov"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .ffv1 }
    try await session(assets).export(settings)
    let track = try #require(try Asset(path: settings.path).videoTrack)
    #expect(track.rotation == 90 && track.width == 64 && track.height == 48)
    for image in try await images(settings.path, 10) {
      #expect(CornerImage.corners(image, width: 48, height: 64) == "CADB")
    }
  }

  @Test func `A rotation of the composition applies to all of its clips`() async throws {
    let assets = try await [clip(0), clip(180)]
    var composition = Composition()
    for asset in assets { try composition.append(asset) }
    composition.tracks[0].rotation = 90
    var settings = ExportSettings(
      path: directory.file("made.mov"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .ffv1 }
    try await ExportSession(composition, of: assets).export(settings)
    #expect(try Asset(path: settings.path).videoTrack?.rotation == 90)
    for image in try await images(settings.path, 10) {
      #expect(CornerImage.corners(image, width: 48, height: 64) == "CADB")
    }
  }

  @Test func `Passthrough export refuses clips of different rotations`() async throws {
    let assets = try await [clip(0), clip(180)]
    let error = #expect(throws: MediaError.self) {
      try session(assets).plan(
        ExportSettings(path: directory.file("copy.mov"), mode: .passthrough()))
    }
    #expect(error?.code == .unsupportedSource)
    #expect(error?.message.contains("another rotation") == true)
  }
}
