// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Movies whose frames are in other files.
struct DataReferenceTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// An entry of a data reference box: its name, flags and contents.
  private func entry(_ name: String, flags: UInt8, _ contents: [UInt8]) -> [UInt8] {
    [0, 0, 0, UInt8(12 + contents.count)] + name.utf8 + [0, 0, 0, flags] + contents
  }

  /// A movie of 30 frames, whose data reference has one entry.
  private func movie(_ entry: [UInt8]) async throws -> String {
    let path = directory.file("plain.mov")
    try await FFmpeg.make(
      path, ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=30", "-t", "1", "-c:v", "mjpeg"])
    var movie = try PatchedMovie(path)
    try movie.replace("moov/trak/mdia/minf/dinf/dref", with: [0, 0, 0, 0, 0, 0, 0, 1] + entry)
    return try directory.write(movie.bytes, as: "reference.mov")
  }

  @Test func `A movie whose frames are in another file is refused`() async throws {
    let location = Array("file:///tmp/other.mov".utf8) + [0]
    for entry in [
      entry("url ", flags: 0, location), entry("alis", flags: 0, Array(repeating: 1, count: 150)),
    ] {
      let path = try await movie(entry)
      let error = #expect(throws: MediaError.self) { try Asset(path: path) }
      #expect(error?.code == .invalidData)
      #expect(error?.message.contains("reference movie") == true, "\(error?.message ?? "")")
      let camera = try CaptureDevice.named("file:\(path)")
      let refusal = #expect(throws: MediaError.self) { try camera.formats() }
      #expect(refusal?.message.contains("reference movie") == true)
    }
  }

  @Test func `A data reference to the movie itself is accepted`() async throws {
    let location = Array("file:///tmp/other.mov".utf8) + [0]
    for entry in [
      entry("url ", flags: 1, []), entry("url ", flags: 1, location), entry("alis", flags: 1, []),
    ] {
      let asset = try Asset(path: try await movie(entry))
      #expect(asset.videoTrack?.frameCount == 30)
    }
  }
}
