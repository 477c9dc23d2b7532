// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording
@testable import OvercrankSimulatedCameras

/// Paused takes, compared with a simple model.
struct PauseTests {
  /// A script for a take with pauses, and the expected result.
  private struct Model {
    var steps: [ScriptedDriver.Step] = []
    var stored: [Int] = []
    /// The times of the stored frames in the file, in microseconds.
    var times: [Int64] = []
    var lost = 0
    var corrupt = 0
    /// The time of each pause in the file, and the duration of the pause, in microseconds.
    var pauses: [(time: Int64, duration: Int64?)] = []
    /// The time in the file at which each part after a pause starts, and its capture time.
    var parts: [(time: Int64, captured: Int64)] = []
  }

  /// Frames with losses and damage.
  ///
  /// Some are separated by pauses.
  private func model(
    _ camera: ScriptedCamera, _ output: @escaping @Sendable () -> MovieFileOutput?,
    _ random: inout SeededGenerator
  ) throws -> Model {
    var model = Model()
    var (isPaused, isSkipping) = (false, false)
    var (shift, pauseStart): (Int64, Int64) = (0, 0)
    var (number, last) = (0, 0)
    let images = try camera.images(0..<150)
    while number < 150 {
      let observation = try camera.observation(Int64(number))
      let damage = number > 0 && Int.random(in: 0..<20, using: &random) == 0
      if isPaused {
        if !isSkipping {
          model.lost += number - last - 1
          pauseStart = observation.microseconds
          model.pauses.append((pauseStart - camera.base - shift, nil))
        }
        isSkipping = true
      } else {
        if isSkipping {
          shift += observation.microseconds - pauseStart
          model.pauses[model.pauses.count - 1].duration = observation.microseconds - pauseStart
        } else if number > 0 {
          model.lost += number - last - 1
        }
        let time = observation.microseconds - camera.base - shift
        if isSkipping || number == 0 { model.parts.append((time, observation.microseconds)) }
        isSkipping = false
        if damage {
          model.corrupt += 1
        } else {
          model.stored.append(number)
          model.times.append(time)
        }
      }
      last = number
      model.steps.append(.frameWithBytes(observation, damage ? [1, 2, 3] : images[number]))
      if Int.random(in: 0..<12, using: &random) == 0 {
        isPaused.toggle()
        let pauses = isPaused
        model.steps.append(.action { pauses ? output()?.pause() : output()?.resume() })
      }
      number += Int.random(in: 0..<15, using: &random) == 0 ? 3 : 1
    }
    return model
  }

  @Test(arguments: 0..<20)
  func `Pausing a take leaves no gap and counts no lost frame`(
    seed: Int
  ) throws {
    let scratch = try Scratch()
    var random = SeededGenerator(seed: UInt64(seed))
    var camera = try ScriptedCamera(100)
    camera.hasAudio = true
    let shared = Shared()
    let model = try model(camera, { shared.output }, &random)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.audioCodec = .pcm
    let session = try camera.session(ScriptedDriver(model.steps))
    let output = try MovieFileOutput(session: session, settings: settings)
    shared.output = output
    let report = try output.record()

    #expect(report.ledger.isBalanced)
    #expect(report.ledger.stored == Int64(model.stored.count))
    #expect(report.ledger.corrupt == Int64(model.corrupt))
    #expect(report.ledger.lostDevice == Int64(model.lost))
    #expect(
      report.ledger.expected == Int64(model.stored.count + model.corrupt + model.lost))
    #expect(report.pauses.map(\.time.wholeNanoseconds) == model.pauses.map { $0.time * 1_000 })
    #expect(
      report.pauses.map(\.duration?.wholeNanoseconds)
        == model.pauses.map { $0.duration.map { $0 * 1_000 } })
    let asset = try Asset(path: scratch.file("take.mov"))
    #expect(try paintedNumbers(asset) == model.stored.map { $0 })
    let lines = asset.frameTimingRows()
    #expect(lines.map(\.time.wholeNanoseconds) == model.times.map { $0 * 1_000 })
    #expect(lines.map(\.sequence) == model.stored.map { Int64($0) })
    #expect(lines.compactMap(\.lostBefore).reduce(0, +) <= Int64(model.lost + model.corrupt))
    // Between two pauses, the audio in the file matches the frames.
    var reader = try AudioReader(asset)
    let source = SyntheticAudio()
    let rate = SyntheticAudio.sampleRate
    for (position, part) in model.parts.enumerated() {
      let start = TakeAudioTrack.sample(atMicroseconds: part.time, rate: rate)
      let end =
        position + 1 < model.parts.count
        ? TakeAudioTrack.sample(atMicroseconds: model.parts[position + 1].time, rate: rate)
        : asset.audioTrack?.sampleCount ?? 0
      let samples = try reader.samples(from: start, count: Int(end - start))[0]
      let from = TakeAudioTrack.sample(atMicroseconds: part.captured - camera.base, rate: rate)
      let expected = source.samples(from: from, count: Int(end - start))
      let worst = zip(samples, expected).map { abs($0 - $1) }.max() ?? 0
      #expect(worst < 1e-4, "part \(position)")
    }
  }

  @Test func `The count of expected frames excludes a pause`() throws {
    var account = FrameAccount(frameRate: FrameRate(100), trustsCounter: false) { 0 }
    let camera = try ScriptedCamera(100)
    func observe(_ number: Int64, _ outcome: FrameOutcome) throws {
      var frame = try camera.observation(number)
      frame.arrival = 0
      frame.outcome = outcome
      account.record(frame)
    }
    for number in [0, 1, 2, 4] as [Int64] { try observe(number, .taken) }
    try observe(6, .paused)
    for number in [50, 51, 53] as [Int64] { try observe(number, .taken) }
    account.close(FrameAccount.End())
    #expect(
      account.ledger.isBalanced && account.ledger.stored == 7 && account.ledger.expected == 10)
    #expect(account.gaps.map(\.afterIndex) == [2, 3, 5])
    #expect(account.gaps.map(\.time.wholeNanoseconds) == [30_000_000, 50_000_000, 80_000_000])
    #expect(account.measuredFrameRate == (Rational(100)))
    // Frames captured during a pause before the first stored frame add nothing to the number of
    // expected frames.
    account = FrameAccount(frameRate: FrameRate(100), trustsCounter: false) { 0 }
    try observe(0, .paused)
    for number in [70, 71] as [Int64] { try observe(number, .taken) }
    account.close(FrameAccount.End())
    #expect(account.ledger.expected == 2 && account.ledger.stored == 2)
  }

  @Test func `An H.264 take resumes at the next key frame`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let images = try camera.streamFrames(100, in: scratch)
    let keys = images.indices.filter { position in
      images[position].withUnsafeBytes { AnnexB.holdsKeyFrame($0) }
    }
    let next = try #require(keys.first { $0 > 40 })
    let shared = Shared()
    var steps: [ScriptedDriver.Step] = []
    for (number, image) in images.enumerated() {
      if number == 30 { steps.append(.action { shared.output?.pause() }) }
      if number == 40 { steps.append(.action { shared.output?.resume() }) }
      // Only the damaged frame itself is lost.
      let isDamaged = number == 10
      steps.append(
        .frameWithBytes(
          try camera.observation(Int64(number)),
          isDamaged ? [UInt8](repeating: 0x55, count: 400) : image))
    }
    let session = try camera.streamSession(ScriptedDriver(steps))
    let output = try MovieFileOutput(
      session: session, settings: RecordingSettings(path: scratch.file("take.mov")))
    shared.output = output
    let report = try output.record()
    #expect(report.ledger.isBalanced && report.isPlayable)
    #expect(report.ledger.corrupt == 1)
    #expect(report.ledger.lostStart == Int64(next - 40))
    #expect(report.ledger.stored == Int64(100 - 10 - (next - 40) - 1))
    #expect(report.video?.codec == .h264 && report.video?.level != nil)
    #expect(try holdsBox("moof", scratch.file("take.mov")) == false)
  }

  @Test func `Every event stream of a recording receives all events`() async throws {
    let scratch = try Scratch()
    let device = try CaptureDevice.named("synthetic:128x96@240?pace=max")
    let session = try CaptureSession(device: device, format: device.fastestFormat())
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.limit = CaptureLimit(frameCount: 60)
    let output = try MovieFileOutput(session: session, settings: settings)
    let (first, second) = (output.events, output.events)
    #expect(!output.isRecording)
    // The pause is requested before the take begins, so no frame is stored until it ends.
    output.pause()
    #expect(output.isRecordingPaused)
    try output.startRecording()
    var names: [String] = []
    for await event in first {
      switch event {
      case .didStart(let path):
        #expect(path == settings.path && output.isRecording)
        names.append("start")
      case .didPause:
        names.append("pause")
        output.resume()
      case .didResume: names.append("resume")
      case .didFillQueue, .didDrainQueue: break
      case .didFinish(let report):
        names.append("finish")
        #expect(report.ledger.stored == 60 && report.ledger.expected == 60 && report.isPlayable)
        #expect(report.pauses.isEmpty)
      case .didFail(_, let error): Issue.record(error)
      }
      if names.last == "finish" { break }
    }
    #expect(names == ["start", "pause", "resume", "finish"])
    // The file exists after the first recording, so a second recording fails and reports the error.
    var failed = false
    try output.startRecording()
    for await event in second {
      guard case .didFail(_, let error) = event else { continue }
      failed = error.code == .outputExists
      break
    }
    #expect(failed)
  }
}

/// The movie output, shared with the capture thread of a script.
private final class Shared: Sendable {
  private let box = Mutex<MovieFileOutput?>(nil)
  var output: MovieFileOutput? {
    get { box.withLock { $0 } }
    set { box.withLock { $0 = newValue } }
  }
}
