// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Reads samples of any track, decoded or as stored, in order or from a time range.
struct AssetReaderTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  enum Kind: CaseIterable {
    case mjpeg, reorderedH264, openGOP

    var recipe: MovieRecipe {
      let recipe = MovieRecipe.constant(240, count: 150)
      switch self {
      case .mjpeg: return recipe
      case .reorderedH264: return recipe.h264(gop: 50, reordered: true)
      case .openGOP:
        return recipe.h264(
          gop: 25, reordered: true,
          options: ["x264-params": "bframes=2:b-adapt=0:b-pyramid=none:ref=2:open-gop=1"])
      }
    }
  }

  /// A wave whose neighboring samples differ and fit 16 bits exactly.
  private static func value(_ channel: Int, _ sample: Int) -> Float {
    Float((sample &* 7_919 + channel &* 13) % 32_768) / 32_768
  }

  private func asset(_ recipe: MovieRecipe) throws -> Asset {
    var recipe = recipe
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = "pcm_s16le"
    recipe.audio?.sampleCount = 30_000
    recipe.audio?.wave = Self.value
    return try recipe.asset(at: directory.file("clip.mov"))
  }

  private func samples(
    _ asset: Asset, _ track: AssetTrack, _ output: AssetReader.Output, _ range: TimeRange? = nil
  ) throws -> [AssetSample] {
    var reader = try AssetReader(asset, track, as: output, in: range)
    var samples: [AssetSample] = []
    while let sample = try reader.nextSample() { samples.append(sample) }
    return samples
  }

  private func numbers(_ samples: [AssetSample]) -> [Int] {
    samples.compactMap { sample in
      guard case .image(let image) = sample.content else { return nil }
      return PaintedBlocks.number(in: image)
    }
  }

  /// Time ranges in a clip of 0.625 s, and the frames that are visible in each.
  private static let ranges: [(range: ClosedRange<Int64>, frames: Range<Int>)] = [
    // The times are in units of 1/480 s. A frame lasts two units.
    (0...300, 0..<150), (120...180, 60..<90), (121...181, 60..<91), (298...9_999, 149..<150),
    (300...400, 0..<0), (77...77, 0..<0),
  ]

  @Test(arguments: Kind.allCases)
  func `Decoded frames of a time range come in presentation order`(kind: Kind) throws {
    let asset = try asset(kind.recipe)
    let track = try #require(asset.tracks(of: .video).first)
    let frames = try #require(track.video).frames
    #expect(numbers(try samples(asset, track, .images(.gray))) == Array(0..<150))
    for (bounds, expected) in Self.ranges {
      let range = try TimeRange(
        start: MediaTime(bounds.lowerBound, over: 480), end: MediaTime(bounds.upperBound, over: 480)
      )
      let given = try samples(asset, track, .images(.bgra), range)
      #expect(numbers(given) == Array(expected), "\(range)")
      for (number, sample) in zip(expected, given) {
        #expect(sample.presentationTimeStamp == (try frames.time(ofFrame: Int64(number))))
        let end = try MediaTime(sample.presentationTimeStamp + sample.duration)
        #expect(end == (try frames.time(ofFrame: Int64(number) + 1)))
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func `Undecoded frames come in decode order from a key frame`(
    kind: Kind
  ) throws {
    let asset = try asset(kind.recipe)
    let track = try #require(asset.tracks(of: .video).first)
    var demuxer = try Demuxer(opening: asset.path)
    var written: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      if packet.trackIndex == track.id { written.append(packet.withBytes { [UInt8]($0) }) }
    }
    let frames = try #require(track.video).frames
    func bytes(_ samples: [AssetSample]) -> [[UInt8]] {
      samples.map { sample in
        guard case .stored(let bytes) = sample.content else { return [] }
        return bytes
      }
    }
    let all = try samples(asset, track, .stored)
    #expect(bytes(all) == written)
    let times = all.map(\.presentationTimeStamp)
    #expect(times.sorted() == (try (0..<150).map { try frames.time(ofFrame: $0) }))
    #expect((times == times.sorted()) == (kind == .mjpeg))
    let decodeTimes = try all.map { try #require($0.decodeTimeStamp) }
    #expect(zip(decodeTimes, decodeTimes.dropFirst()).allSatisfy(<))
    for (bounds, expected) in Self.ranges {
      let range = try TimeRange(
        start: MediaTime(bounds.lowerBound, over: 480), end: MediaTime(bounds.upperBound, over: 480)
      )
      let given = try samples(asset, track, .stored, range)
      guard let first = given.first else {
        #expect(expected.isEmpty)
        continue
      }
      // The samples are a part of the track that begins at a key frame and has every frame of the
      // range.
      let start = try #require(times.firstIndex(of: first.presentationTimeStamp))
      #expect(bytes(given) == Array(bytes(all)[start..<start + given.count]))
      #expect(first.isKeyFrame && first.presentationTimeStamp <= range.start)
      let wanted = try expected.map { try frames.time(ofFrame: Int64($0)) }
      #expect(Set(wanted).isSubset(of: given.map(\.presentationTimeStamp)))
      if kind == .mjpeg { #expect(given.count == expected.count) }
    }
  }

  @Test func `Reading a time range of audio is exact to the sample`() throws {
    let asset = try asset(.constant(240, count: 150))
    let track = try #require(asset.tracks(of: .audio).first)
    // A range has the samples from its start up to its end. The sample at the end is not included.
    for (range, samples) in [
      (nil, 0..<30_000),
      (try TimeRange(start: MediaTime(1, over: 7), end: MediaTime(2, over: 7)), 6_858..<13_715),
      (try TimeRange(start: MediaTime(1, over: 2), end: MediaTime(seconds: 9)), 24_000..<30_000),
    ] as [(TimeRange?, Range<Int>)] {
      let blocks = try self.samples(asset, track, .audio, range)
      var position = samples.lowerBound
      for block in blocks {
        #expect(block.presentationTimeStamp == MediaTime(Int64(position), over: 48_000))
        guard case .audio(let channels) = block.content else {
          Issue.record("no audio")
          return
        }
        #expect(channels.count == 2 && channels[0].count <= 4_096)
        let expected = (0..<2).map { channel in
          (position..<position + channels[0].count).map { Self.value(channel, $0) }
        }
        #expect(channels == expected)
        position += channels[0].count
      }
      #expect(position == samples.upperBound)
    }
    var count = 0
    for packet in try samples(asset, track, .stored) {
      guard case .stored(let bytes) = packet.content else { continue }
      #expect(packet.presentationTimeStamp == MediaTime(Int64(count), over: 48_000))
      count += bytes.count / 4
    }
    #expect(count == 30_000)
    let range = try TimeRange(start: MediaTime(1, over: 2), end: MediaTime(51, over: 100))
    let some = try samples(asset, track, .stored, range)
    let (first, last) = (try #require(some.first), try #require(some.last))
    #expect(first.presentationTimeStamp <= range.start && last.presentationTimeStamp < range.end)
    #expect(some.count < 10)
  }

  @Test func `Async and blocking reads give the same samples`() async throws {
    let asset = try asset(Kind.reorderedH264.recipe)
    let range = try TimeRange(start: MediaTime(1, over: 10), end: MediaTime(1, over: 2))
    for track in asset.tracks {
      for output in [.stored, track.video == nil ? .audio : .images(.gray)] as [AssetReader.Output]
      {
        let blocking = try samples(asset, track, output, range)
        var times: [MediaTime] = []
        for try await sample in asset.samples(of: track, as: output, in: range) {
          times.append(sample.presentationTimeStamp)
        }
        #expect(times == blocking.map(\.presentationTimeStamp) && times.count > 1)
      }
    }
    let task = Task {
      for try await _ in asset.samples(of: asset.tracks[0]) {
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    let result = await task.result
    #expect(throws: MediaError.self) { try result.get() }
    if case .failure(let error as MediaError) = result { #expect(error.code == .cancelled) }
  }

  @Test func `Refuses to read video as audio or audio as images`() throws {
    let asset = try asset(.constant(240, count: 10))
    let (video, audio) = (asset.tracks[0], asset.tracks[1])
    for (track, output) in [(video, .audio), (audio, .images(.gray))]
      as [(
        AssetTrack, AssetReader.Output
      )]
    {
      let code: MediaError.Code?
      do throws(MediaError) {
        _ = try AssetReader(asset, track, as: output)
        code = nil
      } catch { code = error.code }
      #expect(code == .invalidData)
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `All tracks can be read including subtitles`()
    async throws
  {
    let subtitles = directory.file("subtitles.srt")
    try "1\n00:00:00,500 --> 00:00:01,000\nhop\n\n2\n00:00:01,200 --> 00:00:01,500\nland\n"
      .write(toFile: subtitles, atomically: false, encoding: .utf8)
    let path = directory.file("many.mp4")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=30:duration=2"]
        + ["-f", "lavfi", "-i", "color=c=white:size=64x48:rate=25:duration=2"]
        + ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=2"]
        + ["-f", "lavfi", "-i", "anullsrc=sample_rate=44100:channel_layout=mono", "-i", subtitles]
        + ["-map", "0", "-map", "1", "-map", "2", "-map", "3", "-map", "4", "-t", "2"]
        + ["-c:v", "mjpeg", "-c:a", "aac", "-c:s", "mov_text"])
    let asset = try Asset(path: path)
    #expect(asset.tracks.map(\.mediaType) == [.video, .video, .audio, .audio, nil])
    #expect(asset.tracks.map(\.codec) == ["mjpeg", "mjpeg", "aac", "aac", "mov_text"])
    let images = try samples(asset, asset.tracks[1], .images(.gray))
    #expect(images.count == 50)
    for case .image(let image) in images.map(\.content) {
      #expect(image.width == 64 && image.bytes.allSatisfy { $0 > 200 })
    }
    let silence = try samples(asset, asset.tracks[3], .audio)
    #expect(silence.first?.presentationTimeStamp == .zero)
    for case .audio(let channels) in silence.map(\.content) {
      #expect(channels.count == 1 && channels[0].allSatisfy { abs($0) < 0.001 })
    }
    // Each subtitle sample begins with a text length of two bytes. Samples between two subtitles
    // have no text.
    let texts = try samples(asset, asset.tracks[4], .stored).compactMap { sample -> String? in
      guard case .stored(let bytes) = sample.content, bytes.count > 2 else { return nil }
      let text = String(decoding: bytes[2..<2 + Int(bytes[0]) << 8 + Int(bytes[1])], as: UTF8.self)
      return "\(sample.presentationTimeStamp.seconds) \(text)"
    }
    #expect(texts == ["1/2 hop", "6/5 land"])
  }
}
