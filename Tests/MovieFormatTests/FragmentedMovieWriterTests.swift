// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankMovieFormat
@testable import OvercrankRecording

/// The file while it is written, compared with a list of the samples that were appended.
@Suite struct FragmentedMovieWriterTests {
  /// A sample that was appended.
  private struct Sample: Equatable {
    let track: Int
    let ticks: Int64
    let bytes: [UInt8]
  }

  private static func track(
    _ parameters: CodecParameters, timescale: Int32, _ path: String,
    first: [UInt8] = [UInt8](repeating: 7, count: 16)
  ) throws -> FragmentedMovieWriter.Track {
    try FragmentedMovieWriter.Track(
      TrackMuxer.Format(parameters, in: .mov, timescale: timescale), first: FirstSample(ticks: 0),
      packet: Packet(copying: first), path: path)
  }

  private static func writer(
    _ path: String, samplesPerFragment: Int = 80, unflushedFrames: Int = 0
  ) throws -> FragmentedMovieWriter {
    try Data().write(to: URL(fileURLWithPath: path))
    let audio = try Encoder(audioCodec: "pcm_s16le", sampleRate: 48_000, channelCount: 2)
    let video = try CodecParameters(videoCodec: "mjpeg", width: 64, height: 48)
    return try FragmentedMovieWriter(
      RandomAccessFile(opening: path).file, index: MovieIndex(.mov, timescale: 1_000_000),
      tracks: [
        track(video, timescale: 1_000_000, path), track(audio.parameters, timescale: 48_000, path),
      ],
      layout: .init(
        fragmentTicks: 200_000, samplesPerFragment: samplesPerFragment,
        unflushedFrames: unflushedFrames))
  }

  /// Frames of a camera with jitter, interleaved with audio blocks.
  private static func samples(seed: UInt64, count: Int) -> [Sample] {
    var random = SeededGenerator(seed: seed)
    func bytes(_ range: ClosedRange<Int>, _ random: inout SeededGenerator) -> [UInt8] {
      let size = Int.random(in: range, using: &random)
      return (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    var (frames, audios) = (Int64(0), Int64(0))
    var samples: [Sample] = []
    while samples.count < count {
      samples.append(Sample(track: 0, ticks: frames, bytes: bytes(1...3_000, &random)))
      frames += Int64.random(in: 0..<10, using: &random) == 0 ? 300_000 : 4_166
      frames += Int64.random(in: 0..<900, using: &random)
      while audios * 125 <= frames * 6 {  // 48 000 samples last 1 000 000 ticks.
        samples.append(Sample(track: 1, ticks: audios, bytes: bytes(1_024...1_024, &random)))
        audios += 256
      }
    }
    return samples
  }

  private static func append(_ sample: Sample, to movie: inout FragmentedMovieWriter) throws {
    let (track, ticks, bytes) = (sample.track, sample.ticks, sample.bytes)
    let result = bytes.withUnsafeBytes { buffer in
      Result {
        try movie.append(
          buffer, track: track, ticks: ticks, duration: track == 0 ? 4_166 : 256, isKeyFrame: true)
      }
    }
    try result.get()
  }

  /// The samples that a demuxer reads from the file, listed by track.
  private static func read(_ path: String) throws -> [[Sample]] {
    var demuxer = try Demuxer(opening: path)
    var found: [[Sample]] = [[], []]
    while let packet = try demuxer.nextPacket() {
      found[packet.trackIndex].append(
        Sample(
          track: packet.trackIndex, ticks: packet.pts ?? -1,
          bytes: packet.withBytes { [UInt8]($0) }))
    }
    return found
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `An unfinished movie lacks at most its last 200 ms`(seed: UInt64) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var random = SeededGenerator(seed: seed &* 77)
    let samples = Self.samples(seed: seed, count: Int.random(in: 2...600, using: &random))
    // A third of the movies have space for only two samples per fragment, so that fragments end
    // before the fragment duration.
    let space = seed.isMultiple(of: 3) ? 2 : 80
    do {
      var movie = try Self.writer(path, samplesPerFragment: space)
      for sample in samples { try Self.append(sample, to: &movie) }
    }
    let last = samples.last { $0.track == 0 }?.ticks ?? 0
    for (track, found) in try Self.read(path).enumerated() {
      let appended = samples.filter { $0.track == track }
      #expect(found == Array(appended.prefix(found.count)))
      let missing = appended.dropFirst(found.count).first.map {
        track == 0 ? $0.ticks : $0.ticks * 125 / 6
      }
      #expect(last - (missing ?? last) <= 200_000)
    }
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>, [0, 8])
  func `An unfinished movie lacks only frames that were not flushed`(
    seed: UInt64, unflushedFrames: Int
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var random = SeededGenerator(seed: seed &* 99)
    let count = Int.random(in: 2...200, using: &random)
    let frames = Self.samples(seed: seed, count: count).filter { $0.track == 0 }
    var firstFragment: Int64 = 0
    var flushedCount = 0
    do {
      var movie = try Self.writer(path, unflushedFrames: unflushedFrames)
      firstFragment = movie.byteCount
      for (index, sample) in frames.enumerated() {
        try Self.append(sample, to: &movie)
        try movie.note(
          FrameObservation(sequence: UInt32(index), microseconds: sample.ticks))
        if Int.random(in: 0..<5, using: &random) == 0 {
          try movie.flush()
          flushedCount = index + 1
        }
      }
    }
    let found = RecordedFragments(
      in: try MovieBoxes(opening: path, forWriting: false), from: firstFragment
    ).fragments
    let ticks = found.flatMap { $0.samples.map(\.ticks) }
    #expect(ticks == frames.prefix(ticks.count).map(\.ticks))
    // Each stored sample has one frame record, and each record has one sample.
    #expect(found.flatMap { $0.frames.map(\.sequence) } == ticks.indices.map { UInt32($0) })
    #expect(ticks.count >= max(flushedCount, frames.count - unflushedFrames))
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `A finished movie has every sample of its fragments`(seed: UInt64) throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let samples = Self.samples(seed: seed, count: 200 + Int(seed) * 30)
    var movie = try Self.writer(path)
    for sample in samples { try Self.append(sample, to: &movie) }
    movie.endLast(ofTrack: 0, duration: 5_555)
    try movie.finish()
    #expect(movie.byteCount == Int64(try bytes(of: path).count))
    let appended = [0, 1].map { track in samples.filter { $0.track == track } }
    #expect(try Self.read(path) == appended)
    let end = (appended[0].last?.ticks ?? 0) + 5_555
    let counts = try RecordedMovie(RandomAccessFile(opening: path).file).finish(
      ends: [.at(end), .at(Int64(appended[1].count * 256))], metadata: [:])
    #expect(counts == appended.map { Int64($0.count) })
    #expect(!(try MovieBoxes(opening: path)).boxes().contains { $0.type == BoxType.fragment })
    var demuxer = try Demuxer(opening: path)
    #expect(demuxer.tracks[0].indexedCount == appended[0].count)
    var durations: [Int64] = []
    while let packet = try demuxer.nextPacket() {
      if packet.trackIndex == 0 { durations.append(packet.duration) }
    }
    let times = appended[0].map(\.ticks) + [end]
    #expect(durations == zip(times, times.dropFirst()).map { $1 - $0 })
    #expect(try Self.read(path)[0] == appended[0])
  }

  @Test func `Refuses a sample time that goes back or jumps far ahead`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var movie = try Self.writer(path)
    try Self.append(Sample(track: 0, ticks: 0, bytes: [1, 2]), to: &movie)
    try Self.append(Sample(track: 0, ticks: 9, bytes: [3]), to: &movie)
    for ticks in [9, 8, Int64.min, Int64.max, 10 + Int64(Int32.max)] {
      var isRefused = false
      do { try Self.append(Sample(track: 0, ticks: ticks, bytes: [4]), to: &movie) } catch {
        isRefused = true
      }
      #expect(isRefused, "\(ticks)")
    }
    var isRefused = false
    do { try Self.append(Sample(track: 0, ticks: 20, bytes: []), to: &movie) } catch {
      isRefused = true
    }
    #expect(isRefused)
    try Self.append(Sample(track: 0, ticks: 20, bytes: [5]), to: &movie)
    try movie.finish()
    #expect(try Self.read(path)[0].map(\.bytes) == [[1, 2], [3], [5]])
  }

  @Test(arguments: [(AVPixelFormatName.gray, 64), (.gray, 63), (.rgb24, 63), (.rgb24, 64)])
  func `Stores uncompressed frames as libavformat stores them`(
    format: AVPixelFormatName, width: Int
  ) throws {
    let scratch = try Scratch()
    var random = SeededGenerator(seed: UInt64(width))
    let rowBytes = width * (format == .gray ? 1 : 3)
    let image = (0..<(rowBytes * 48)).map { _ in UInt8.random(in: 0...255, using: &random) }
    var settings = Encoder.VideoSettings(
      codec: "rawvideo", width: width, height: 48,
      pixelFormat: format == .gray ? .gray8 : .rgb24, timescale: 1_000_000)
    settings.frameRate = FrameRate(100)
    let parameters = try Encoder(video: settings).parameters
    let packet = try image.withUnsafeBytes {
      try Packet(copying: $0, pts: 0, dts: 0, duration: 1, isKeyFrame: true)
    }
    let theirs = try scratch.write([], as: "theirs.mov")
    let plain = MovieWriter.Settings(container: .mov, movieTimescale: 1_000_000)
    var writer = try MovieWriter(path: theirs, settings: plain)
    _ = try writer.addTrack(parameters, timescale: 1_000_000)
    try writer.begin()
    try writer.write(packet, track: 0, pts: 0, dts: 0, duration: 1)
    try writer.finish()
    let ours = try scratch.write([], as: "ours.mov")
    var movie = try FragmentedMovieWriter(
      RandomAccessFile(opening: ours).file, index: MovieIndex(.mov, timescale: 1_000_000),
      tracks: [Self.track(parameters, timescale: 1_000_000, ours, first: image)],
      layout: .init(fragmentTicks: 1, samplesPerFragment: 1))
    try Self.append(Sample(track: 0, ticks: 0, bytes: image), to: &movie)
    try movie.finish()
    let stored = try frameBytes(theirs)
    #expect((stored[0] == image) == (format == .gray || width == 64))
    if format == .gray {
      for path in [theirs, ours] {
        let read = try Demuxer(opening: path).tracks[0].parameters
        #expect(read.pixelFormat == .gray8)
        // The sample entry has a depth of 24 bits and no color table, so it declares no palette.
        let file = try bytes(of: path)
        let tag = try #require(
          file.indices.dropLast(82).first { file[$0...].starts(with: "Y800".utf8) })
        #expect(file[(tag + 78)..<(tag + 82)].elementsEqual([0, 24, 0xFF, 0xFF]))
      }
    }
    #expect(try frameBytes(ours) == stored)
    _ = try RecordedMovie(RandomAccessFile(opening: ours).file).finish(
      ends: [.at(1)], metadata: [:])
    #expect(try frameBytes(ours) == stored)
  }

  enum AVPixelFormatName { case gray, rgb24 }
}
