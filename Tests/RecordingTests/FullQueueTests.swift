// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// What a take does whose writer does not follow.
struct FullQueueTests {
  @Test func `A full queue is an event of its movie, and interrupts no session`() async throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(1_000)
    let (standsStill, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let hasDrained = DispatchSemaphore(value: 0)
    let pictures = try camera.pictures(0..<2)
    let frames = try (0..<12_000).map {
      ScriptedDriver.Step.frameWithBytes(try camera.observation($0), pictures[Int($0) % 2])
    }
    // More frames than the queue holds come while the thread that stores is away.
    let steps =
      frames[..<200] + [.action { standsStill.wait() }] + frames[200..<11_000]
      + [.action { goesOn.signal() }, .action { hasDrained.wait() }] + frames[11_000...]
    let session = try camera.session(ScriptedDriver(Array(steps)))
    let path = scratch.file("take.mov")
    let movie = try MovieFileOutput(session: session, settings: RecordingSettings(path: path))
    let (events, interruptions) = (movie.events, session.events)
    var (hasStoodStill, wasFull, isDrained) = (false, false, false)
    let report = try movie.record { progress in
      #expect(!session.isInterrupted)
      if progress.stored >= 100, !hasStoodStill {
        hasStoodStill = true
        standsStill.signal()
        goesOn.wait()
      }
      wasFull = wasFull || progress.queueFill > 0.5 || progress.missing > 0
      if wasFull, progress.queueFill == 0, !isDrained {
        isDrained = true
        hasDrained.signal()
      }
    }
    #expect(report.ledger.lostQueue > 0 && report.ledger.isBalanced && report.isPlayable)
    var told: [String] = []
    for await event in events {
      switch event {
      case .didFillQueue(let name): told.append(name == path ? "full" : name)
      case .didDrainQueue(let name): told.append(name == path ? "drained" : name)
      case .didFinish: told.append("finished")
      default: break
      }
      if told.last == "finished" { break }
    }
    #expect(told == ["full", "drained", "finished"])
    // The session itself has nothing to report but its own start and end.
    var seen: [SessionEvent] = []
    for await event in interruptions {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    #expect(seen == [.didStartRunning, .didStopRunning])
  }
}
