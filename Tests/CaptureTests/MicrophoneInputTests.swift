// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture

struct MicrophoneInputTests {
  @Test(arguments: [AudioFormat.SampleFormat.s16, .s32, .float])
  func `Audio sample positions and times match the audio card`(format: AudioFormat.SampleFormat)
    async throws
  {
    let listening = try Listening(format: format) { $0.length = 480 * 150 }
    try await listening.session.startRunning()
    var next: Int64 = 0
    try await listening.takeAll { block in
      #expect(block.position == next && block.gapBefore == nil)
      let time = listening.card.nanoseconds(ofSample: next, rate: Listening.rate)
      let stamp = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      #expect((stamp - time).magnitude <= 1)
      #expect(block.duration == MediaTime(Int64(block.sampleCount), over: 48_000))
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
    #expect(next == 480 * 150 && listening.input.sampleCount == next)
    #expect(listening.input.overrunCount == 0 && listening.input.lostSampleCount == 0)
    let ledger = listening.output.ledger
    #expect(ledger.isBalanced && ledger.offered == 150 && ledger.delivered == 150)
  }

  @Test func `An audio overrun or suspension becomes a gap of equal length`()
    async throws
  {
    let listening = try Listening {
      $0.length = 480 * 600
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
      // The audio card keeps counting samples during a gap, so a position is exact only if the gap
      // lengths are.
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
    #expect(listening.output.ledger.isBalanced)
  }

  @Test(arguments: 0..<5)
  func `Audio timestamps stay accurate despite jitter and overruns`(seed: Int) async throws {
    var random = SeededGenerator(seed: UInt64(seed) &+ 31)
    let drift = Int64.random(in: -200...200, using: &random)
    let faults = (0..<4).map { _ in
      FakeAudioCard.Fault(
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
      // The sample number that the first sample encodes, nearest to the position of the block.
      let reported = Int64(
        (Double(try #require(block.samples(ofChannel: 0).first)) * 32_768).rounded())
      var number = block.position / 30_000 * 30_000 + reported
      if number - block.position > 15_000 { number -= 30_000 }
      if block.position - number > 15_000 { number += 30_000 }
      // The length of a gap has an error of at most 2 ms, and four gaps occur.
      #expect((number - block.position).magnitude < 4 * 100 + 4)
      let truth = listening.card.nanoseconds(ofSample: number, rate: Listening.rate)
      #expect((time - truth).magnitude < 4_000_000)
    }
    await listening.session.stopRunning()
    #expect(gapCount > 0 && listening.input.overrunCount == 4)
    #expect(listening.output.ledger.isBalanced)
  }

  @Test func `Unread audio blocks are dropped and counted as a gap`() async throws {
    let (reached, reported) = AsyncStream<Int64>.makeStream()
    let mayContinue = DispatchSemaphore(value: 0)
    let listening = try Listening(periods: 10_000) {
      $0.length = 480 * 310
      $0.wave = { _, channel in channel == 0 ? 0.5 : -0.25 }
      let pace = $0.pace
      $0.pace = { sample in
        // When the card asks for the next period, the last block has been delivered.
        if sample == 480 * 300 {
          reported.yield(sample)
          mayContinue.wait()
        }
        pace(sample)
      }
    }
    try await listening.session.startRunning()
    for await _ in reached { break }
    var expected = DataOutputLedger(offered: 300, waiting: 200, dropped: [.outOfBuffers: 100])
    #expect(listening.output.ledger == expected && expected.isBalanced)
    let levels = listening.output.levels
    #expect(levels.map { ($0.peakDBFS * 100).rounded() / 100 } == [-6.02, -12.04])
    #expect(levels.map { ($0.averageDBFS * 100).rounded() / 100 } == [-6.02, -12.04])
    var iterator = listening.output.blocks.makeAsyncIterator()
    for number in 0..<200 as Range<Int64> {
      let block = try #require(await iterator.next())
      #expect(block.position == 480 * number && block.gapBefore == nil)
    }
    mayContinue.signal()
    let block = try #require(await iterator.next())
    #expect(block.position == 480 * 300)
    #expect(
      block.gapBefore
        == AudioGap(cause: .outOfBuffers, position: 480 * 200, sampleCount: 480 * 100))
    while let block = await iterator.next(isolation: #isolation) {
      #expect(block.gapBefore == nil)
      if block.position == 480 * 309 { break }
    }
    await listening.session.stopRunning()
    expected = DataOutputLedger(offered: 310, delivered: 210, dropped: [.outOfBuffers: 100])
    #expect(listening.output.ledger == expected && expected.isBalanced)
    // After the stream has stopped, the audio levels show silence.
    #expect(listening.output.levels.allSatisfy { $0.peakDBFS == -.infinity })
  }

  @Test func `Opening a busy or missing microphone reports the reason`() throws {
    let answers: [(CInt, MediaError.Code)] = [
      (-EBUSY, .deviceBusy), (-EACCES, .noPermission), (-ENODEV, .deviceLost),
    ]
    for (answer, code) in answers {
      let error = #expect(throws: MediaError.self) {
        _ = try Listening { $0.openResult = answer }
      }
      #expect(error?.code == code)
    }
    let refused = #expect(throws: MediaError.self) { _ = try Listening { $0.rates = [44_100] } }
    #expect(refused?.code == .modeRefused)
    let camera = try CaptureDevice.named("synthetic")
    let wrong = #expect(throws: MediaError.self) { try MicrophoneInput(device: camera) }
    #expect(wrong?.code == .modeRefused)
  }
}
