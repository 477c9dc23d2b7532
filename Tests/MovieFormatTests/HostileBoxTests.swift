// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Boxes that were made to crash a program, or to keep it busy for a long time.
struct HostileBoxTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func box(_ type: UInt32, _ contents: [UInt8]) -> [UInt8] {
    var bytes = BoxBytes()
    bytes.box(type) { $0.append(bytes: contents) }
    return bytes.bytes
  }

  private func fullBox(_ type: UInt32, _ numbers: [UInt32]) -> [UInt8] {
    var bytes = BoxBytes()
    bytes.fullBox(type, version: 0, flags: 0) { box in
      for number in numbers { box.append(number) }
    }
    return bytes.bytes
  }

  @Test func `Extremely nested movie boxes are not entered`() throws {
    // The outer boxes come first. Each box is eight bytes smaller than the box around it.
    var bytes = BoxBytes()
    for level in 0..<200_000 {
      bytes.append(UInt32((200_000 - level) * 8))
      bytes.append(BoxType.movie)
    }
    let path = try scratch.write(bytes.bytes, as: "nested.mp4")
    #expect(SampleTables(of: path)?.tracksInOrder.isEmpty == true)
    #expect(TimedMetadataReader.read(from: path).isEmpty)
  }

  @Test func `Thousands of small movie boxes are all found`() throws {
    var expected: [Box] = []
    var bytes: [UInt8] = []
    // Mostly small boxes, with some large boxes and some boxes with 64-bit sizes.
    for number in 0..<5_000 {
      let start = Int64(bytes.count)
      if number % 1_000 == 999 {
        bytes += box(BoxType.media, Array(repeating: 0, count: 100_000))
      } else if number % 100 == 7 {
        var head = BoxBytes()
        for value in [UInt32(1), BoxType.free, 0, 16] { head.append(value) }
        bytes += head.bytes
        expected.append(Box(type: BoxType.free, start: start, byteCount: 16, headBytes: 16))
        continue
      } else {
        bytes += box(BoxType.free, Array(repeating: 1, count: number % 40))
      }
      expected.append(
        Box(
          type: number % 1_000 == 999 ? BoxType.media : BoxType.free, start: start,
          byteCount: Int64(bytes.count) - start))
    }
    let file = try MovieBoxes(
      opening: try scratch.write(bytes, as: "many.mp4"), forWriting: false)
    #expect(file.boxes() == expected)
  }

  /// A movie with a timed metadata track, whose chunks are all at the start of the file.
  ///
  /// `timed` is the number of samples whose times are listed; nil for all.
  private func movie(
    chunks: UInt32, samplesPerChunk: UInt32, sampleBytes: UInt32, timed: UInt32? = nil
  ) -> [UInt8] {
    let key = box(
      0x6B65_7973,
      box(
        1,
        box(0x6B65_7964, Array("mdtakey".utf8))
          + box(0x6474_7970, [0, 0, 0, 0, 0, 0, 0, 1])))
    let entry = box(BoxType.boxedMetadata, [0, 0, 0, 0, 0, 0, 0, 1] + key)
    var descriptions = BoxBytes()
    descriptions.fullBox(BoxType.sampleDescriptions, version: 0, flags: 0) { box in
      box.append(UInt32(1))
      box.append(bytes: entry)
    }
    let count = chunks * samplesPerChunk
    let table = box(
      BoxType.sampleTable,
      descriptions.bytes + fullBox(BoxType.timeToSample, [1, timed ?? count, 1])
        + fullBox(BoxType.sampleToChunk, [1, 1, samplesPerChunk, 1])
        + fullBox(BoxType.sampleSizes, [sampleBytes, count])
        + fullBox(BoxType.chunkOffsets, [chunks] + Array(repeating: 8, count: Int(chunks))))
    let media = box(
      BoxType.trackMedia,
      fullBox(BoxType.mediaHeader, [0, 0, 600, 0, 0])
        + fullBox(BoxType.handler, [0, BoxType.metadataHandler, 0, 0, 0])
        + box(BoxType.mediaInformation, table))
    let sample = box(1, Array("value".utf8))
    return box(BoxType.media, sample)
      + box(
        BoxType.movie,
        fullBox(BoxType.movieHeader, [0, 0, 600, 0]) + box(BoxType.track, media))
  }

  @Test func `Sample sizes that sum to more than the file are not read`() throws {
    let one = try scratch.write(
      movie(chunks: 2, samplesPerChunk: 1, sampleBytes: 13), as: "one.mov")
    #expect(TimedMetadataReader.read(from: one).map(\.key) == ["key", "key"])
    // The track has 1000 chunks of 4000 samples, which are all the same 13 bytes.
    let many = try scratch.write(
      movie(chunks: 1_000, samplesPerChunk: 4_000, sampleBytes: 13), as: "many.mov")
    #expect(TimedMetadataReader.read(from: many).isEmpty)
  }

  @Test func `Metadata is read up to the last sample with a time`() throws {
    let path = try scratch.write(
      movie(chunks: 3, samplesPerChunk: 1, sampleBytes: 13, timed: 2), as: "short.mov")
    let seconds = TimedMetadataReader.read(from: path).map(\.seconds)
    #expect(seconds == [0, Rational(1, over: 600)])
    // A copy of the track would lack its last samples.
    #expect(SourceTracks(of: path)?.samples(0) == nil)
    let whole = try scratch.write(
      movie(chunks: 3, samplesPerChunk: 1, sampleBytes: 13), as: "whole.mov")
    #expect(SourceTracks(of: whole)?.samples(0)?.samples.count == 3)
  }
}
