// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture

/// Frames that a thread takes one by one with a blocking call.
struct NextFrameTests {
  private struct Failure: Error, Equatable {}

  private let session: CaptureSession
  private let output = VideoDataOutput()

  init() throws {
    // This camera waits until its frames are taken.
    session = try CaptureSession(CaptureDevice.named("synthetic:128x96@240/grey?pace=max"))
    output.alwaysDiscardsLateVideoFrames = false
    try session.addOutput(output)
  }

  @Test func `A blocking read gets each frame once and returns its buffer`() throws {
    try session.startRunning()
    var last: (sequence: UInt32, time: MediaTime)?
    for _ in 0..<200 {
      let shown = output.withNextFrame { frame in
        #expect(frame.withBytes { $0.count } == 128 * 96)
        #expect(output.keptCount > 0)
        return (frame.attachments.sequence, frame.presentationTimeStamp)
      }
      let frame = try #require(shown)
      if let last { #expect(frame.0 > last.sequence && frame.1 > last.time) }
      last = frame
    }
    session.stopRunning()
    let waiting = output.ledger.waiting
    #expect(output.keptCount == Int(waiting))
    session.removeOutput(output)
    var rest = 0
    while output.withNextFrame({ _ in }) != nil { rest += 1 }
    #expect(rest == Int(waiting))
    #expect(output.keptCount == 0 && output.ledger.isBalanced)
    #expect(output.ledger.delivered == 200 + Int64(rest))
  }

  @Test func `A frame buffer is returned even if its handler throws`() throws {
    try session.startRunning()
    defer { session.stopRunning() }
    for _ in 0..<20 {
      #expect(throws: Failure.self) {
        try output.withNextFrame { (_) throws(Failure) in throw Failure() }
      }
    }
    #expect(output.withNextFrame { $0.formatDescription.width } == 128)
  }

  @Test func `Removing the output ends a wait for the next frame`() {
    // The session does not run, so only the removal can end the wait.
    let isDone = DispatchSemaphore(value: 0)
    let (session, output) = (session, output)
    DispatchQueue.global().async {
      #expect(output.withNextFrame { _ in true } == nil)
      isDone.signal()
    }
    session.removeOutput(output)
    isDone.wait()
    #expect(output.withNextFrame { _ in true } == nil)
  }

  @Test func `Blocking and async reads can alternate without losing frames`()
    async throws
  {
    try await session.startRunning()
    var numbers: [UInt32] = []
    func pull() { output.withNextFrame { numbers.append($0.attachments.sequence) } }
    for _ in 0..<5 {
      pull()
      for await sample in output.frames.prefix(3) { numbers.append(sample.attachments.sequence) }
    }
    await session.stopRunning()
    #expect(numbers == Array(numbers[0]..<numbers[0] + 20))
  }
}
