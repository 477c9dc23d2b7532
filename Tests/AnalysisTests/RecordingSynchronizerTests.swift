// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Measures the time offset between movie files.
struct RecordingSynchronizerTests {
  /// Random audio as a function of the sample number, so that two movies can contain the same
  /// audio.
  private static func noise(_ sample: Int) -> Float {
    var random = SeededGenerator(seed: UInt64(bitPattern: Int64(sample)))
    return Float(random.normal() * 0.1)
  }

  private static func movie(
    _ name: String, in scratch: Scratch, from first: Int, rate: Int = 48_000
  ) throws -> Asset {
    var recipe = MovieRecipe.constant(60, count: 60)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = "pcm_s16le"
    recipe.audio?.sampleRate = rate
    recipe.audio?.sampleCount = rate
    recipe.audio?.wave = { _, sample in noise(first + sample) }
    return try recipe.asset(at: scratch.file(name))
  }

  @Test func `Aligns movies by audio and keeps only their overlap in time`() throws {
    let scratch = try Scratch()
    let first = try Self.movie("a.mov", in: scratch, from: 0)
    let second = try Self.movie("b.mov", in: scratch, from: 12_000)
    let offset = try RecordingSynchronizer().offset(of: second, to: first)
    #expect(abs(offset.offset.doubleValue - 0.25) < 1e-6, "\(offset)")
    let composition = try Composition(synchronizing: [
      SynchronizedRecording(first), SynchronizedRecording(second, offset: offset.offset),
    ])
    #expect(composition.tracks.map(\.mediaType) == [.video, .video, .audio, .audio])
    #expect(abs(composition.duration.doubleValue - 0.75) < 1e-5)
    #expect(
      composition.tracks.map { $0.segments[0].source?.path } == [
        second.path, first.path, first.path, second.path,
      ])
    #expect(composition.tracks[1].segments[0].mapping?.whole.start == offset.offset)
    #expect(composition.tracks[0].segments[0].mapping?.whole.start == .zero)
    let project = try OpenTimelineDocument(composition, name: "both").text()
    let read = try OpenTimelineDocument(parsing: project) { path throws(MediaError) in
      try Asset(path: path).mediaSource()
    }
    // The track on top is the visible one.
    #expect(read.composition.track(.video) == composition.tracks[1])
    #expect(read.composition.track(.audio) == composition.tracks[2])
  }

  @Test func `Aligns movies without audio by a flash`()
    throws
  {
    let scratch = try Scratch()
    func movie(_ name: String, flashAt frame: Int) throws -> Asset {
      try PaintedMovie(rate: 120, count: 120).write(to: scratch.file(name)) { index, x, _ in
        (frame..<frame + 12).contains(index) ? 200 : x == index % 64 ? 90 : 40
      }
    }
    let (first, second) = (try movie("a.mov", flashAt: 60), try movie("b.mov", flashAt: 36))
    let offset = try RecordingSynchronizer().offset(of: second, to: first)
    #expect(offset.method == .flash)
    #expect(abs(offset.offset.doubleValue - 0.2) < 0.5 / 120)
    #expect {
      try RecordingSynchronizer(method: .audio).offset(of: second, to: first)
    } throws: {
      ($0 as? MediaError)?.code == .invalidData
    }
    #expect {
      try RecordingSynchronizer().offset(of: second, to: first, isCancelled: { true })
    } throws: {
      ($0 as? MediaError)?.code == .cancelled
    }
    let apart = [SynchronizedRecording(first), .init(second, offset: MediaTime(seconds: 3))]
    #expect {
      try Composition(synchronizing: apart)
    } throws: {
      ($0 as? MediaError)?.code == .nothingInCommon
    }
  }

  @Test func `A slowed movie cannot be aligned with others`() throws {
    let scratch = try Scratch()
    func movie(_ name: String, capturedAt rate: Int) throws -> Asset {
      var recipe = MovieRecipe.constant(30, count: 30)
      recipe.metadata = ["com.overcrank.capture_frame_rate": "\(rate)/1"]
      try recipe.write(to: scratch.file(name))
      return try Asset(path: scratch.file(name))
    }
    let recordings = [
      SynchronizedRecording(try movie("real.mov", capturedAt: 30)),
      SynchronizedRecording(try movie("slow.mov", capturedAt: 240)),
    ]
    #expect {
      try Composition(synchronizing: recordings)
    } throws: {
      ($0 as? MediaError)?.code == .unknownCaptureTime
    }
    // The times of the file are a choice.
    let chosen = try recordings.map {
      SynchronizedRecording($0.asset, clock: try $0.asset.captureClock(.file))
    }
    #expect(try Composition(synchronizing: chosen).duration == MediaTime(seconds: 1))
  }

  @Test func `Aligns recordings of different audio sampling rates`() throws {
    let scratch = try Scratch()
    // A rising tone is the same audio at any sample rate.
    func movie(_ name: String, rate: Int, start: Double) throws -> Asset {
      var recipe = MovieRecipe.constant(60, count: 60)
      recipe.audio = MovieRecipe.Audio()
      recipe.audio?.codec = "pcm_s16le"
      recipe.audio?.sampleRate = rate
      recipe.audio?.sampleCount = rate
      recipe.audio?.wave = { _, sample in
        let time = start + Double(sample) / Double(rate)
        return Float(0.3 * sin(2 * .pi * (400 * time + 900 * time * time)))
      }
      return try recipe.asset(at: scratch.file(name))
    }
    let first = try movie("a.mov", rate: 48_000, start: 0)
    let second = try movie("b.mov", rate: 44_100, start: 0.2)
    let offset = try RecordingSynchronizer(method: .audio).offset(of: second, to: first)
    #expect(abs(offset.offset.doubleValue - 0.2) < 1e-5, "\(offset)")
  }
}
