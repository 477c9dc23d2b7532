// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import TestSupport
import Testing

/// The tracks that are read from files with several video or audio tracks.
struct PreferredTrackTests {
  @Test(arguments: [
    ("mov", [0, 0]), ("mov", [0, 1]), ("mov", [1, 1]), ("mkv", [0, 1]), ("mkv", [1, 0]),
    ("ts", [0, 0]),
  ])
  func `The first track marked as default or enabled is read`(
    container: String, marks: [Int]
  ) async throws {
    let directory = try Scratch()
    let path = directory.file("tracks.\(container)")
    let codec = container == "ts" ? ["mpeg2video", "mp2"] : ["mjpeg", "pcm_s16le"]
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "color=red:s=64x48:r=25:d=0.2", "-f", "lavfi"]
        + ["-i", "color=blue:s=48x64:r=25:d=0.2", "-f", "lavfi", "-i", "sine=440:r=48000:d=0.2"]
        + ["-f", "lavfi", "-i", "sine=880:r=32000:d=0.2", "-map", "0", "-map", "1", "-map", "2"]
        + ["-map", "3", "-c:v", codec[0], "-c:a", codec[1]]
        + marks.enumerated().flatMap { number, mark in
          ["v", "a"].flatMap { ["-disposition:\($0):\(number)", mark == 1 ? "default" : "0"] }
        })
    let asset = try Asset(path: path)
    let isSecond = marks == [0, 1]
    #expect(asset.videoTrack?.width == (isSecond ? 48 : 64))
    #expect(asset.audioTrack?.sampleRate == (isSecond ? 32_000 : 48_000))
  }
}
