// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

/// Movies whose boxes and samples disagree about the duration of the movie.
struct FragmentLengthTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// Three seconds of 30 fps with audio, in fragments of a second, optionally with B-frames.
  private func fragmented(reordered: Bool) async throws -> String {
    let path = directory.file("fragments.mov")
    try await FFmpeg.make(
      path,
      [
        "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=30", "-f", "lavfi", "-i",
        "sine=sample_rate=48000", "-t", "3", "-c:v", "libx264", "-g", "30", "-bf",
        reordered ? "3" : "0", "-c:a", "pcm_s16le", "-movflags", "frag_keyframe+empty_moov",
      ])
    return path
  }

  /// Adds seconds to the first decoding time of each fragment.
  private func delayed(_ path: String, by seconds: UInt64) throws -> String {
    var movie = try PatchedMovie(path)
    try movie.forEachTrackFragment { track, time in
      time + seconds * (track == 1 ? 15_360 : 48_000)
    }
    return try directory.write(movie.bytes, as: "delayed.mov")
  }

  private func expectThreeSeconds(_ path: String, _ reordered: Bool) throws {
    let asset = try Asset(path: path)
    let video = try #require(asset.videoTrack)
    #expect(video.frameCount == 90)
    #expect(asset.duration.seconds == Rational(3))
    #expect(video.frames.entries.allSatisfy { $0.duration == 512 })
    let audio = try #require(asset.audioTrack)
    // Without an edit list, the first frame starts two frames late, because two frames are decoded
    // before it. The audio starts at zero and ends with the video.
    #expect(audio.startSample == (reordered ? -3_200 : 0))
    #expect(audio.startSample + audio.sampleCount == 144_000)
  }

  @Test(arguments: [false, true])
  func `A late fragment start does not extend the movie duration`(reordered: Bool) async throws {
    let path = try await fragmented(reordered: reordered)
    try expectThreeSeconds(path, reordered)
    for seconds in [10, 100_000] as [UInt64] {
      try expectThreeSeconds(delayed(path, by: seconds), reordered)
    }
  }

  @Test(arguments: [false, true])
  func `A wrong stated duration is ignored in fragmented movies`(
    reordered: Bool
  ) async throws {
    let path = try await fragmented(reordered: reordered)
    for stated in [UInt32.max, UInt32.max - 1, 15_360 * 3_600, 1] as [UInt32] {
      var movie = try PatchedMovie(path)
      try movie.set(stated, at: 16, of: "moov/trak/mdia/mdhd")
      try movie.set(stated, at: 20, of: "moov/trak/tkhd")
      try movie.set(stated, at: 16, of: "moov/mvhd")
      let patched = try directory.write(movie.bytes, as: "stated.mov")
      try expectThreeSeconds(patched, reordered)
      try expectThreeSeconds(delayed(patched, by: 10), reordered)
    }
  }

  @Test(arguments: [false, true])
  func `Overstated sample counts do not extend the movie duration`(
    reordered: Bool
  ) async throws {
    let path = directory.file("plain.mp4")
    try await FFmpeg.makeClip(
      path, ["-c:v", "libx264", "-g", "30", "-bf", reordered ? "3" : "0"])
    var movie = try PatchedMovie(path)
    #expect(try movie.number(4, at: 8, of: "moov/trak/mdia/minf/stbl/stts") == 90)
    try movie.set(UInt32(1_000_000), at: 8, of: "moov/trak/mdia/minf/stbl/stts")
    try movie.set(UInt32.max, at: 16, of: "moov/trak/mdia/mdhd")
    let long = PatchedMovie.editList([(3_600_000, reordered ? 1_024 : 0)])
    try movie.replace("moov/trak/edts/elst", with: long)
    let asset = try Asset(path: directory.write(movie.bytes, as: "long.mp4"))
    #expect(asset.duration.seconds == Rational(3))
  }
}
