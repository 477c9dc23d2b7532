// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// Takes of cameras that wait until their frames are consumed.
///
/// The tests run one after the other, since each uses the whole machine.
@Suite(.serialized) struct PacedTakeTests {
  private func session(_ name: String, _ mode: String = "/mjpg") throws -> CaptureSession {
    let camera = try CaptureDevice.named(name)
    let format =
      try camera.kind == .file
      ? camera.fastestFormat() : camera.format(matching: ModeRequest(parsing: mode))
    return try CaptureSession(device: camera, format: format)
  }

  private func record(
    _ name: String, _ mode: String = "/mjpg", codec: VideoOutputSettings, to path: String,
    seconds: Int64? = nil
  ) throws -> RecordingReport {
    var settings = RecordingSettings(path: path)
    settings.video = codec
    settings.limit = CaptureLimit(duration: seconds.map { MediaTime(seconds: $0) })
    let session = try session(name, mode)
    return try MovieFileOutput(session: session, settings: settings).record()
  }

  @Test(arguments: [VideoOutputSettings.passthrough, .h264])
  func `Recording from a file camera keeps the frame durations`(
    codec: VideoOutputSettings
  ) throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(30, count: 20, timescale: 30_000)
    recipe.times = recipe.times.map { $0 > 7_000 ? $0 + 20_000 : $0 }
    recipe.end += 65_000
    let path = scratch.file("clip.\(recipe.container)")
    try recipe.write(to: path)
    let report = try record(
      "file:\(path)?pace=max", codec: codec, to: scratch.file("take.mov"))
    #expect(report.ledger.stored == 20)
    let clip = try #require(Asset(path: path).videoTrack).frames
    let take = try #require(Asset(path: scratch.file("take.mov")).videoTrack).frames
    // The last time is the end of the movie.
    for frame in 0...20 as ClosedRange<Int64> {
      let (due, time) = try (
        clip.time(ofFrame: frame).seconds, take.time(ofFrame: frame).seconds
      )
      #expect(abs((time - due).doubleValue) <= 2e-6, "frame \(frame)")
    }
  }

  @Test(arguments: ["", "?pace=max"], [44_100, 48_000])
  func `A file that plays as a camera has its own audio`(pace: String, rate: Int) throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(240, count: 240)
    var audio = MovieRecipe.Audio()
    audio.codec = "pcm_s16le"
    audio.sampleRate = rate
    // The audio ends before the last frame.
    audio.sampleCount = 3 * rate / 4
    @Sendable func value(_ channel: Int, _ sample: Int) -> Float {
      Float((sample * (channel == 0 ? 7 : 11)) % 20_000 - 10_000) / 32_768
    }
    audio.wave = value
    recipe.audio = audio
    let clip = scratch.file("clip.mov")
    try recipe.write(to: clip)
    let take = scratch.file("take.mov")
    let report = try record("file:\(clip)\(pace)", codec: .passthrough, to: take)
    #expect(report.ledger.stored == 240)
    let recorded = try #require(report.audio)
    #expect(recorded.sampleRate == rate && recorded.channelCount == 2)
    #expect(recorded.sampleCount == Int64(rate) && recorded.startOffset == .zero)
    #expect(recorded.gaps.map(\.cause) == [.ended])
    #expect(recorded.gaps.first?.sampleCount == Int64(rate / 4))
    // The audio is copied exactly, because it has the clock of the frames.
    var settings = RecordingSettings(path: scratch.file("exact.mov"))
    settings.audioCodec = .pcm
    let session = try session("file:\(clip)\(pace)")
    _ = try MovieFileOutput(session: session, settings: settings).record()
    var reader = try AudioReader(Asset(path: settings.path))
    for (channel, samples) in try reader.samples(from: 0, count: rate).enumerated() {
      let wrong = samples.indices.first { index in
        samples[index] != (index < audio.sampleCount ? value(channel, index) : 0)
      }
      #expect(wrong == nil, "channel \(channel)")
    }
  }

  @Test func `An MP4 take leaves out file audio that AAC does not support`() throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(240, count: 24)
    var audio = MovieRecipe.Audio()
    (audio.codec, audio.sampleRate, audio.sampleCount) = ("pcm_s16le", 192_000, 19_200)
    recipe.audio = audio
    let clip = scratch.file("clip.mov")
    try recipe.write(to: clip)
    for (name, codec) in [("take.mp4", nil), ("take.mov", AudioCodec.pcm)] {
      let settings = RecordingSettings(path: scratch.file(name))
      let output = try MovieFileOutput(session: session("file:\(clip)"), settings: settings)
      let refusal = try output.preflight().audioRefusal
      #expect((refusal?.code == .codecRefused) == (codec == nil))
      let report = try output.record()
      #expect(report.ledger.stored == 24 && report.audio?.codec == codec)
    }
  }

  @Test(arguments: ["pcm_s16le", "aac"])
  func `File audio is the same wherever reading begins`(codec: String) throws {
    let scratch = try Scratch()
    let rate = 8_000
    var recipe = MovieRecipe.constant(10, count: 600)
    var audio = MovieRecipe.Audio()
    (audio.codec, audio.sampleRate, audio.sampleCount) = (codec, rate, 60 * rate)
    audio.wave = { channel, sample in
      Float((sample * (channel == 0 ? 7 : 11)) % 20_000 - 10_000) / 32_768
    }
    recipe.audio = audio
    let clip = scratch.file("clip.mov")
    try recipe.write(to: clip)
    let file = try #require(FileAudio(path: clip, corrections: nil))
    let count = 3_000
    func samples(_ reader: any KnownAudioReader, _ first: Int) -> [Float] {
      var samples = [Float](repeating: 0, count: 2 * count)
      samples.withUnsafeMutableBufferPointer { buffer in
        if let start = buffer.baseAddress { reader.read(count, from: Int64(first), into: start) }
      }
      return samples
    }
    var whole: [[Float]] = []
    let ordered = file.makeReader()
    for first in stride(from: 0, to: 60 * rate, by: count) { whole.append(samples(ordered, first)) }
    let jumping = file.makeReader()
    for part in [100, 20, 150, 149, 0, 60, 159] {
      let isEqual = zip(samples(jumping, part * count), whole[part]).allSatisfy {
        abs($0 - $1) <= 1e-6
      }
      #expect(isEqual, "part \(part)")
    }
    #expect(whole[100].contains { $0 != 0 })
  }

  @Test func `A file with an extreme sample rate plays without audio`() throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(240, count: 24)
    var audio = MovieRecipe.Audio()
    (audio.codec, audio.sampleRate, audio.sampleCount) = ("pcm_s16le", 50, 5)
    recipe.audio = audio
    try recipe.write(to: scratch.file("clip.mov"))
    let report = try record(
      "file:\(scratch.file("clip.mov"))", codec: .passthrough, to: scratch.file("take.mov"))
    #expect(report.ledger.stored == 24 && report.audio == nil)
  }

  @Test(arguments: [VideoOutputSettings.raw, .ffv1, .h264])
  func `Recordings in high definition name their matrix`(
    codec: VideoOutputSettings
  ) async throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    var settings = RecordingSettings(path: path)
    settings.video = codec
    settings.limit = CaptureLimit(frameCount: 3)
    let session = try session("synthetic:1280x720@60?pace=max", "/yuyv")
    _ = try await MovieFileOutput(session: session, settings: settings).record()
    let spaces = "stream=color_space"
    #expect(try await FFmpeg.probe(path, spaces, stream: "v:0") == ["smpte170m"])
    // A file that is used as a camera keeps its own matrix.
    guard codec != .raw else { return }
    let high = scratch.file("high.mkv")
    try await FFmpeg.makeClip(high, frames: 3, ["-s", "1280x720", "-c:v", "mpeg2video"])
    let again = scratch.file("again.mov")
    _ = try record("file:\(high)?pace=max", codec: codec, to: again)
    #expect(try await FFmpeg.probe(again, spaces, stream: "v:0") == ["bt709"])
  }

  @Test(arguments: ["libx264", "mpeg2video"], [10, 4])
  func `A file camera plays joined recordings in turn`(codec: String, later: Int) async throws {
    let scratch = try Scratch()
    var joined: [UInt8] = []
    for start in [10, later] {
      let path = scratch.file("\(start).ts")
      try await FFmpeg.makeClip(
        path, frames: 12,
        ["-s", "64x48", "-c:v", codec, "-g", "6", "-bf", "0", "-output_ts_offset", "\(start)"])
      joined += try bytes(of: path)
    }
    let path = try scratch.write(joined, as: "joined.ts")
    let report = try record(
      "file:\(path)?pace=max", codec: codec == "libx264" ? .passthrough : .ffv1,
      to: scratch.file("take.mov"))
    #expect(report.ledger.stored == 24 && report.ledger.dropped == 0)
    let clip = try #require(Asset(path: path).videoTrack).frames
    let take = try #require(Asset(path: scratch.file("take.mov")).videoTrack).frames
    for frame in 0..<24 as Range<Int64> {
      let (due, time) = try (
        clip.time(ofFrame: frame).seconds, take.time(ofFrame: frame).seconds
      )
      #expect(abs((time - due).doubleValue) <= 2e-6, "frame \(frame)")
    }
  }

  @Test(arguments: [
    ("/yuyv", VideoOutputSettings.codec(.h264)), ("/yuyv", .ffv1), ("/mjpg", .passthrough),
  ])
  func `A camera faster than real time waits for a slow encoder`(
    mode: String, codec: VideoOutputSettings
  ) throws {
    let scratch = try Scratch()
    let path = scratch.file("take.mov")
    let report = try record(
      "synthetic:640x480@240?pace=max", mode, codec: codec, to: path, seconds: 1)
    #expect(report.ledger.stored == 240 && report.ledger.expected == 240)
    #expect(report.problem == nil && report.stoppedBy == .duration)
    #expect(abs(try #require(report.measuredFrameRate).doubleValue - 240) < 0.001)
    let asset = try Asset(path: path)
    #expect(try paintedNumbers(asset) == Array(0..<240))
    #expect(asset.audioTrack?.sampleCount == 48_000)
    // A file camera also waits, if its frames are decoded faster than they are encoded.
    let again = scratch.file("again.mov")
    let second = try record(
      "file:\(path)?pace=max", codec: .ffv1, to: again)
    #expect(second.ledger.stored == 240 && second.ledger.expected == 240)
    #expect(second.stoppedBy == .duration && second.ledger.dropped == 0)
    #expect(try paintedNumbers(Asset(path: again)) == Array(0..<240))
  }

  @Test
  func `A take from a fast camera can be stopped on a stalled disk`()
    throws
  {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.video = .passthrough
    let session = try session("synthetic:640x480@240?pace=max")
    let output = try MovieFileOutput(session: session, settings: settings)
    var isHeld = false
    let report = try output.record { _ in
      guard !isHeld else { return }
      isHeld = true
      // This callback blocks the thread that stores the frames until the session stops, so no frame
      // is stored.
      output.stop()
      while session.isRunning { usleep(100) }
    }
    #expect(isHeld && report.stoppedBy == .stopped)
    #expect(report.ledger.dropped == 0 && report.ledger.isBalanced && report.isPlayable)
    #expect(report.ledger.stored == report.ledger.expected)
  }

  @Test func `At maximum pace each click triggers a clip around its frame`() throws {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: scratch.file("clip.mov"))
    settings.limit = CaptureLimit(duration: MediaTime(microseconds: 3_500_000))
    let session = try session("synthetic:320x240@240?pace=max")
    let output = try MovieFileOutput(session: session, settings: settings)
    var triggers = TriggerSettings(
      preDuration: MediaTime(microseconds: 250_000), postDuration: MediaTime(microseconds: 250_000))
    triggers.repeats = true
    triggers.audio = AudioTrigger(
      threshold: -6, quietPeriod: MediaTime(microseconds: 500_000))
    triggers.clipPath = { scratch.file("clip\($0).mov") }
    let report = try output.record(on: triggers)
    #expect(report.ledger.dropped == 0 && report.ledger.isBalanced && report.problem == nil)
    #expect(report.ledger.expected == 840)
    #expect(report.clips.count == 4)
    for (second, clip) in report.clips.enumerated() {
      let numbers = try paintedNumbers(Asset(path: clip.path)).compactMap(\.self)
      let first = max(0, second * 240 - 60)
      // The click exceeds the threshold one sample after its time, so the trigger is at the next
      // frame.
      #expect(numbers.count == numbers.last.map { $0 - (numbers.first ?? 0) + 1 })
      #expect(abs((numbers.first ?? -9) - first) <= 1, "\(numbers.first ?? -1) \(first)")
      #expect(clip.ledger.dropped == 0 && clip.ledger.stored == Int64(numbers.count))
    }
  }

  @Test func `The ring is readable while the capture waits for a trigger`() throws {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: scratch.file("clip.mov"))
    settings.limit = CaptureLimit(frameCount: 1_200)
    let session = try session("synthetic:128x96@240?pace=max", "/mjpg")
    let output = try MovieFileOutput(session: session, settings: settings)
    let triggers = TriggerSettings(
      preDuration: MediaTime(1, over: 2), postDuration: MediaTime(1, over: 10))
    let wholeCount = Atomic<Int>(0)
    let damagedCount = Atomic<Int>(0)
    let lastNumber = Atomic<Int>(0)
    var reader: BlockingThread?
    let report = try output.record(on: triggers) { event in
      guard case .waiting = event, let ring = output.ring else { return }
      #expect(ring.delivery.layout == .compressed(.mjpeg) && ring.delivery.width == 128)
      reader = try? BlockingThread {
        var check = FrameIntegrityCheck(byteCount: nil, isJPEG: true)
        var number = 0
        while true {
          let reading = ring.frames.withFrame(number) { frame in
            frame.observation.sequence == UInt32(number) && check.holds(frame.bytes)
          }
          switch reading {
          case .frame(let isWhole):
            if isWhole {
              wholeCount.add(1, ordering: .relaxed)
            } else {
              damagedCount.add(1, ordering: .relaxed)
            }
            number += 1
          case .released(let oldest): number = oldest
          case .notArrived: sched_yield()
          case .ended: return lastNumber.store(number, ordering: .relaxed)
          }
        }
      }
      // The ring keeps its frames until this closure returns.
      while reader != nil, wholeCount.load(ordering: .relaxed) == 0 { sched_yield() }
    }
    try #require(reader).join()
    #expect(report.ledger.expected == 1_200 && report.ledger.evicted == 1_200)
    #expect(wholeCount.load(ordering: .relaxed) > 0)
    #expect(damagedCount.load(ordering: .relaxed) == 0)
    #expect(lastNumber.load(ordering: .relaxed) == 1_200)
    #expect(output.ring == nil)
  }

  @Test func `A small ring buffer keeps the latest frames at maximum pace`()
    throws
  {
    let scratch = try Scratch()
    var settings = RecordingSettings(path: scratch.file("clip.mov"))
    settings.limit = CaptureLimit(duration: MediaTime(seconds: 4))
    let session = try session("synthetic:640x480@240?pace=max", "/yuyv")
    let output = try MovieFileOutput(session: session, settings: settings)
    var triggers = TriggerSettings(
      preDuration: MediaTime(seconds: 3), postDuration: MediaTime(microseconds: 100_000))
    // The memory limit allows only a few frames, so the ring buffer has only a few blocks.
    triggers.memoryLimit = 4 << 20
    let report = try output.record(on: triggers)
    #expect(report.ledger.expected == 960 && report.ledger.evicted == 960)
    #expect(report.warnings.contains { $0.contains("held only the last") })
  }
}
