// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// Streams and image sequences without a container, whose frames have no times.
struct UntimedStreamTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  @Test(arguments: [
    ("mjpeg", "mjpeg"), ("h263", "h263"), ("h261", "h261"), ("png", "png"), ("vc2", "drc"),
  ])
  func `A stream with no frame times and no frame rate is refused`(
    codec: String, suffix: String
  ) async throws {
    let path = directory.file("raw.\(suffix)")
    let format = ["png": ["-f", "image2pipe"], "vc2": ["-f", "dirac"]][codec] ?? []
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=176x144:r=30:d=0.2", "-c:v", codec] + format)
    let error = #expect(throws: MediaError.self) { try Asset(path: path) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains("does not say when its") == true)
  }

  @Test(arguments: ["m2v", "m4v"])
  func `A stream without frame times is read at a stated frame rate`(suffix: String) async throws {
    let path = directory.file("raw.\(suffix)")
    try await FFmpeg.make(path, ["-f", "lavfi", "-i", "testsrc2=s=176x144:r=30:d=0.2"])
    let frames = try #require(try Asset(path: path).videoTrack).frames
    #expect(frames.entries.count == 6 && frames.averageFrameRate == 30)
  }

  @Test func `A single image file is read without a frame time`() async throws {
    let path = directory.file("one.png")
    try await FFmpeg.make(path, ["-f", "lavfi", "-i", "testsrc2=s=64x48", "-frames:v", "1"])
    #expect(try Asset(path: path).videoTrack?.frameCount == 1)
  }
}
