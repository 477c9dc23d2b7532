// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// The description of a test movie; ``write(to:)`` makes it with the project's encoder and writer.
package struct MovieRecipe: Sendable {
  /// The audio of a movie, with clicks at given samples.
  package struct Audio: Sendable {
    package var codec = "aac"
    package var sampleRate = 48_000
    package var channelCount = 2
    package var sampleCount = 0
    /// The start samples of clicks, each ``clickLength`` samples long.
    package var clicks: [Int] = []
    /// The value of a sample besides the clicks; nil for clicks only.
    package var wave: (@Sendable (_ channel: Int, _ sample: Int) -> Float)?

    package static let clickLength = 8

    package init() {}

    /// The audio samples of a range, one plane per channel.
    package func planes(_ range: Range<Int>) -> [[Float]] {
      (0..<channelCount).map { channel in
        if let wave { return range.map { wave(channel, $0) } }
        var plane = [Float](repeating: 0, count: range.count)
        for click in clicks {
          for sample in (click..<click + Self.clickLength).clamped(to: range) {
            plane[sample - range.lowerBound] = channel == 0 ? 0.75 : -0.75
          }
        }
        return plane
      }
    }
  }

  /// The FFmpeg name of the video encoder.
  package var codec = "mjpeg"
  package var width = PaintedBlocks.width
  package var height = PaintedBlocks.height
  package var pixelFormat = LibAVPixelFormat.yuvj420p
  package var timescale: Int32 = 1_000_000
  /// The time of each frame in ticks, in presentation order.
  package var times: [Int64] = []
  /// The number painted into each frame; empty for the index of the frame.
  package var numbers: [Int] = []
  /// The end of the last frame, in ticks.
  package var end: Int64 = 0
  package var keyFrameInterval: Int?
  package var hasReorderedFrames = false
  package var options: [String: String] = [:]
  package var container = "mov"
  package var metadata: [String: String] = [:]
  package var displayMatrix: [Int32] = []
  package var language: String?
  package var fragmentMicroseconds: Int64?
  package var hasIndexInFront = false
  /// Whether the area below the painted number is filled with noise, so that the encoder can skip
  /// no macroblock.
  package var hasNoise = false
  package var audio: Audio?

  package init() {}

  /// Makes frames at a constant rate, each at the tick nearest to its exact time.
  package static func constant(
    _ rate: Int64, count: Int64, timescale: Int32 = 1_000_000
  ) -> MovieRecipe {
    var recipe = MovieRecipe()
    recipe.timescale = timescale
    func tick(_ frame: Int64) -> Int64 { (frame * Int64(timescale) * 2 + rate) / (2 * rate) }
    recipe.times = (0..<count).map(tick)
    recipe.end = tick(count)
    return recipe
  }

  /// Returns a recipe for the same frames in H.264, with B-frames if `reordered` is true.
  package func h264(gop: Int, reordered: Bool, options: [String: String] = [:]) -> MovieRecipe {
    var recipe = self
    recipe.codec = "libx264"
    recipe.pixelFormat = .yuv420p
    recipe.keyFrameInterval = gop
    recipe.hasReorderedFrames = reordered
    // Scene cuts and adaptive B-frames are disabled, so that the test controls the GOP structure.
    recipe.options = [
      "preset": "ultrafast", "crf": "12", "sc_threshold": "0",
      "x264-params": reordered ? "bframes=2:b-adapt=0:b-pyramid=none:ref=2" : "bframes=0",
    ]
    .merging(options) { $1 }
    return recipe
  }
}

extension MovieRecipe {
  /// Writes the movie and opens it.
  package func asset(at path: String) throws -> Asset {
    try write(to: path)
    return try Asset(path: path)
  }

  /// Writes the movie and returns the bytes of its video packets in decoding order.
  @discardableResult
  package func write(to path: String) throws -> [[UInt8]] {
    let container = MovieContainer(rawValue: container) ?? .mov
    var settings = MovieWriter.Settings(container: container, movieTimescale: timescale)
    settings.metadata = metadata
    var audioPackets = try audio.map { try $0.encoded() }
    if hasIndexInFront {
      settings.frontIndexCount = times.count + (audioPackets?.packets.count ?? 0)
    }
    var encoder = times.isEmpty ? nil : try makeEncoder()
    let file = try MovieFile(creating: path, overwrites: true)
    var writer = try MovieWriter(path: file.writtenPath, settings: settings)
    if let parameters = encoder?.parameters {
      _ = try writer.addTrack(
        parameters, timescale: timescale, metadata: language.map { ["language": $0] } ?? [:],
        displayMatrix: displayMatrix)
    }
    let audioTrack = try audioPackets.map {
      try writer.addTrack($0.parameters, timescale: Int32($0.sampleRate))
    }
    try writer.begin()
    func writeAudio(upTo seconds: Double) throws {
      guard let audioTrack, let rate = audioPackets?.sampleRate else { return }
      while let next = audioPackets?.packets.first, Double(next.pts) / Double(rate) <= seconds {
        try writer.write(
          next.packet, track: audioTrack, pts: next.pts, dts: next.pts, duration: next.duration)
        audioPackets?.packets.removeFirst()
      }
    }
    var written: [[UInt8]] = []
    if var images = encoder.take() {
      let packets = try encode(&images)
      for (number, packet) in packets.enumerated() {
        try writeAudio(upTo: Double(packet.dts ?? 0) / Double(timescale))
        let pts = packet.pts ?? 0
        let position = times.firstIndex(of: pts) ?? 0
        let next = position + 1 < times.count ? times[position + 1] : end
        // Durations are stored in decoding order, so the last packet gets the duration of the last
        // frame.
        let isLast = number == packets.count - 1
        try writer.write(
          packet, track: 0, pts: pts, dts: packet.dts ?? pts,
          duration: isLast ? end - (times.last ?? 0) : next - pts)
        written.append(packet.withBytes { [UInt8]($0) })
      }
    }
    try writeAudio(upTo: .infinity)
    try writer.finish()
    if let fragmentMicroseconds {
      try divide(path, container, ticks: fragmentMicroseconds * Int64(timescale) / 1_000_000)
    }
    return written
  }

  /// Replaces a movie by one with the same packets in fragments.
  private func divide(_ path: String, _ container: MovieContainer, ticks: Int64) throws {
    var demuxer = try Demuxer(opening: path)
    var packets: [Packet] = []
    while let packet = try demuxer.nextPacket() { packets.append(packet) }
    var index = MovieIndex(container, timescale: timescale)
    index.tags = metadata
    let tracks = try demuxer.tracks.compactMap { track -> FragmentedMovieWriter.Track? in
      guard let first = packets.first(where: { $0.trackIndex == track.index }) else { return nil }
      var format = TrackMuxer.Format(
        track.parameters, in: container, timescale: Int32(clamping: track.timeBase.denominator))
      format.displayMatrix = track.displayMatrix
      let dts = first.dts ?? 0
      return try FragmentedMovieWriter.Track(
        format, first: FirstSample(ticks: dts, presentationTicks: first.pts ?? dts), packet: first,
        path: path)
    }
    let divided = path + ".fragments"
    let file = try MovieFile(creating: divided, overwrites: true)
    var layout = FragmentedMovieWriter.Layout(fragmentTicks: ticks, samplesPerFragment: 80)
    layout.isReordered = hasReorderedFrames
    var movie = try FragmentedMovieWriter(
      file.file, index: index, tracks: tracks, layout: layout, reservesSpace: false)
    for packet in packets {
      let dts = packet.dts ?? 0
      let result = packet.withBytes { bytes in
        Result {
          try movie.append(
            bytes, track: packet.trackIndex, ticks: dts,
            presentationOffset: (packet.pts ?? dts) - dts,
            duration: packet.duration, isKeyFrame: packet.isKeyFrame)
        }
      }
      try result.get()
    }
    try movie.finish()
    guard rename(divided, path) == 0 else {
      throw CallFailure.creating(path, errno)
    }
  }

  private func makeEncoder() throws -> Encoder {
    var settings = Encoder.VideoSettings(
      codec: codec, width: width, height: height, pixelFormat: pixelFormat, timescale: timescale)
    settings.isFullRange = pixelFormat.isFullRange
    settings.keyFrameInterval = keyFrameInterval
    settings.hasReorderedFrames = hasReorderedFrames
    settings.options = options
    settings.threadCount = 1
    if codec == "mjpeg" { settings.quantizer = 2 }
    return try Encoder(video: settings)
  }

  private func addNoise(to frame: MediaFrame, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    guard let luma = frame.planeData(0) else { return }
    for y in PaintedBlocks.height..<height {
      for x in 0..<width {
        luma[y * frame.bytesPerRow(0) + x] = .random(in: 16...235, using: &random)
      }
    }
  }

  private func encode(_ encoder: inout Encoder) throws -> [Packet] {
    var packets: [Packet] = []
    for (index, time) in times.enumerated() {
      let number = numbers.isEmpty ? index : numbers[index]
      let frame = try PaintedBlocks.frame(
        number: number, width: width, height: height, format: pixelFormat)
      if hasNoise { addNoise(to: frame, seed: UInt64(number)) }
      try encoder.send(frame, at: time)
      while let packet = try encoder.nextPacket() { packets.append(packet) }
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return packets
  }
}

extension MovieRecipe.Audio {
  fileprivate struct Encoded {
    let parameters: CodecParameters
    let sampleRate: Int
    var packets: [(packet: Packet, pts: Int64, duration: Int64)]
  }

  fileprivate func encoded() throws -> Encoded {
    var encoder = try Encoder(
      audioCodec: codec, sampleRate: sampleRate, channelCount: channelCount)
    let block = encoder.frameSize > 0 ? encoder.frameSize : 1_024
    var packets: [Packet] = []
    for start in stride(from: 0, to: sampleCount, by: block) {
      try encoder.send(
        audio: planes(start..<min(sampleCount, start + block)), at: Int64(start))
      while let packet = try encoder.nextPacket() { packets.append(packet) }
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    let times = packets.map { $0.pts ?? 0 }
    return Encoded(
      parameters: encoder.parameters, sampleRate: sampleRate,
      packets: zip(packets, times).enumerated().map { position, item in
        let next = position + 1 < times.count ? times[position + 1] : Int64(sampleCount)
        return (item.0, item.1, max(1, next - item.1))
      })
  }
}
