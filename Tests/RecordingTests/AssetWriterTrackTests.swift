// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

@testable import OvercrankRecording

/// Movies of several tracks whose samples a program appends.
struct AssetWriterTrackTests {
  private static let size = FormatDescription(
    mediaSubType: .codec(.mjpeg), width: 128, height: 96)
  private static let stereo = AudioFormat(.s16, sampleRate: 48_000, channelCount: 2)
  private static let rate = FrameRate(100)

  /// A sample to append, and its time in seconds.
  private struct Sample {
    let input: Int
    let time: Rational
    let bytes: [UInt8]
  }

  private static func seconds(_ numerator: Int, over denominator: Int) -> Rational {
    Rational(Int128(numerator), over: Int128(denominator))
  }

  private static func append(_ sample: Sample, to input: AssetWriterInput) throws(MediaError) {
    let time = try MediaTime(sample.time)
    let result = sample.bytes.withUnsafeBytes { bytes in
      Result { () throws(MediaError) in try input.append(bytes: bytes, at: time) }
    }
    try result.get()
  }

  /// PCM samples of 16 bits, different in each block.
  static func tone(from first: Int, count: Int, channelCount: Int = 2) -> [UInt8] {
    (first..<(first + count)).flatMap { sample in
      (0..<channelCount).flatMap { channel -> [UInt8] in
        let value = UInt16(truncatingIfNeeded: sample &* 37 &+ channel &* 11)
        return [UInt8(value & 0xFF), UInt8(value >> 8)]
      }
    }
  }

  /// A track of a file, as libav reads it.
  private struct Stored {
    var headers: [UInt8] = []
    var packets: [[UInt8]] = []
  }

  /// An H.264 track with length-prefixed NAL units.
  private static func h264(_ count: Int, in scratch: Scratch) throws -> Stored {
    let path = scratch.file("source.mov")
    let camera = try ScriptedCamera(100)
    _ = try camera.take(try camera.frames(0..<count), codec: .h264, to: path)
    var demuxer = try Demuxer(opening: path)
    let track = try #require(demuxer.tracks.first { $0.kind == .video })
    var stored = Stored(headers: track.parameters.extradata)
    while let packet = try demuxer.nextPacket() {
      if packet.trackIndex == track.index { stored.packets.append(packet.withBytes { Array($0) }) }
    }
    return stored
  }

  /// An AAC track.
  private static func aac(_ count: Int) throws -> Stored {
    var encoder = try Encoder(audioCodec: "aac", sampleRate: 48_000, channelCount: 1)
    var stored = Stored(headers: encoder.parameters.extradata)
    var block = 0
    while stored.packets.count < count {
      let samples = (0..<1_024).map { Float(sin(Double(block * 1_024 + $0) * 0.05)) * 0.5 }
      try encoder.send(audio: [samples], at: Int64(block * 1_024))
      block += 1
      while let packet = try encoder.nextPacket() {
        stored.packets.append(packet.withBytes { Array($0) })
      }
    }
    return stored
  }

  /// The packets of each track with their times in seconds, and all packets in file order.
  private static func read(
    _ path: String
  ) throws -> (tracks: [[(time: Rational, bytes: [UInt8])]], order: [(track: Int, time: Rational)])
  {
    var demuxer = try Demuxer(opening: path)
    var tracks = Array(repeating: [(time: Rational, bytes: [UInt8])](), count: demuxer.tracks.count)
    while let packet = try demuxer.nextPacket() {
      let time = demuxer.tracks[packet.trackIndex].timeBase * Rational(packet.pts ?? -1)
      tracks[packet.trackIndex].append((time, packet.withBytes { Array($0) }))
    }
    var locations: [(position: Int64, track: Int, time: Rational)] = []
    for track in demuxer.tracks {
      for location in demuxer.locations(ofTrack: track.index) {
        locations.append(
          (location.position, track.index, track.timeBase * Rational(location.ticks)))
      }
    }
    return (tracks, locations.sorted { $0.position < $1.position }.map { ($0.track, $0.time) })
  }

  @Test(arguments: [false, true])
  func `An asset writer interleaves four tracks without data loss`(inRealTime: Bool) async throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let frames = 200
    let jpegs = try ScriptedCamera(100).images(0..<frames)
    let h264 = try Self.h264(frames, in: scratch)
    let aac = try Self.aac(94)
    let inputs = [
      // The file has its video tracks first, in whatever order inputs are added.
      try AssetWriterInput(
        mediaType: .audio, outputSettings: .audio(.pcm),
        sourceFormatHint: .audio(Self.stereo), expectsMediaDataInRealTime: inRealTime),
      try AssetWriterInput(
        mediaType: .video, outputSettings: nil,
        sourceFormatHint: .video(Self.size, frameRate: Self.rate),
        expectsMediaDataInRealTime: inRealTime),
      try AssetWriterInput(
        mediaType: .audio, outputSettings: nil,
        sourceFormatHint: .audio(
          codec: .aac, sampleRate: 48_000, channelCount: 1, headers: aac.headers),
        expectsMediaDataInRealTime: inRealTime),
      try AssetWriterInput(
        mediaType: .video, outputSettings: nil,
        sourceFormatHint: .video(
          FormatDescription(mediaSubType: .codec(.h264), width: 128, height: 96),
          frameRate: Self.rate, headers: h264.headers),
        expectsMediaDataInRealTime: inRealTime),
    ]
    var samples: [[Sample]] = []
    samples.append(
      (0..<200).map {
        Sample(
          input: 0, time: Self.seconds($0, over: 100), bytes: Self.tone(from: $0 * 480, count: 480))
      })
    samples.append(
      jpegs.enumerated().map { Sample(input: 1, time: Self.seconds($0, over: 100), bytes: $1) })
    samples.append(
      aac.packets.enumerated().map {
        Sample(input: 2, time: Self.seconds($0 * 1_024, over: 48_000), bytes: $1)
      })
    samples.append(
      h264.packets.enumerated().map {
        Sample(input: 3, time: Self.seconds($0, over: 100), bytes: $1)
      })
    let writer = AssetWriter(path: path)
    for input in inputs { try writer.add(input) }
    try writer.startWriting()
    try writer.startSession(atSourceTime: .zero)
    // In real time, round n appends the samples before n · 50 ms. Otherwise each round appends
    // samples until the input is not ready.
    var next = [0, 0, 0, 0]
    var round = 0
    while next != samples.map(\.count) {
      round += 1
      for input in inputs.indices {
        while next[input] < samples[input].count, inputs[input].isReadyForMoreMediaData {
          let sample = samples[input][next[input]]
          guard !inRealTime || sample.time < Self.seconds(round, over: 20) else { break }
          try Self.append(sample, to: inputs[input])
          next[input] += 1
          if next[input] == samples[input].count { inputs[input].markAsFinished() }
        }
      }
    }
    try await writer.finishWriting()
    #expect(writer.storedFrameCount == Int64(2 * frames))
    let (tracks, order) = try Self.read(path)
    #expect(tracks.count == 4)
    for (track, input) in [(0, 1), (1, 3), (3, 2)] {
      #expect(tracks[track].map(\.bytes) == samples[input].map(\.bytes))
      let late = zip(tracks[track], samples[input]).map { abs(($0.time - $1.time).doubleValue) }
      #expect((late.max() ?? 1) < 0.000_02)
    }
    #expect(tracks[2].flatMap(\.bytes) == samples[0].flatMap(\.bytes))
    // At each position in the file, no track is more than half a second behind the other tracks.
    var latest = [0.0, 0, 0, 0]
    for entry in order {
      latest[entry.track] = entry.time.doubleValue
      #expect((latest.max() ?? 0) - (latest.min() ?? 0) <= 0.5)
    }
    #expect(try paintedNumbers(try Asset(path: path)) == (0..<frames).map { $0 })
    let streams = try await FFmpeg.probe(path, "stream=codec_name,nb_read_packets", counting: true)
    #expect(streams == ["mjpeg,200", "h264,200", "pcm_s16le,\(tracks[2].count)", "aac,94"])
    // Players that play all enabled tracks would mix the audio tracks.
    let enabled = try await FFmpeg.probe(path, "stream_disposition=default")
    #expect(enabled == ["1", "0", "1", "0"])
    // FFmpeg decodes all four tracks without an error.
    _ = try await FFmpeg.converted(path, ["-map", "0", "-f", "framecrc"])
  }

  @Test(arguments: [960, 480, 2_880])
  func `A finished Opus track has the pre-roll that FFmpeg writes`(blockLength: Int) async throws {
    let scratch = try Scratch()
    let source = scratch.file("source.mp4")
    try await FFmpeg.make(
      source,
      ["-f", "lavfi", "-i", "sine=440:r=48000", "-t", "1", "-c:a", "libopus"]
        + ["-frame_duration", "\(blockLength / 48)"])
    var demuxer = try Demuxer(opening: source)
    let parameters = demuxer.tracks[0].parameters
    let input = try AssetWriterInput(
      mediaType: .audio, outputSettings: nil,
      sourceFormatHint: .audio(
        codec: AudioCodec(rawValue: "opus"), sampleRate: 48_000,
        channelCount: parameters.channelCount, samplesPerPacket: blockLength,
        headers: parameters.extradata),
      expectsMediaDataInRealTime: false)
    let video = try AssetWriterInput(
      mediaType: .video, outputSettings: nil,
      sourceFormatHint: .video(Self.size, frameRate: Self.rate), expectsMediaDataInRealTime: false)
    let path = scratch.file("a.mp4")
    let writer = AssetWriter(path: path)
    for input in [video, input] { try writer.add(input) }
    try writer.startWriting()
    try writer.startSession(atSourceTime: .zero)
    var blocks: [Sample] = []
    while let packet = try demuxer.nextPacket() {
      let time = Self.seconds(blocks.count * blockLength, over: 48_000)
      blocks.append(Sample(input: 1, time: time, bytes: packet.withBytes { Array($0) }))
    }
    var frames = try ScriptedCamera(100).images(0..<100).enumerated().map { number, image in
      Sample(input: 0, time: Self.seconds(number, over: 100), bytes: image)
    }[...]
    for block in blocks {
      while let frame = frames.first, frame.time <= block.time {
        try Self.append(frames.removeFirst(), to: video)
      }
      try Self.append(block, to: input)
    }
    for input in [video, input] { input.markAsFinished() }
    try await writer.finishWriting()
    for type in ["sgpd", "sbgp"] {
      let groups = try [source, path].map { path in
        let bytes = try bytes(of: path)
        let name = try #require(bytes.firstRange(of: Array(type.utf8)))
        let size = Box.number(bytes[name.lowerBound - 4..<name.lowerBound])
        return Array(bytes[name.lowerBound..<name.lowerBound - 4 + Int(size)])
      }
      #expect(groups[0] == groups[1], "\(type)")
    }
  }

  @Test func `An asset writer fills gaps between PCM blocks with silence`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let images = try ScriptedCamera(100).images(0..<30)
    let video = try AssetWriterInput(formatDescription: Self.size, frameRate: Self.rate)
    let audio = try AssetWriterInput(
      mediaType: .audio, outputSettings: nil, sourceFormatHint: .audio(Self.stereo),
      expectsMediaDataInRealTime: true)
    let writer = AssetWriter(path: path)
    try writer.add(video)
    try writer.add(audio)
    try writer.startWriting()
    try writer.startSession(atSourceTime: MediaTime(7, over: 1))
    // The first block begins before the session. Later come 3 ms of jitter, a gap of 50 ms, and two
    // overlaps of 20 ms.
    let blocks: [(time: Rational, first: Int, count: Int)] = [
      (Rational(699, over: 100), 0, 960), (Rational(7_013, over: 1_000), 960, 480),
      (Rational(707, over: 100), 1_440, 2_400), (Rational(710, over: 100), 3_840, 1_920),
    ]
    for block in blocks {
      try Self.append(
        Sample(input: 1, time: block.time, bytes: Self.tone(from: block.first, count: block.count)),
        to: audio)
    }
    let late = Sample(input: 1, time: Rational(711, over: 100), bytes: [1, 2, 3])
    let error = #expect(throws: MediaError.self) { try Self.append(late, to: audio) }
    #expect(error?.code == .invalidData)
    audio.markAsFinished()
    for (number, bytes) in images.enumerated() {
      let time = Self.seconds(700 + number, over: 100)
      try Self.append(Sample(input: 0, time: time, bytes: bytes), to: video)
    }
    try writer.finishWriting()
    let pcm = try Self.read(path).tracks[1].flatMap(\.bytes)
    var expected = Self.tone(from: 480, count: 480) + Self.tone(from: 960, count: 480)
    expected += [UInt8](repeating: 0, count: (3_360 - 960) * 4)
    expected += Self.tone(from: 1_440, count: 2_400)
    // The session ends at 0.12 s, and the last block begins at 0.1 s.
    expected += Self.tone(from: 3_840 + 960, count: 960)
    #expect(pcm == expected)
    #expect(try Asset(path: path).audioTrack?.sampleCount == Int64(expected.count / 4))
  }

  @Test func `A writer input is not ready if other inputs lag behind`() throws {
    let scratch = try Scratch()
    let images = try ScriptedCamera(100).images(0..<60)
    let inputs = try (0..<2).map { _ in
      try AssetWriterInput(formatDescription: Self.size, frameRate: Self.rate)
    }
    let writer = AssetWriter(path: scratch.file("a.mov"))
    for input in inputs { try writer.add(input) }
    try writer.startWriting()
    try writer.startSession(atSourceTime: .zero)
    func sample(_ number: Int) -> Sample {
      Sample(input: 0, time: Self.seconds(number, over: 100), bytes: images[number])
    }
    var count = 0
    while inputs[0].isReadyForMoreMediaData {
      try Self.append(sample(count), to: inputs[0])
      count += 1
    }
    #expect(count == 27)
    let error = #expect(throws: MediaError.self) { try Self.append(sample(count), to: inputs[0]) }
    #expect(error?.code == .notReady)
    #expect(inputs[1].isReadyForMoreMediaData)
    try Self.append(sample(10), to: inputs[1])
    #expect(inputs[0].isReadyForMoreMediaData)
    inputs[1].markAsFinished()
    let refusal = #expect(throws: MediaError.self) { try Self.append(sample(11), to: inputs[1]) }
    #expect(refusal?.code == .wrongState)
    while count < 60 {
      try Self.append(sample(count), to: inputs[0])
      count += 1
    }
    try writer.finishWriting()
    let tracks = try Self.read(writer.path).tracks
    #expect(tracks.map(\.count) == [60, 1])
    // The second track begins when its first frame is shown.
    #expect(tracks[1][0].time == Rational(1, over: 10))
  }

  @Test func `An asset writer refuses settings that do not match the input`() throws {
    let scratch = try Scratch()
    func input(
      _ type: MediaType, _ settings: AssetWriterOutputSettings?, _ format: SourceFormat
    ) throws -> AssetWriterInput {
      try AssetWriterInput(
        mediaType: type, outputSettings: settings, sourceFormatHint: format)
    }
    let video = SourceFormat.video(Self.size, frameRate: Self.rate)
    let odd = AudioFormat(.s32, sampleRate: 48_000, channelCount: 2)
    let slow = AudioFormat(.s16, sampleRate: 100, channelCount: 2)
    let unknown = AudioCodec(rawValue: "no_such")
    let refused: [(MediaType, AssetWriterOutputSettings?, SourceFormat)] = [
      (.audio, nil, video), (.video, nil, .audio(Self.stereo)),
      (.video, .audio(.aac), video), (.audio, .video(.automatic), .audio(Self.stereo)),
      (.audio, nil, .audio(odd)), (.audio, .audio(.aac), .audio(slow)),
      (.audio, .audio(unknown), .audio(Self.stereo)),
      (.audio, nil, .audio(codec: unknown, sampleRate: 48_000, channelCount: 2)),
      (.audio, nil, .audio(codec: .aac, sampleRate: 0, channelCount: 2)),
      (.audio, .audio(.pcm), .audio(codec: .aac, sampleRate: 48_000, channelCount: 2)),
    ]
    for (type, settings, format) in refused {
      #expect(code { _ = try input(type, settings, format) } == .codecRefused, "\(format)")
    }
    // Uncompressed audio in MP4, H.264 without parameter sets next to another track, and a file without
    // inputs are refused.
    let pcm = try input(.audio, .audio(.pcm), .audio(Self.stereo))
    let h264 = SourceFormat.video(
      FormatDescription(mediaSubType: .codec(.h264), width: 128, height: 96),
      frameRate: Self.rate)
    let cases: [(String, [AssetWriterInput], MediaError.Code)] = [
      ("a.mp4", [try input(.video, nil, video), pcm], .codecRefused),
      ("b.mov", [try input(.video, nil, video), try input(.video, nil, h264)], .codecRefused),
      ("c.mov", [], .wrongState),
    ]
    for (name, inputs, expected) in cases {
      let writer = AssetWriter(path: scratch.file(name))
      for input in inputs { try writer.add(input) }
      #expect(code { try writer.startWriting() } == expected, "\(name)")
    }
    #expect(try scratch.names() == [])
  }

  @Test func `An asset writer stores pooled buffers and reuses the memory`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    let input = try AssetWriterInput(
      formatDescription: FormatDescription(mediaSubType: .pixels(.gray), width: 64, height: 48),
      frameRate: Self.rate, video: .ffv1)
    let adaptor = try AssetWriterInputPixelBufferAdaptor(assetWriterInput: input)
    let writer = AssetWriter(path: path)
    try writer.add(input)
    try writer.startWriting()
    try writer.startSession(atSourceTime: .zero)
    var addresses: Set<Int> = []
    for number in 0..<20 {
      var image = try adaptor.pixelBufferPool.makePixelBuffer()
      image.withUnsafeMutableBytes(ofPlane: 0) { bytes in
        addresses.insert(Int(bitPattern: bytes.baseAddress))
        bytes.initializeMemory(as: UInt8.self, repeating: UInt8(number * 10))
      }
      try adaptor.append(image, withPresentationTime: MediaTime(Int64(number), over: 100))
    }
    // At most two buffers are in use, since the test holds one while it requests the next.
    #expect(addresses.count <= 2)
    let error = #expect(throws: MediaError.self) {
      try adaptor.append(PixelBuffer(format: .nv12), withPresentationTime: MediaTime(1, over: 1))
    }
    #expect(error?.code == .invalidData)
    try writer.finishWriting()
    var reader = try FrameReader(try Asset(path: path))
    for number in 0..<20 {
      let image = try reader.pixelBuffer(ofFrame: number, as: .gray)
      #expect(image.bytes.allSatisfy { $0 == UInt8(number * 10) })
    }
    #expect(throws: MediaError.self) {
      try AssetWriterInputPixelBufferAdaptor(
        assetWriterInput: AssetWriterInput(formatDescription: Self.size, frameRate: Self.rate))
    }
    for (format, width) in [(PixelFormat(rawValue: "no_such"), 64), (.gray, 0), (.gray, 1 << 20)] {
      #expect(throws: MediaError.self) {
        try PixelBufferPool(format: format, width: width, height: 48)
      }
    }
  }
}
