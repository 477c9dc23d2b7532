// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// Takes of scripted cameras with scripted microphones.
struct MicrophoneTakeTests {
  /// Records the ``MicrophoneScene``, whose audio begins `offset` nanoseconds after the first
  /// frame.
  private func take(
    _ steps: [ScriptedMicrophone.Step], beginsAt offset: Int64, rate: Int = 48_000,
    channels: Int = 2, to path: String,
    isAudioExpected: Bool = true,
    configure: (inout RecordingSettings) -> Void = { $0.audioCodec = .pcm },
    prepare: (CaptureSession) throws -> Void = { _ in }
  ) throws -> RecordingReport {
    let session = try MicrophoneScene.session(
      steps, beginsAt: offset, rate: rate, channels: channels)
    var settings = RecordingSettings(path: path)
    configure(&settings)
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    try prepare(session)
    return try AlignedMicrophone.$timeout.withValue(isAudioExpected ? 3_600 : 1) {
      try output.record()
    }
  }

  /// The maximum deviation of a movie's audio from the tones, in a range of samples.
  private func error(_ asset: Asset, _ range: Range<Int>) throws -> Double {
    var reader = try AudioReader(asset)
    let channels = try reader.samples(from: Int64(range.lowerBound), count: range.count)
    var worst = 0.0
    for (channel, samples) in channels.enumerated() {
      for (offset, sample) in samples.enumerated() {
        let expected = MicrophoneScene.tone(Double(range.lowerBound + offset) / 48_000, channel)
        worst = max(worst, abs(Double(sample) - expected))
      }
    }
    return worst
  }

  /// The delay of the tone in each channel of the movie, in seconds.
  private func lateness(_ asset: Asset, _ range: Range<Int>) throws -> [Double] {
    var reader = try AudioReader(asset)
    let channels = try reader.samples(from: Int64(range.lowerBound), count: range.count)
    return channels.enumerated().map { channel, samples in
      let rotation = 2 * Double.pi * (channel == 0 ? 300 : 410)
      var (inPhase, across) = (0.0, 0.0)
      for (offset, sample) in samples.enumerated() {
        let phase = rotation * Double(range.lowerBound + offset) / 48_000
        inPhase += Double(sample) * sin(phase)
        across += Double(sample) * cos(phase)
      }
      return -atan2(across, inPhase) / rotation
    }
  }

  private func isSilent(_ asset: Asset, _ range: Range<Int>) throws -> Bool {
    var reader = try AudioReader(asset)
    return try reader.samples(from: Int64(range.lowerBound), count: range.count)
      .allSatisfy { $0.allSatisfy { abs($0) < 0.000_1 } }
  }

  @Test(arguments: [AudioCodec.pcm, .aac])
  func `Microphone audio is aligned with the video`(codec: AudioCodec)
    throws
  {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try take([.samples(200_000)], beginsAt: -777_777_777, to: path) {
      $0.audioCodec = codec
    }
    #expect(report.problem == nil && report.isPlayable && report.ledger.stored == 150)
    let audio = try #require(report.audio)
    #expect(audio.codec == codec && audio.sampleRate == 48_000)
    #expect(audio.channelCount == 2 && audio.sampleCount == 72_000)
    #expect(audio.startOffset?.wholeNanoseconds == 0 && audio.gaps == [])
    // The start of the audio is cut to whole samples, which leaves an error of half a sample.
    #expect(try #require(audio.maxSyncError?.wholeNanoseconds) <= 10_417)
    let asset = try Asset(path: path)
    #expect(asset.audioTrack?.sampleCount == 72_000 && asset.audioTrack?.channelCount == 2)
    #expect(asset.duration == (MediaTime(3, over: 2)))
    // A 410 Hz tone changes by 0.027 from sample to sample. AAC is less exact, which does not
    // affect the timing.
    let error = try error(asset, 2_000..<70_000)
    #expect(error < (codec == .pcm ? 0.014 : 0.2), "\(error)")
    #expect(try lateness(asset, 2_000..<70_000).allSatisfy { abs($0) < 0.000_015 })
  }

  @Test func `Silence is recorded before audio that starts late`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try take([.samples(200_000)], beginsAt: 500_000_000, channels: 1, to: path)
    #expect(report.audio?.startOffset?.wholeNanoseconds == 500_000_000)
    #expect(report.audio?.gaps == [] && report.audio?.sampleCount == 72_000)
    let asset = try Asset(path: path)
    #expect(try isSilent(asset, 0..<23_900))
    #expect(try error(asset, 24_100..<71_900) < 0.002)
  }

  @Test func `Lost audio is recorded as silence and reported as gaps`()
    throws
  {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try take(
      [
        .samples(19_200), .lost(4_800, .overrun), .samples(9_600), .lost(2_400, .suspended),
        .samples(12_000), .unplugged,
      ], beginsAt: 0, to: path)
    #expect(report.problem == nil && report.ledger.stored == 150)
    let gaps = try #require(report.audio?.gaps)
    #expect(gaps.map(\.cause) == [.overrun, .suspended, .ended])
    #expect(gaps.map(\.sampleCount) == [4_800, 2_400, 24_000])
    #expect(gaps.map(\.time.wholeNanoseconds) == [400_000_000, 700_000_000, 1_000_000_000])
    let asset = try Asset(path: path)
    #expect(asset.audioTrack?.sampleCount == 72_000)
    for (audible, silence) in [
      (200..<19_100, 19_300..<23_900), (24_100..<33_500, 33_700..<35_900),
      (36_100..<47_900, 48_100..<72_000),
    ] {
      #expect(try error(asset, audible) < 0.002)
      #expect(try isSilent(asset, silence))
    }
  }

  @Test func `An audio gap is reported only up to the end of the take`() throws {
    let scratch = try Scratch()
    let report = try take(
      [.samples(48_000), .lost(96_000, .overrun), .samples(9_600)], beginsAt: 0,
      to: scratch.file("take.mov"))
    let gaps = try #require(report.audio?.gaps)
    #expect(gaps.map(\.cause) == [.overrun] && gaps.map(\.sampleCount) == [24_000])
    #expect(gaps.map(\.time.wholeNanoseconds) == [1_000_000_000])
  }

  @Test func `Audio that starts after the end of the take counts as lost`() throws {
    let scratch = try Scratch()
    let report = try take(
      [.samples(9_600)], beginsAt: 1_500_000_000, to: scratch.file("take.mov"),
      isAudioExpected: false)
    let audio = try #require(report.audio)
    #expect(audio.startOffset == nil && audio.sampleCount == 72_000)
    #expect(audio.gaps == [RecordedAudioGap(time: .zero, sampleCount: 72_000, cause: .late)])
  }

  @Test(arguments: [false, true])
  func `Audio captured after the last frame is not recorded`(isBurst: Bool)
    throws
  {
    let scratch = try Scratch()
    var camera = try ScriptedCamera(100)
    camera.base = MicrophoneScene.zero
    let input = try #require(
      camera.session(ScriptedDriver(try camera.frames(0..<150))).inputs.first as? DeviceInput)
    // The take lasts a second and a half, and then ten more seconds of audio may come.
    let format = AudioFormat(.float, sampleRate: 48_000, channelCount: 1)
    let feed = try AudioTap(format, seconds: 12)
    var position: Int64 = 0
    func deliver(blocks: Int) {
      for _ in 0..<blocks {
        let samples = (0..<480).map {
          Float(MicrophoneScene.tone(Double(position + $0) / 48_000, 0))
        }
        samples.withUnsafeBytes {
          feed.take(
            AudioBlock(
              position: position, sampleCount: 480,
              nanoseconds: MicrophoneScene.zero * 1_000 + position * 62_500 / 3, gap: nil,
              bytes: $0))
        }
        position += 480
      }
    }
    deliver(blocks: 150)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    (settings.audioCodec, settings.isBurst) = (.pcm, isBurst)
    let control = CaptureControl()
    let configuration = TakeConfiguration(
      input: input, settings: settings,
      plan: try VideoPipelinePlan(.automatic, for: input.delivery),
      control: control, audio: TakeAudio(feed: feed, device: "card", known: nil),
      beginsWithStream: true)
    let queue = try configuration.makeQueue()
    let sink = TakeSink(
      limit: CaptureLimit(), queue: queue, control: control, endsCapture: true)
    var pump = CaptureLoop(
      pool: input.pool, frameRate: camera.rate,
      integrityCheck: FrameIntegrityCheck(byteCount: nil, isJPEG: true), control: control,
      sinkList: SinkList([sink]))
    try pump.start()
    _ = pump.run()
    // The session continues while a slow disk stores the queued frames.
    let files = try Take(configuration).write(
      from: Reconnection.Stream(sink: sink, queue: queue, frameRate: camera.rate),
      into: settings.makeFile()
    ) { event in
      if case .file(.progress) = event { deliver(blocks: 20) }
    }.report.files
    let report = try #require(files.first)
    #expect(position > 48_000 * 14, "\(position)")
    #expect(report.problem == nil && report.ledger.stored == 150)
    #expect(report.audio?.gaps == [] && report.audio?.sampleCount == 72_000)
    #expect(try error(Asset(path: settings.path), 200..<71_900) < 0.002)
  }

  @Test func `A microphone without any samples gives a silent track`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try take([.unplugged], beginsAt: 0, to: path)
    #expect(report.problem == nil && report.isPlayable)
    let audio = try #require(report.audio)
    #expect(audio.startOffset == nil && audio.maxSyncError == nil)
    #expect(audio.gaps == [RecordedAudioGap(time: .zero, sampleCount: 72_000, cause: .ended)])
    #expect(try isSilent(Asset(path: path), 0..<72_000))
  }

  @Test func `Audio at 192 kHz cannot be AAC and is recorded as PCM`() throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let error = #expect(throws: MediaError.self) {
      try take([.samples(400_000)], beginsAt: 0, rate: 192_000, to: path) { $0.audioCodec = .aac }
    }
    #expect(error?.code == .codecRefused && error?.recoverySuggestion.contains("PCM") == true)
    #expect(try scratch.names() == [])
    let report = try take([.samples(400_000)], beginsAt: 0, rate: 192_000, to: path) { _ in }
    #expect(report.problem == nil && report.audio?.codec == .pcm)
    #expect(report.audio?.sampleCount == 288_000)
    #expect(try Asset(path: path).audioTrack?.sampleCount == 288_000)
  }

  @Test func `A take with audio disabled has no audio track`() throws {
    let scratch = try Scratch()
    for number in 0..<2 {
      let path = scratch.file("\(number).mov")
      let report = try take([.samples(200_000)], beginsAt: 0, to: path) {
        $0.recordsAudio = number != 0
      } prepare: { session in
        for connection in session.connections where connection.mediaType == .audio {
          connection.isEnabled = number != 1
        }
      }
      #expect(report.audio == nil)
      #expect(try Asset(path: path).audioTrack == nil)
    }
  }
}

/// The synthetic camera, whose click and flash are at the same time.
struct ClickAndFlashTests {
  @Test(arguments: [
    "240?pace=max", "240?drop=5%&seed=11&pace=max", "60000/1001?pace=max",
    "99?drop=5%&seed=3&pace=max",
  ])
  func `A click and a flash are recorded at the same time`(rate: String) throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let camera = try CaptureDevice.named("synthetic:128x96@\(rate)")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    var settings = RecordingSettings(path: path)
    settings.limit = CaptureLimit(duration: MediaTime(seconds: 3))
    let report = try MovieFileOutput(session: session, settings: settings).record()
    #expect(report.problem == nil && report.audio?.codec == .aac)
    let asset = try Asset(path: path)
    let flashes = try flashes(asset)
    let clicks = try clicks(asset)
    let frame = 1 / report.negotiatedFrameRate.doubleValue
    // A flash may be among the frames that are dropped on purpose.
    let expected = Int(report.duration.wholeNanoseconds / 1_000_000_000)
    #expect(clicks.count >= expected && flashes.count >= expected - 1, "\(clicks) \(flashes)")
    var apart: [Double] = []
    for flash in flashes {
      let nearest = try #require(clicks.min { abs($0 - flash) < abs($1 - flash) })
      apart.append(flash - nearest)
      #expect(abs(flash - nearest) < frame + 1_024 / 48_000, "\(clicks) \(flashes)")
    }
    print("audio: click and flash at \(rate): \(apart.map { Int($0 * 1e6) }) us apart")
  }

  /// The times at which the margin next to the painted number is bright, in seconds.
  private func flashes(_ asset: Asset) throws -> [Double] {
    var reader = try FrameReader(asset)
    var converter = FrameConverter(to: .gray8, isFullRange: true)
    let lines = asset.frameTimingRows()
    let row = FrameNumberPattern.Layout(width: 128).height + 1
    return try lines.indices.compactMap { index in
      let image = try converter.convert(try reader.mediaFrame(at: index))
      let luma = try #require(image.planeData(0))
      guard luma[row * image.bytesPerRow(0) + 120] > 128 else { return nil }
      return Double(lines[index].time.wholeNanoseconds) / 1e9
    }
  }

  /// The times at which the audio is louder than the tone, in seconds.
  private func clicks(_ asset: Asset) throws -> [Double] {
    var reader = try AudioReader(asset)
    let count = Int(asset.audioTrack?.sampleCount ?? 0)
    let samples = try reader.samples(from: 0, count: count)[0]
    var found: [Double] = []
    for offset in samples.indices where abs(samples[offset]) > 0.4 {
      let time = Double(offset) / 48_000
      if found.last.map({ time - $0 > 0.5 }) ?? true { found.append(time) }
    }
    return found
  }
}
