// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

struct SyntheticAudioOutputTests {
  @Test func `Synthetic audio is in sync with the video frames`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    let (images, audio) = (VideoDataOutput(), AudioDataOutput())
    try await session.addOutput(images)
    try await session.addOutput(audio)
    try await session.startRunning()
    var frames = images.frames.makeAsyncIterator()
    let frame = try #require(await frames.next())
    let rate = FrameRate(240)
    let epoch =
      try frame.presentationTimeStamp.nanoseconds(.halfAwayFromZero) / 1_000
      - SyntheticDriver.microseconds(ofFrame: Int64(frame.attachments.sequence), at: rate)
    var blocks = audio.blocks.makeAsyncIterator()
    var next: Int64?
    for _ in 0..<20 {
      let block = try #require(await blocks.next())
      // On a busy machine, more blocks may wait than the queue holds, which leaves a gap.
      #expect(block.position == (next ?? 0) + (block.gapBefore?.sampleCount ?? 0))
      #expect(block.gapBefore.map { $0.cause == .outOfBuffers } ?? true)
      next = block.position + Int64(block.sampleCount)
      let time = try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      let (number, rest) = ((time - epoch * 1_000) * 48).quotientAndRemainder(dividingBy: 1_000_000)
      #expect(rest == 0)
      let expected = SyntheticAudio().samples(from: number, count: block.sampleCount)
      #expect(block.samples(ofChannel: 0) == expected)
    }
    #expect(audio.levels.count == 1 && audio.levels[0].peakDBFS > -21)
    await session.stopRunning()
    #expect(audio.ledger.isBalanced)
    // After a restart, positions begin at 0 again.
    try await session.startRunning()
    // Blocks from before the restart may come first. In the first block after the restart, all
    // samples before the position of the block are reported as a gap.
    while let block = try await blocks.next(),
      block.position != block.gapBefore?.sampleCount ?? 0
    {}
    await session.stopRunning()
  }

  @Test func `Audio after a session restart has times after the restart`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    for _ in 0..<3 {
      let audio = AudioDataOutput()
      try await session.addOutput(audio)
      var blocks = audio.blocks.makeAsyncIterator()
      let start = MonotonicClock.nanoseconds()
      try await session.startRunning()
      let block = try #require(await blocks.next())
      #expect(try block.presentationTimeStamp.nanoseconds(.halfAwayFromZero) >= start)
      await session.stopRunning()
      session.removeOutput(audio)
    }
  }

  @Test func `A restarted session delivers no corrupt frames`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240/mjpg")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    for _ in 0..<3 {
      let video = VideoDataOutput()
      try await session.addOutput(video)
      var frames = video.frames.makeAsyncIterator()
      try await session.startRunning()
      for _ in 0..<20 { #expect(try await frames.next() != nil) }
      await session.stopRunning()
      session.removeOutput(video)
      #expect(video.ledger.dropped[.corrupt] ?? 0 == 0)
    }
  }

  @Test func `Audio outputs can be added and removed while a session runs`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240")
    let session = try CaptureSession(device: camera, format: try camera.fastestFormat())
    try await session.startRunning()
    for _ in 0..<3 {
      let audio = AudioDataOutput()
      try await session.addOutput(audio)
      var blocks = audio.blocks.makeAsyncIterator()
      for _ in 0..<3 { #expect(try await blocks.next() != nil) }
      session.removeOutput(audio)
      let offered = audio.ledger.offered
      while try await blocks.next() != nil {}
      #expect(audio.ledger.offered == offered && audio.ledger.isBalanced)
    }
    await session.stopRunning()
  }
}
