// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Takes whose writer is slower than the camera.
struct FullQueueTests {
  @Test func `A full frame queue ends the take and not the session`() async throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(1_000)
    let (stall, resumption) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let hasDrained = DispatchSemaphore(value: 0)
    let images = try camera.images(0..<2)
    let frames = try (0..<12_000).map {
      ScriptedDriver.Step.frameWithBytes(try camera.observation($0), images[Int($0) % 2])
    }
    // More frames than the queue holds arrive while the writer thread is blocked.
    let steps =
      frames[..<200] + [.action { stall.wait() }] + frames[200..<11_000]
      + [.action { resumption.signal() }, .action { hasDrained.wait() }] + frames[11_000...]
    let session = try camera.session(ScriptedDriver(Array(steps)))
    let path = scratch.file("take.mov")
    let movie = try MovieFileOutput(session: session, settings: RecordingSettings(path: path))
    let (events, interruptions) = (movie.events, session.events)
    var (hasStalled, wasFull, isDrained) = (false, false, false)
    let report = try movie.record { progress in
      #expect(!session.isInterrupted)
      if progress.stored >= 100, !hasStalled {
        hasStalled = true
        stall.signal()
        resumption.wait()
      }
      wasFull = wasFull || progress.queueFill > 0.5 || progress.missing > 0
      if wasFull, progress.queueFill == 0, !isDrained {
        isDrained = true
        hasDrained.signal()
      }
    }
    #expect(report.ledger.lostQueue > 0 && report.ledger.isBalanced && report.isPlayable)
    var reported: [String] = []
    for await event in events {
      switch event {
      case .didFillQueue(let name): reported.append(name == path ? "full" : name)
      case .didDrainQueue(let name): reported.append(name == path ? "drained" : name)
      case .didFinish: reported.append("finished")
      default: break
      }
      if reported.last == "finished" { break }
    }
    #expect(reported == ["full", "drained", "finished"])
    // The session itself reports only its own start and end.
    var seen: [SessionEvent] = []
    for await event in interruptions {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    #expect(seen == [.didStartRunning, .didStopRunning])
  }
}
