// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import TestSupport
import Testing

/// Recordings that suspend their task, and end when the task is cancelled.
struct AsyncRecordingTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// An output that is the only owner of the session to which it belongs.
  private func output(
    _ device: String = "synthetic:128x96@240?pace=max", frameCount: Int64? = nil,
    isAdded: Bool = false
  ) throws -> MovieFileOutput {
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.limit = CaptureLimit(frameCount: frameCount)
    let session = try CaptureSession(CaptureDevice.named(device))
    guard isAdded else { return try MovieFileOutput(session: session, settings: settings) }
    let output = MovieFileOutput(settings: settings)
    try session.addOutput(output)
    return output
  }

  @Test(arguments: [false, true])
  func `An async recording suspends its task and reports progress`(isAdded: Bool) async throws {
    let output = try output(frameCount: 60, isAdded: isAdded)
    let steps = output.progress
    let report = try await output.record()
    #expect(report.ledger.stored == 60 && report.isPlayable)
    #expect(try paintedNumbers(Asset(path: report.path)) == Array(0..<60))
    #expect(try throughJSON(report) == report)
    let last = await steps.first { _ in true }
    #expect(last?.stored == 60)
  }

  @Test func `Cancelling a recording task keeps the recorded movie`() async throws {
    let output = try output("synthetic:128x96@240")
    let steps = output.progress
    let task = Task { try await output.record() }
    for await step in steps where step.stored > 0 { break }
    task.cancel()
    let report = try await task.value
    #expect(report.stoppedBy == .stopped && report.problem == nil)
    #expect(report.ledger.stored > 0 && report.isPlayable)
    // On a busy machine this camera may lose frames. No frame is stored twice or missing in the
    // file.
    let numbers = try paintedNumbers(Asset(path: report.path)).compactMap(\.self)
    #expect(numbers.count == Int(report.ledger.stored) && report.ledger.isBalanced)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test func `A task cancelled before its start records nothing`() async throws {
    let output = try output()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await output.record()
    }
    await #expect {
      try await task.value
    } throws: {
      ($0 as? MediaError)?.code == .cancelled
    }
    #expect(try scratch.names() == [])
  }

  @Test func `Cancelling the task ends a triggered recording`() async throws {
    let output = try output()
    let triggers = TriggerSettings(
      preDuration: MediaTime(1, over: 20), postDuration: MediaTime(1, over: 20))
    let (events, feed) = AsyncStream<MovieFileOutput.TriggeredEvent>.makeStream()
    let task = Task {
      defer { feed.finish() }
      return try await output.record(on: triggers) { feed.yield($0) }
    }
    var finished: [RecordingReport] = []
    for await event in events {
      switch event {
      case .waiting: output.trigger()
      case .finished(let report):
        finished.append(report)
        task.cancel()
      default: break
      }
    }
    let report = try await task.value
    #expect(finished.count == 1 && report.clips.count == 1)
    #expect(try throughJSON(report) == report)
    #expect(finished.first?.isPlayable == true)
  }
}
