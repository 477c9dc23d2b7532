// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankALSA
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture

/// Serialized, since capture threads have real-time priority where the system allows it.
@Suite(.serialized)
struct MicrophoneSessionTests {
  @Test func `An unplugged microphone interrupts a session and EIO ends it`()
    async throws
  {
    func events(_ kind: FakeAudioCard.Fault.Kind) async throws -> ([SessionEvent], CaptureDevice) {
      let listening = try Listening { $0.faults = [.init(at: 480 * 20, kind)] }
      let events = listening.session.events
      try await listening.session.startRunning()
      var seen: [SessionEvent] = []
      for await event in events {
        if event != .didStartRunning { seen.append(event) }
        if event == .didStopRunning { break }
      }
      #expect(listening.output.ledger.offered == 20 && listening.output.ledger.isBalanced)
      #expect(!listening.session.isRunning)
      // An interrupted session keeps itself alive, and waits for the device until the session is
      // stopped.
      await listening.session.stopRunning()
      return (seen, listening.input.device)
    }
    for kind in [FakeAudioCard.Fault.Kind.unplug, .unplugWhileWaiting] {
      let (seen, device) = try await events(kind)
      #expect(seen == [.wasInterrupted(device, .deviceGone), .didStopRunning])
      #expect(device.media == [.audio])
    }
    let (failed, _) = try await events(.error(-EIO))
    guard case .runtimeError(let error) = failed.first else {
      Issue.record("\(failed)")
      return
    }
    #expect(error.code == .deviceFailed && error.message.contains("hw:0,0"))
  }

  @Test func `The audio card is closed when its session is deallocated`() async throws {
    var listening: Listening? = try Listening { $0.length = 480 * 50 }
    let card = try #require(listening?.card)
    #expect(card.isOpen)
    try await listening?.session.startRunning()
    var blocks = listening?.output.blocks.makeAsyncIterator()
    #expect(try await blocks?.next() != nil)
    await listening?.session.stopRunning()
    (listening, blocks) = (nil, nil)
    #expect(!card.isOpen)
  }

  @Test func `Each connection has one media type and can be disabled`()
    async throws
  {
    let listening = try Listening { $0.length = 480 * 50 }
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let images = VideoDataOutput()
    try await listening.session.addInput(
      try DeviceInput(device: camera, format: try camera.fastestFormat()))
    try await listening.session.addOutput(images)
    let connections = listening.session.connections
    #expect(connections.map(\.mediaType) == [.audio, .video])
    #expect(connections[0].input === listening.input && connections[0].output === listening.output)
    #expect(connections[1].output === images)
    #expect(
      listening.session.inputs.map { $0.ports.map(\.mediaType) } == [[.audio], [.video, .audio]])
    connections[0].isEnabled = false
    try await listening.session.startRunning()
    var iterator = images.frames.makeAsyncIterator()
    for _ in 0..<10 { #expect(try await iterator.next() != nil) }
    await listening.session.stopRunning()
    #expect(listening.output.ledger == DataOutputLedger() && images.ledger.delivered >= 10)
  }

  @Test func `A replugged microphone resumes while other inputs run`()
    async throws
  {
    let listening = try Listening(retryMilliseconds: 1) {
      $0.length = 480 * 60
      $0.faults = [.init(at: 480 * 20, .unplug)]
    }
    let (session, card) = (listening.session, listening.card)
    let microphone = listening.input.device
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let images = VideoDataOutput()
    try await session.addInput(try DeviceInput(device: camera, format: try camera.fastestFormat()))
    try await session.addOutput(images)
    let events = session.events
    try await session.startRunning()
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .wasInterrupted(microphone, .deviceGone) {
        #expect(session.isRunning && !session.isInterrupted)
        #expect(session.interruptedInputs.map { $0 === listening.input } == [true])
        var frames = images.frames.makeAsyncIterator()
        for _ in 0..<3 { #expect(try await frames.next() != nil) }
        card.plugIn()
      }
      if case .interruptionEnded = event { break }
    }
    #expect(
      seen == [
        .didStartRunning, .wasInterrupted(microphone, .deviceGone),
        .interruptionEnded(microphone, .deviceGone),
      ])
    #expect(session.isRunning && !session.isInterrupted && session.interruptedInputs.isEmpty)
    // The 20 audio blocks from before the card was unplugged come first. Then come blocks of a new
    // stream, whose positions begin at 0 again.
    var positions: [Int64] = []
    for await block in listening.output.blocks {
      listening.credits.signal()
      positions.append(block.position)
      let number = positions.count > 20 ? block.position + 480 * 20 : block.position
      #expect(block.samples(ofChannel: 0).first == Float(Listening.value(number, 0)))
      if positions.count == 40 { break }
    }
    #expect(positions == (0..<40).map { (number: Int64) in number % 20 * 480 })
    await session.stopRunning()
    #expect(listening.output.ledger.isBalanced && images.ledger.isBalanced)
  }

  @Test func `A session waits if a replugged microphone is busy`() async throws {
    let listening = try Listening(retryMilliseconds: 1) {
      $0.length = 480 * 60
      $0.faults = [.init(at: 480 * 2, .unplug)]
    }
    let (session, card) = (listening.session, listening.card)
    let microphone = listening.input.device
    let events = session.events
    try await session.startRunning()
    var other: AudioHandle?
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning {
        var handle = AudioHandle()
        card.plugIn(openedBy: &handle)
        other = handle
      }
      if event == .wasInterrupted(microphone, .deviceInUse) { card.close(try #require(other)) }
      if event == .didStartRunning, seen.count > 1 { break }
    }
    #expect(
      seen == [
        .didStartRunning, .wasInterrupted(microphone, .deviceGone), .didStopRunning,
        .wasInterrupted(microphone, .deviceInUse), .interruptionEnded(microphone, .deviceInUse),
        .didStartRunning,
      ])
    await session.stopRunning()
  }

  @Test func `Starting the session again reopens an unplugged microphone`() async throws {
    let listening = try Listening {
      $0.length = 480 * 60
      $0.faults = [.init(at: 480 * 2, .unplug)]
    }
    let (session, card) = (listening.session, listening.card)
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
    await session.stopRunning()
    let gone = await #expect(throws: MediaError.self) { try await session.startRunning() }
    #expect(gone?.code == .deviceLost && !session.isRunning)
    card.plugIn()
    try await session.startRunning()
    #expect(session.isRunning && card.isOpen)
    await session.stopRunning()
  }

  @Test(arguments: 0..<5)
  func `Counts of audio blocks add up after random session changes`(seed: Int)
    async throws
  {
    var random = SeededGenerator(seed: UInt64(seed) &+ 500)
    let faults = (0..<20).map { _ in
      FakeAudioCard.Fault(
        at: 480 * Int64.random(in: 0..<400, using: &random), .overrun(lost: 4_800))
    }
    let listening = try Listening {
      $0.faults = faults
      // The card is much faster than a real one, without occupying a whole processor.
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
        try await session.addOutput(output)
        outputs.append(output)
      case 3:
        if let output = outputs.popLast() {
          session.removeOutput(output)
          #expect(output.ledger.isBalanced)
        }
      case 4:
        if let connection = session.connections.randomElement(using: &random) {
          connection.isEnabled.toggle()
        }
      case 5: session.beginConfiguration()
      case 6: try await session.commitConfiguration()
      case 7:
        if session.canAddInput(microphone) {
          try await session.addInput(microphone)
        } else {
          await session.removeInput(microphone)
        }
      default:
        // This waits only if an audio block is certain to arrive.
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
      #expect(output.ledger.isBalanced)
    }
  }
}
