// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankMovieFormat

/// Plain movies, compared with a list of the samples that were appended.
@Suite struct MovieFileWriterTests {
  private struct Sample: Equatable {
    var track = 0
    var (dts, pts): (Int64, Int64)
    var isKeyFrame = true
    var bytes: [UInt8]
  }

  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The tracks: Motion JPEG and uncompressed audio.
  private func tracks(_ container: MovieContainer) throws -> [MovieTrack] {
    let video = try CodecParameters(videoCodec: "mjpeg", width: 64, height: 48)
    let audio = try Encoder(
      audioCodec: container == .mov ? "pcm_s16le" : "aac", sampleRate: 48_000, channelCount: 2)
    return try [(video, 90_000), (audio.parameters, 48_000)].map { parameters, timescale in
      try TrackMuxer.describe(
        TrackMuxer.Format(parameters, in: container, timescale: timescale),
        first: Packet(copying: [UInt8](repeating: 7, count: 16)), path: "memory")
    }
  }

  private func write(
    _ samples: [Sample], to path: String, _ container: MovieContainer = .mov,
    frontIndexBytes: Int? = nil, chapters: [MovieIndex.Chapter] = [],
    tags: [String: String] = [:], timescale: Int32 = 1_000
  ) throws {
    var index = MovieIndex(container, timescale: timescale)
    index.tags = tags
    var settings = MovieFileWriter.Settings(index: index)
    settings.frontIndexBytes = frontIndexBytes
    settings.chapters = chapters
    let file = try RandomAccessFile(opening: scratch.write([], as: path)).file
    var movie = try MovieFileWriter(file, tracks: tracks(container), settings: settings)
    for sample in samples { try append(sample, to: &movie, container) }
    try movie.finish()
  }

  private func append(
    _ sample: Sample, to movie: inout MovieFileWriter, _ container: MovieContainer
  ) throws {
    let isBlock = sample.track == 1 && container == .mov
    var entry = MovieFileWriter.Sample(
      track: sample.track, ticks: sample.dts, duration: isBlock ? 256 : 3_000,
      isKeyFrame: sample.isKeyFrame)
    entry.presentationOffset = sample.pts - sample.dts
    entry.count = isBlock ? sample.bytes.count / 4 : 1
    let result = sample.bytes.withUnsafeBytes { bytes in
      Result { () throws(CallFailure) in try movie.append(bytes, entry) }
    }
    try result.get()
  }

  private func read(_ path: String) throws -> [[Sample]] {
    var demuxer = try Demuxer(opening: path)
    var found: [[Sample]] = demuxer.tracks.map { _ in [] }
    while let packet = try demuxer.nextPacket() {
      found[packet.trackIndex].append(
        Sample(
          track: packet.trackIndex, dts: packet.dts ?? -1, pts: packet.pts ?? -1,
          isKeyFrame: packet.isKeyFrame, bytes: packet.withBytes { [UInt8]($0) }))
    }
    return found
  }

  /// Frames of any size at any time, some of them reordered, between blocks of audio.
  private func samples(seed: UInt64) -> [Sample] {
    var random = SeededGenerator(seed: seed)
    var samples: [Sample] = []
    let depth = Int64.random(in: 0...2, using: &random) * 3_000
    var (dts, audio) = (-depth, Int64(0))
    for _ in 0..<Int.random(in: 1...300, using: &random) {
      let bytes = (0..<Int.random(in: 1...3_000, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      samples.append(
        Sample(
          dts: dts, pts: dts + depth, isKeyFrame: true, bytes: bytes))
      dts += Int64.random(in: 1...6_000, using: &random)
      while audio * 15 < dts * 8 {
        samples.append(
          Sample(
            track: 1, dts: audio, pts: audio,
            bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: audio), count: 1_024)))
        audio += 256
      }
    }
    return samples
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `A plain movie has every sample with its time`(seed: UInt64) throws {
    let samples = samples(seed: seed)
    try write(samples, to: "a.mov", frontIndexBytes: seed.isMultiple(of: 2) ? 50_000 : nil)
    let found = try read(scratch.file("a.mov"))
    let isRight = found[0] == samples.filter { $0.track == 0 }
    #expect(isRight)
    let audio = samples.filter { $0.track == 1 }
    #expect(found.count == (audio.isEmpty ? 1 : 2))
    if !audio.isEmpty { #expect(found[1].flatMap(\.bytes) == audio.flatMap(\.bytes)) }
  }

  @Test func `An index that does not fit its space is at the end`() throws {
    let samples = samples(seed: 5)
    for space in [100, 100_000] {
      try write(samples, to: "a.mov", frontIndexBytes: space)
      let boxes = try MovieBoxes(opening: scratch.file("a.mov")).boxes().map(\.type)
      #expect(
        boxes
          == (space == 100
            ? [BoxType.fileType, BoxType.free, BoxType.wide, BoxType.media, BoxType.movie]
            : [BoxType.fileType, BoxType.movie, BoxType.free, BoxType.wide, BoxType.media]))
      #expect(try read(scratch.file("a.mov"))[0].count == samples.count { $0.track == 0 })
    }
  }

  @Test(arguments: [false, true])
  func `Samples beyond 4 GiB have 64-bit offsets`(isInFront: Bool) async throws {
    let path = try scratch.write([], as: "a.mov")
    let file = try RandomAccessFile(opening: path)
    let index = MovieIndex(.mov, timescale: 1_000)
    var table = SampleTable()
    for number in 0..<5 as Range<Int64> {
      let position = (number + 1) << 30
      try file.write([UInt8(number), 9], at: position)
      table.append(
        SampleTable.Sample(
          position: position, byteCount: 2, ticks: number * 3_000, duration: 3_000,
          isKeyFrame: true))
    }
    let movie = index.bytes([(try tracks(.mov)[0], table)])
    var head = BoxBytes()
    head.append(bytes: index.fileType(for: [], isFragmented: false))
    if isInFront { head.append(bytes: movie) }
    let media = Int64(head.bytes.count)
    head.append(UInt32(1))
    head.append(BoxType.media)
    head.append(UInt64(6) << 30)
    try file.write(head.bytes, at: 0)
    let end = media + 6 << 30
    if isInFront { try file.write([0], at: end - 1) } else { try file.write(movie, at: end) }
    let found = try read(path)
    #expect(found.map { $0.map(\.bytes) } == [(0..<5).map { [$0, 9] }])
    #expect(try await MovieCheck.boxes([path]) == "")
  }

  @Test(arguments: RunSize.isFull ? [true, false] : [true])
  func `A million samples can be indexed`(isInFront: Bool) async throws {
    let path = try scratch.write([], as: "a.mp4")
    var settings = MovieFileWriter.Settings(index: MovieIndex(.mp4, timescale: 1_000))
    if isInFront { settings.frontIndexBytes = 40_000_000 }
    var movie = try MovieFileWriter(
      RandomAccessFile(opening: path).file, tracks: [tracks(.mp4)[0]], settings: settings)
    let bytes: [UInt8] = [1, 2]
    for number in 0..<1_000_000 as Range<Int64> {
      let sample = MovieFileWriter.Sample(
        track: 0, ticks: number * 100 + number % 3, duration: 100, isKeyFrame: number % 30 == 0)
      let result = bytes.withUnsafeBytes { bytes in
        Result { () throws(CallFailure) in
          try movie.append(UnsafeRawBufferPointer(rebasing: bytes[..<Int(1 + number % 2)]), sample)
        }
      }
      try result.get()
    }
    try movie.finish()
    let boxes = try MovieBoxes(opening: path, forWriting: false)
    let list = boxes.boxes()
    let index = try #require(list.first { $0.type == BoxType.movie })
    #expect((list.first { $0.type == BoxType.media }?.start ?? 0 > index.start) == isInFront)
    let moved = boxes.bytes(of: index) ?? []
    let track = try #require(Box.track(0, in: moved))
    let tables = track.first(BoxType.trackMedia, in: moved)?
      .first(BoxType.mediaInformation, in: moved)?.first(BoxType.sampleTable, in: moved)
    #expect(tables?.first(BoxType.sampleSizes, in: moved)?.number(8, in: moved) == 1_000_000)
    #expect(tables?.first(BoxType.syncSamples, in: moved)?.number(4, in: moved) == 33_334)
    #expect(try await MovieCheck.boxes([path]) == "")
  }

  @Test func `Refuses times that go back or do not fit`() throws {
    let path = try scratch.write([], as: "a.mov")
    var movie = try MovieFileWriter(
      RandomAccessFile(opening: path).file, tracks: tracks(.mov),
      settings: MovieFileWriter.Settings(index: MovieIndex(.mov, timescale: 1_000)))
    #expect(throws: CallFailure.self) {
      try append(Sample(dts: .min, pts: .min, bytes: [1]), to: &movie, .mov)
    }
    try append(Sample(dts: 10, pts: 10, bytes: [1]), to: &movie, .mov)
    for (dts, pts) in [(10, 10), (9, 9), (20, 19), (11 + Int64(Int32.max), 11 + Int64(Int32.max))] {
      #expect(throws: CallFailure.self) {
        try append(Sample(dts: dts, pts: pts, bytes: [2]), to: &movie, .mov)
      }
    }
    #expect(throws: CallFailure.self) {
      try append(Sample(dts: 30, pts: 30, bytes: []), to: &movie, .mov)
    }
    try append(Sample(dts: 20, pts: 25, bytes: [3]), to: &movie, .mov)
    try movie.finish()
    #expect(try read(path)[0].map(\.bytes) == [[1], [3]])
  }

  @Test(arguments: [MovieContainer.mov, .mp4])
  func `Tags and chapters are read back`(container: MovieContainer) throws {
    let chapters = [
      MovieIndex.Chapter(title: "", start: 0, end: 20),
      MovieIndex.Chapter(title: "Größe", start: 20, end: 66),
    ]
    let tags = ["comment": "a\u{301} b", "com.android.capture.fps": "240"]
    let frames = [Sample(dts: 0, pts: 0, bytes: [1]), Sample(dts: 3_000, pts: 3_000, bytes: [2])]
    try write(frames, to: "a", container, chapters: chapters, tags: tags)
    let demuxer = try Demuxer(opening: scratch.file("a"))
    #expect(demuxer.metadata["comment"] == tags["comment"])
    #expect(demuxer.metadata["com.android.capture.fps"].flatMap(Double.init) == 240)
    #expect(demuxer.chapters.map(\.title) == chapters.map(\.title))
    #expect(demuxer.chapters.map(\.start) == [.zero, Rational(1, over: 50)])
  }

  @Test func `Chapters may last for hours in a fine timescale`() throws {
    let hour: Int64 = 3_600_000_000
    let frames = [Sample(dts: 0, pts: 0, bytes: [1])]
    for (hours, timescale) in [(1, 1_000_000), (6, Int32.max / 2), (24_000, 1_000_000)] {
      let length = Int64(hours) * hour / 1_000_000 * Int64(timescale)
      let chapters = [
        MovieIndex.Chapter(title: "long", start: 0, end: length),
        MovieIndex.Chapter(title: "last", start: length, end: length + Int64(timescale)),
      ]
      try write(frames, to: "a", chapters: chapters, timescale: timescale)
      let demuxer = try Demuxer(opening: scratch.file("a"))
      #expect(demuxer.chapters.map(\.title) == ["long", "last"])
      #expect(demuxer.chapters.map(\.start) == [.zero, Rational(Int128(hours) * 3_600, over: 1)])
    }
  }

  @Test func `Chapters within one tick are all kept`() throws {
    let frames = [Sample(dts: 0, pts: 0, bytes: [1])]
    let chapters = [(0, 5), (5, 5), (5, 5), (6, 20)].enumerated().map {
      MovieIndex.Chapter(title: "\($0)", start: $1.0, end: $1.1)
    }
    try write(frames, to: "a", chapters: chapters)
    let demuxer = try Demuxer(opening: scratch.file("a"))
    #expect(demuxer.chapters.map(\.title) == ["0", "1", "2", "3"])
    let starts = demuxer.chapters.map { Int(($0.start * 1_000).doubleValue.rounded()) }
    #expect(starts == [0, 5, 6, 7])
  }

  @Test func `A track is read as it was written`() throws {
    for container in [MovieContainer.mov, .mp4] {
      var track = try tracks(container)[0]
      track.matrix = [0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30]
      track.language = 5
      let index = MovieIndex(container, timescale: 1_000)
      var table = SampleTable()
      table.append(
        SampleTable.Sample(position: 40, byteCount: 4, ticks: -30, duration: 60, isKeyFrame: true))
      let bytes = index.bytes([(track, table)])
      let box = try #require(Box.track(0, in: bytes))
      let found = try #require(MovieTrack(box, in: bytes))
      #expect(found.matrix == track.matrix && found.language == 5)
      #expect(found.handlerName == Array("VideoHandler".utf8))
      #expect((found.width, found.height) == (64 << 16, 48 << 16))
      #expect(found.mediaHeader == track.mediaHeader && found.extras == track.extras)
      let first = MovieTrack.firstTicks(
        of: box, in: bytes, timescale: 90_000, movieTimescale: 1_000)
      #expect(first == -30)
    }
  }
}
