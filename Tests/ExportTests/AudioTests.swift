// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// The audio of an export.
///
/// It is exactly as long as the video, and each click is at its exact time.
struct AudioTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private static let clicks = [12_000, 36_000, 60_000, 90_000, 130_000, 180_000]

  /// A movie of four seconds at 100 fps with audio clicks.
  private func asset(
    _ codec: String = "aac", rate: Int = 48_000, container: String = "mov", isWave: Bool = false,
    clicks: [Int] = clicks
  ) throws -> Asset {
    var recipe = MovieRecipe.constant(100, count: 400)
    recipe.container = container
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = codec
    recipe.audio?.sampleRate = rate
    recipe.audio?.sampleCount = 4 * rate
    recipe.audio?.clicks = clicks
    if isWave {
      recipe.audio?.wave = { channel, sample in
        Float((sample &* 7_919 + channel &* 13) % 32_768) / 32_768
      }
    }
    return try .made(recipe, in: directory)
  }

  private func settings(
    _ algorithm: AudioTimePitchAlgorithm = .varispeed, _ name: String = "out.mov",
    isCopy: Bool = true
  ) throws -> ExportSettings {
    var settings = ExportSettings(
      path: directory.file(name), mode: isCopy ? .passthrough() : .constant(FrameRate(30)))
    settings.audioTimePitchAlgorithm = algorithm
    settings.overwrites = true
    return settings
  }

  private func centroid(_ samples: [Float], in range: Range<Int>) -> Double? {
    var (weight, sum) = (0.0, 0.0)
    for index in range.clamped(to: samples.indices) {
      let energy = Double(samples[index]) * Double(samples[index])
      weight += energy
      sum += energy * Double(index)
    }
    return weight > 1e-4 ? sum / weight : nil
  }

  @Test(arguments: [("aac", "mov"), ("aac", "mp4"), ("pcm_s16le", "mov")], [true, false])
  func `Exported audio has the composition length and click times`(
    kind: (codec: String, container: String), isCopy: Bool
  ) async throws {
    let asset = try asset(kind.codec, container: kind.container)
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 8))])
    let settings = try settings(.varispeed, "out.\(kind.container)", isCopy: isCopy)
    let session = ExportSession(composition, of: asset)
    let planned = try session.plan(settings)
    let report = try await session.export(settings)
    let audio = try #require(report.audio)
    #expect(audio.algorithm == "varispeed")
    #expect(audio.samples == 528_000)
    #expect(audio.lengthErrorSamples == 0)
    #expect(planned.audio == audio)
    #expect(report.avEndDifference?.wholeNanoseconds == 0)
    let result = try Asset(path: report.path)
    let track = try #require(result.audioTrack)
    #expect(track.codec.rawValue == kind.codec)
    #expect(track.startSample == 0 && track.sampleCount == 528_000)
    #expect(track.channelCount == 2)
    let planes = try result.audio()
    for click in Self.clicks {
      let middle = Double(click) + Double(MovieRecipe.Audio.clickLength - 1) / 2
      let expected =
        click < 48_000
        ? middle : click < 96_000 ? 48_000 + (middle - 48_000) * 8 : middle + 7 * 48_000
      let window = Int(expected) - 400..<Int(expected) + 400
      let found = try #require(centroid(planes[0], in: window), "the click of \(click)")
      #expect(abs(found - expected) < 5, "the click of \(click): \(found), not \(expected)")
    }
    guard FFmpeg.isInstalled else { return }
    // FFmpeg's decoder returns the same samples, and for AAC also the rest of the last block.
    let theirs = try await FFmpeg.audio(of: report.path, channelCount: 2)
    let excess = theirs[0].count - 528_000
    #expect(kind.codec == "aac" ? (0..<1_024).contains(excess) : excess == 0)
    #expect(zip(planes[0], theirs[0]).allSatisfy { $0 == $1 })
    #expect(
      try await FFmpeg.probe(report.path, "stream=duration", stream: "a") == ["11.000000"])
  }

  @Test(arguments: [
    (AudioTimePitchAlgorithm.varispeed, 0.1), (.timeDomain, 1.0), (.spectral, 5.0),
  ])
  func `Clicks in and after a speed ramp move to their new times`(
    algorithm: AudioTimePitchAlgorithm, milliseconds: Double
  ) throws {
    // Each ramp contains one of the eight clicks, and the slow range between the ramps contains
    // one.
    let clicks = (Self.clicks + [43_200, 82_000]).sorted()
    let asset = try asset("pcm_s16le", clicks: clicks)
    // From normal speed to 1/8, a slow range, and back to normal speed. A freeze frame comes
    // before.
    var composition = try Composition.ramped(
      asset.mediaSource(),
      points: [
        Composition.SpeedPoint(.milliseconds(800), .normal),
        Composition.SpeedPoint(.milliseconds(1_100), speed(1, 8)),
        Composition.SpeedPoint(.milliseconds(1_500), speed(1, 8)),
        Composition.SpeedPoint(.milliseconds(1_800), .normal),
      ], easing: .easeInOut)
    try composition.freezeFrame(at: .milliseconds(300), for: .milliseconds(333))
    let report = try ExportSession(composition, of: asset).export(settings(algorithm))
    let planes = try Asset(path: report.path).audio()
    for click in clicks {
      let middle = Double(click) + Double(MovieRecipe.Audio.clickLength - 1) / 2
      func position(ofSample sample: Double) throws -> Int {
        let time = Rational(Int128(sample * 2), over: 96_000)
        let times = try composition.targetTimes(
          ofSource: time, in: asset.mediaSource(), timescale: 48_000, rounding: .halfAwayFromZero)
        return Int(try #require(times.first).value)
      }
      let expected = try position(ofSample: middle)
      let window = expected - 2_400..<expected + 2_400
      let found = try #require(centroid(planes[0], in: window), "the click of \(click)")
      // Time-domain and spectral stretching move a click by some milliseconds of source time. In
      // slow ranges that is a longer output time.
      let stretch =
        Double(try position(ofSample: middle + 240) - position(ofSample: middle - 240)) / 480
      let scale = algorithm == .varispeed ? 1 : max(1, stretch)
      let error = (found - Double(expected)) / 48
      #expect(
        abs(error) <= milliseconds * scale,
        "the click of \(click), at a stretch of \(stretch): \(error) ms off")
    }
  }

  @Test(arguments: [44_100, 48_000, 96_000], [997, 1_013])
  func `The audio length is rounded to the nearest sample`(rate: Int, milliseconds: Int64) throws {
    let asset = try asset(rate: rate)
    let composition = try asset.retimed([
      (range(100, 100 + milliseconds), speed(3, 7)), (range(2_000, 2_500), speed(13, 10)),
    ])
    let report = try ExportSession(composition, of: asset).export(settings())
    let exact = composition.duration.seconds * Rational(Int64(rate))
    let expected = try Int64(exact.rounded(.halfAwayFromZero))
    #expect(report.audio?.samples == expected)
    #expect(try Asset(path: report.path).audioTrack?.sampleCount == expected)
  }

  @Test(arguments: AudioTimePitchAlgorithm.allCases)
  func `Audio at normal speed is unchanged by every pitch algorithm`(
    algorithm: AudioTimePitchAlgorithm
  ) throws {
    let asset = try asset("pcm_s16le", isWave: true)
    let source = try asset.audio()
    let composition = try asset.retimed([(range(1_000, 1_500), speed(1, 4))])
    var settings = try settings(algorithm)
    if algorithm == .lowQuality {
      // The low-quality algorithm does not support 1/4 speed.
      let error = #expect(throws: MediaError.self) {
        try ExportSession(composition, of: asset).export(settings)
      }
      #expect(error?.code == .audioRefused)
      settings.otherAudioSpeeds = .snapped
    }
    let report = try ExportSession(composition, of: asset).export(settings)
    #expect((report.audio?.snapped.count ?? 0) == (algorithm == .lowQuality ? 1 : 0))
    let result = try Asset(path: report.path).audio()
    #expect(result[0].count == 264_000)
    for channel in 0..<2 {
      #expect(result[channel][..<48_000].elementsEqual(source[channel][..<48_000]))
      #expect(result[channel][144_000...].elementsEqual(source[channel][72_000...]))
      let retimed = result[channel][48_000..<144_000]
      #expect(retimed.allSatisfy { $0 == 0 } == (algorithm == .mute))
    }
  }

  @Test func `Audio packets are copied if the speed is normal throughout`() throws {
    for codec in ["aac", "pcm_s16le"] {
      let asset = try asset(codec)
      for isCopy in [true, false] {
        let report = try ExportSession(Composition(asset), of: asset)
          .export(settings(isCopy: isCopy))
        #expect(report.audio?.algorithm == "copy")
        #expect(report.audio?.samples == 192_000)
        let result = try Asset(path: report.path)
        #expect(try packets(report.path) == packets(asset.path))
        #expect(result.audioTrack?.sampleCount == 192_000)
        #expect(try result.audio() == asset.audio())
      }
    }
  }

  private func packets(_ path: String) throws -> [[UInt8]] {
    var demuxer = try Demuxer(opening: path)
    var packets: [[UInt8]] = []
    while let packet = try demuxer.nextPacket() {
      if demuxer.tracks[packet.trackIndex].kind == .audio {
        packets.append(packet.withBytes { [UInt8]($0) })
      }
    }
    return packets
  }

  @Test func `Exporting ranges out of order keeps exact audio samples`() throws {
    let asset = try asset("pcm_s16le", isWave: true)
    var composition = Composition()
    for part in [try range(2_000, 2_010), try range(500, 1_000)] {
      try composition.insertTimeRange(part, of: asset.mediaSource(), at: composition.duration)
    }
    let report = try ExportSession(composition, of: asset).export(settings())
    let source = try asset.audio()
    let result = try Asset(path: report.path).audio()
    #expect(result[1] == Array(source[1][96_000..<96_480] + source[1][24_000..<48_000]))
  }

  @Test func `PCM audio is encoded as AAC for MP4`() throws {
    let asset = try asset("pcm_s16le")
    for composition in [
      try Composition(asset), try asset.retimed([(range(0, 1_000), speed(1, 2))]),
    ] {
      let report = try ExportSession(composition, of: asset)
        .export(settings(.varispeed, "out.mp4"))
      let track = try #require(try Asset(path: report.path).audioTrack)
      #expect(track.codec == .aac)
      #expect(MediaTime.milliseconds(track.sampleCount * 1_000 / 48_000) == composition.duration)
    }
  }

  @Test(arguments: ["pcm_s24le", "pcm_f32le", "pcm_s16be"])
  func `Uncompressed audio keeps its sample format`(codec: String) throws {
    let asset = try asset(codec)
    let composition = try asset.retimed([(range(0, 1_000), speed(1, 2))])
    let report = try ExportSession(composition, of: asset).export(settings())
    let result = try Asset(path: report.path)
    #expect(result.audioTrack?.codec.rawValue == codec)
    #expect(try result.audio()[0][96_000...].elementsEqual(asset.audio()[0][48_000...]))
  }

  @Test func `A speed too slow for audio is refused unless audio is muted`() throws {
    let asset = try asset()
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 64))])
    let error = try refusal(composition, of: asset, settings(.spectral))
    #expect(error.code == .audioRefused)
    #expect(error.recoverySuggestion.contains("mute"))
    let report = try ExportSession(composition, of: asset).export(settings(.mute))
    #expect(report.audio?.samples == 3_216_000)
  }

  @Test func `Audio that ends before the video is followed by silence`() throws {
    var recipe = MovieRecipe.constant(100, count: 200)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = "pcm_s16le"
    recipe.audio?.sampleCount = 48_000
    recipe.audio?.clicks = [100]
    let asset = try Asset.made(recipe, in: directory)
    let composition = try asset.retimed([(range(500, 1_500), speed(1, 2))])
    let report = try ExportSession(composition, of: asset).export(settings())
    #expect(report.audio?.samples == 144_000)
    #expect(report.avEndDifference?.wholeNanoseconds == 0)
    let copied = try ExportSession(Composition(asset), of: asset).export(settings())
    #expect(copied.avEndDifference?.wholeNanoseconds == -1_000_000_000)
  }
}
