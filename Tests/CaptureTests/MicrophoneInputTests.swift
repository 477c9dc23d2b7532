// SPDX-License-Identifier: Apache-2.0
import ALSA
import Dispatch
import FormatDiscovery
import Glibc
import MediaTiming
import Synchronization
import TestSupport
import Testing

@testable import Capture

/// A microphone that a test plays, in a session with an output.
private struct Listening {
  let card: FakeSoundCard
  let input: MicrophoneInput
  let output = AudioDataOutput()
  let session: CaptureSession
  /// One for each period that the card may go on.
  let credits = DispatchSemaphore(value: 0)

  static let rate = 48_000
  static let period: Int64 = 480

  // As many periods may pass before a block is taken; each block that is taken allows one more.
  init(
    periods: Int = 100, format: AudioFormat.SampleFormat = .s16, seed: UInt64 = 1,
    _ change: (inout FakeSoundCard.Description) -> Void = { _ in }
  ) throws {
    var description = FakeSoundCard.Description()
    description.wave = { sample, channel in Self.value(sample, channel) }
    let credits = credits
    for _ in 0..<periods { credits.signal() }
    description.pace = { _ in credits.wait() }
    description.layouts = [.s16, .s32, .float]
    change(&description)
    card = FakeSoundCard(description, seed: seed)
    input = try SoundSystem.$calls.withValue(card) {
      let device = try CaptureDevice.named("hw:0")
      return try MicrophoneInput(
        device: device,
        format: AudioFormat(format, sampleRate: Self.rate, channelCount: 2))
    }
    session = CaptureSession(input)
    try session.addOutput(output)
  }

  /// A sample that tells its number and its channel.
  static func value(_ sample: Int64, _ channel: Int) -> Double {
    Double((sample &* 2 + Int64(channel)) % 32_749) / 32_768
  }

  /// Takes blocks until the card has no more.
  func takeAll(_ body: (AudioSampleBuffer) throws -> Void) async throws {
    let lost: Int64 = card.description.faults.reduce(0) { sum, fault in
      switch fault.kind {
      case .overrun(let lost), .suspend(let lost): sum + lost
      case .unplug, .error: sum
      }
    }
    var missing = card.description.length - lost
    for await block in output.blocks {
      credits.signal()
      try body(block)
      missing -= Int64(block.sampleCount)
      if missing <= 0 { break }
    }
  }
}

struct MicrophoneInputTests {
  @Test(arguments: [AudioFormat.SampleFormat.s16, .s32, .float])
  func `Every sample arrives in its place, at its time`(format: AudioFormat.SampleFormat)
    async throws
  {
    let listening = try Listening(format: format) { $0.length = 480 * 400 }
    try await listening.session.startRunning()
    var next: Int64 = 0
    try await listening.takeAll { block in
      #expect(block.position == next && block.gapBefore == nil)
      let time = listening.card.nanoseconds(ofSample: next, rate: Listening.rate)
      let stamp = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      #expect((stamp - time).magnitude <= 1)
      #expect(try block.duration == MediaTime(value: Int64(block.sampleCount), timescale: 48_000))
      for channel in 0..<2 {
        let expected = (0..<block.sampleCount).map {
          Float(Listening.value(next + Int64($0), channel))
        }
        #expect(block.samples(ofChannel: channel) == expected)
      }
      #expect(block.samples(ofChannel: 2).isEmpty)
      next += Int64(block.sampleCount)
    }
    await listening.session.stopRunning()
    #expect(next == 480 * 400 && listening.input.sampleCount == next)
    #expect(listening.input.overrunCount == 0 && listening.input.lostSampleCount == 0)
    let ledger = listening.output.ledger
    #expect(ledger.addsUp && ledger.offered == 400 && ledger.delivered == 400)
  }

  @Test func `An overrun and a sleep are gaps of so many samples, and the rest is in its place`()
    async throws
  {
    let listening = try Listening {
      $0.length = 480 * 800
      $0.faults = [
        .init(at: 480 * 100, .overrun(lost: 7_777)), .init(at: 480 * 300, .suspend(lost: 100_000)),
      ]
    }
    try await listening.session.startRunning()
    var next: Int64 = 0
    var gaps: [AudioGap] = []
    try await listening.takeAll { block in
      if let gap = block.gapBefore {
        gaps.append(gap)
        #expect(gap.position == next && block.position == next + gap.sampleCount)
        next += gap.sampleCount
      }
      #expect(block.position == next)
      // The card goes on counting meanwhile, so that places are right if the gaps are.
      #expect(block.samples(ofChannel: 0).first == Float(Listening.value(next, 0)))
      let time = listening.card.nanoseconds(ofSample: next, rate: Listening.rate)
      let stamp = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      #expect((stamp - time).magnitude <= 1)
      next += Int64(block.sampleCount)
    }
    await listening.session.stopRunning()
    #expect(gaps.map(\.cause) == [.overrun, .suspended])
    #expect(gaps.map(\.sampleCount) == [7_777, 100_000])
    #expect(listening.input.overrunCount == 1 && listening.input.suspensionCount == 1)
    #expect(listening.input.lostSampleCount == 107_777)
    #expect(listening.output.ledger.addsUp)
  }

  @Test(arguments: 0..<10)
  func `With jitter, drift and overruns times go on, near to the truth`(seed: Int) async throws {
    var random = SeededGenerator(seed: UInt64(seed) &+ 31)
    let drift = Int64.random(in: -200...200, using: &random)
    let faults = (0..<4).map { _ in
      FakeSoundCard.Fault(
        at: 480 * Int64.random(in: 300..<900, using: &random),
        .overrun(lost: Int64.random(in: 1_000..<50_000, using: &random)))
    }
    let listening = try Listening(seed: UInt64(seed)) {
      $0.length = 480 * 1_300
      $0.driftPPM = drift
      $0.jitter = 2_000_000
      $0.faults = faults
      $0.wave = { sample, _ in Double(sample % 30_000) / 32_768 }
    }
    try await listening.session.startRunning()
    var last: (end: Int64, time: Int64)?
    var gapCount = 0
    try await listening.takeAll { block in
      let time = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      if let last {
        #expect(time > last.time)
        let gap = block.gapBefore?.sampleCount ?? 0
        #expect(block.position == last.end + gap)
        gapCount += block.gapBefore == nil ? 0 : 1
      }
      last = (block.position + Int64(block.sampleCount), time)
      // What the first sample's value says of its number, nearest to the place it was given.
      let told = Int64((Double(try #require(block.samples(ofChannel: 0).first)) * 32_768).rounded())
      var number = block.position / 30_000 * 30_000 + told
      if number - block.position > 15_000 { number -= 30_000 }
      if block.position - number > 15_000 { number += 30_000 }
      // A gap is counted by stamps that are up to 2 ms late, four of them at most.
      #expect((number - block.position).magnitude < 4 * 100 + 4)
      let truth = listening.card.nanoseconds(ofSample: number, rate: Listening.rate)
      #expect((time - truth).magnitude < 4_000_000)
    }
    await listening.session.stopRunning()
    #expect(gapCount > 0 && listening.input.overrunCount == 4)
    #expect(listening.output.ledger.addsUp)
  }

  @Test func `What nobody takes is dropped, counted and named; levels go on`() async throws {
    let (reached, told) = AsyncStream<Int64>.makeStream()
    let mayGoOn = DispatchSemaphore(value: 0)
    let listening = try Listening(periods: 10_000) {
      $0.length = 480 * 310
      $0.wave = { _, channel in channel == 0 ? 0.5 : -0.25 }
      let pace = $0.pace
      $0.pace = { sample in
        // Comes back for the next when the last block is where it goes.
        if sample == 480 * 300 {
          told.yield(sample)
          mayGoOn.wait()
        }
        pace(sample)
      }
    }
    try await listening.session.startRunning()
    for await _ in reached { break }
    var expected = DataOutputLedger(offered: 300, waiting: 200, dropped: [.outOfBuffers: 100])
    #expect(listening.output.ledger == expected && expected.addsUp)
    let levels = listening.output.levels
    #expect(levels.map { ($0.peakDBFS * 100).rounded() / 100 } == [-6.02, -12.04])
    #expect(levels.map { ($0.averageDBFS * 100).rounded() / 100 } == [-6.02, -12.04])
    var iterator = listening.output.blocks.makeAsyncIterator()
    for number in 0..<200 as Range<Int64> {
      let block = try #require(await iterator.next())
      #expect(block.position == 480 * number && block.gapBefore == nil)
    }
    mayGoOn.signal()
    let block = try #require(await iterator.next())
    #expect(block.position == 480 * 300)
    #expect(
      block.gapBefore
        == AudioGap(cause: .outOfBuffers, position: 480 * 200, sampleCount: 480 * 100))
    while let block = await iterator.next() {
      #expect(block.gapBefore == nil)
      if block.position == 480 * 309 { break }
    }
    await listening.session.stopRunning()
    expected = DataOutputLedger(offered: 310, delivered: 210, dropped: [.outOfBuffers: 100])
    #expect(listening.output.ledger == expected && expected.addsUp)
    // The stream is off, and silent.
    #expect(listening.output.levels.allSatisfy { $0.peakDBFS == -.infinity })
  }

  @Test func `A microphone that is pulled out is an interruption, one that fails an error`()
    async throws
  {
    func events(_ kind: FakeSoundCard.Fault.Kind) async throws -> [SessionEvent] {
      let listening = try Listening { $0.faults = [.init(at: 480 * 20, kind)] }
      let events = listening.session.events
      try await listening.session.startRunning()
      var seen: [SessionEvent] = []
      for await event in events {
        if event != .didStartRunning { seen.append(event) }
        if event == .didStopRunning { break }
      }
      #expect(listening.output.ledger.offered == 20 && listening.output.ledger.addsUp)
      #expect(!listening.session.isRunning)
      return seen
    }
    #expect(try await events(.unplug) == [.wasInterrupted(.deviceGone), .didStopRunning])
    let failed = try await events(.error(-EIO))
    guard case .runtimeError(let error) = failed.first else {
      Issue.record("\(failed)")
      return
    }
    #expect(error.code == .deviceFailed && error.message.contains("hw:0,0"))
  }

  @Test func `A microphone in use, forbidden or gone says so`() throws {
    let answers: [(CInt, CaptureError.Code)] = [
      (-EBUSY, .deviceBusy), (-EACCES, .noPermission), (-ENODEV, .deviceLost),
    ]
    for (answer, code) in answers {
      let error = #expect(throws: CaptureError.self) {
        _ = try Listening { $0.openResult = answer }
      }
      #expect(error?.code == code)
    }
    let refused = #expect(throws: CaptureError.self) { _ = try Listening { $0.rates = [44_100] } }
    #expect(refused?.code == .modeRefused)
    let camera = try CaptureDevice.named("synthetic")
    let wrong = #expect(throws: CaptureError.self) { try MicrophoneInput(device: camera) }
    #expect(wrong?.code == .modeRefused)
  }

  @Test func `The card is closed with its session, also after it has run`() async throws {
    var listening: Listening? = try Listening { $0.length = 480 * 50 }
    let card = try #require(listening?.card)
    #expect(card.isOpen)
    try await listening?.session.startRunning()
    var blocks = listening?.output.blocks.makeAsyncIterator()
    #expect(await blocks?.next() != nil)
    await listening?.session.stopRunning()
    (listening, blocks) = (nil, nil)
    #expect(!card.isOpen)
  }

  @Test func `Connections are formed by kind of media, and carry nothing when switched off`()
    async throws
  {
    let listening = try Listening { $0.length = 480 * 50 }
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let pictures = VideoDataOutput()
    try listening.session.addInput(
      try DeviceInput(device: camera, format: try camera.fastestFormat()))
    try listening.session.addOutput(pictures)
    let connections = listening.session.connections
    #expect(connections.map(\.mediaType) == [.audio, .video])
    #expect(connections[0].input === listening.input && connections[0].output === listening.output)
    #expect(connections[1].output === pictures)
    #expect(
      listening.session.inputs.map { $0.ports.map(\.mediaType) } == [[.audio], [.video, .audio]])
    connections[0].isEnabled = false
    try await listening.session.startRunning()
    var iterator = pictures.frames.makeAsyncIterator()
    for _ in 0..<10 { #expect(await iterator.next() != nil) }
    await listening.session.stopRunning()
    #expect(listening.output.ledger == DataOutputLedger() && pictures.ledger.delivered >= 10)
  }
}

/// One after the other: capture threads come before all others where the system lets them.
@Suite(.serialized)
struct MicrophoneSessionTests {
  @Test(arguments: 0..<5)
  func `Whatever is done in whatever order, the books of every output add up`(seed: Int)
    async throws
  {
    var random = SeededGenerator(seed: UInt64(seed) &+ 500)
    let faults = (0..<20).map { _ in
      FakeSoundCard.Fault(
        at: 480 * Int64.random(in: 0..<400, using: &random), .overrun(lost: 4_800))
    }
    let listening = try Listening {
      $0.faults = faults
      // Much faster than a real card, without taking the whole core.
      $0.pace = { _ in usleep(3_000) }
    }
    let (session, microphone) = (listening.session, listening.input)
    var outputs = [listening.output]
    for _ in 0..<60 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0: if !session.inputs.isEmpty { try await session.startRunning() }
      case 1: await session.stopRunning()
      case 2 where outputs.count < 4:
        let output = AudioDataOutput()
        try session.addOutput(output)
        outputs.append(output)
      case 3:
        if let output = outputs.popLast() {
          session.removeOutput(output)
          #expect(output.ledger.addsUp)
        }
      case 4:
        if let connection = session.connections.randomElement(using: &random) {
          connection.isEnabled.toggle()
        }
      case 5: session.beginConfiguration()
      case 6: try await session.commitConfiguration()
      case 7:
        if session.canAddInput(microphone) {
          try session.addInput(microphone)
        } else {
          session.removeInput(microphone)
        }
      default:
        // Only where a block is sure to come.
        guard let connection = session.connections.last, connection.isEnabled, session.isRunning,
          let output = connection.output as? AudioDataOutput
        else { continue }
        var iterator = output.blocks.makeAsyncIterator()
        let block = try #require(await iterator.next())
        #expect(block.sampleCount > 0)
      }
    }
    for _ in 0..<60 { try await session.commitConfiguration() }
    await session.stopRunning()
    for output in outputs {
      session.removeOutput(output)
      #expect(output.ledger.addsUp)
    }
  }
}

struct SyntheticSoundOutputTests {
  @Test func `The synthetic camera's sound goes with its pictures`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    let (pictures, sound) = (VideoDataOutput(), AudioDataOutput())
    try session.addOutput(pictures)
    try session.addOutput(sound)
    try await session.startRunning()
    var frames = pictures.frames.makeAsyncIterator()
    let frame = try #require(await frames.next())
    let rate = try FrameRate(240, 1)
    let epoch =
      try frame.presentationTimeStamp.nanoseconds(.halfAwayFromZero) / 1_000
      - SyntheticDriver.microseconds(ofFrame: Int64(frame.attachments.sequence), at: rate)
    var blocks = sound.blocks.makeAsyncIterator()
    var next: Int64?
    for _ in 0..<20 {
      let block = try #require(await blocks.next())
      // On a machine that is busy with other things more may wait than there is room for.
      #expect(block.position == (next ?? 0) + (block.gapBefore?.sampleCount ?? 0))
      #expect(block.gapBefore.map { $0.cause == .outOfBuffers } ?? true)
      next = block.position + Int64(block.sampleCount)
      let time = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      let (number, rest) = ((time - epoch * 1_000) * 48).quotientAndRemainder(dividingBy: 1_000_000)
      #expect(rest == 0)
      let expected = SyntheticSound().samples(from: number, count: block.sampleCount)
      #expect(block.samples(ofChannel: 0) == expected)
    }
    #expect(sound.levels.count == 1 && sound.levels[0].peakDBFS > -21)
    await session.stopRunning()
    #expect(sound.ledger.addsUp)
    // Again, and from the beginning.
    try await session.startRunning()
    // What still waited of before comes first; what was lost at the beginning is a gap from 0.
    while let block = await blocks.next(),
      block.position != block.gapBefore?.sampleCount ?? 0
    {}
    await session.stopRunning()
  }

  @Test func `Who listens while the camera runs is heard, and leaves`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    try await session.startRunning()
    for _ in 0..<3 {
      let sound = AudioDataOutput()
      try session.addOutput(sound)
      var blocks = sound.blocks.makeAsyncIterator()
      for _ in 0..<3 { #expect(await blocks.next() != nil) }
      session.removeOutput(sound)
      let offered = sound.ledger.offered
      while await blocks.next() != nil {}
      #expect(sound.ledger.offered == offered && sound.ledger.addsUp)
    }
    await session.stopRunning()
  }
}
