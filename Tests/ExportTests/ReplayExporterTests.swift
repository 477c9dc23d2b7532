// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankAssets
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankExport

/// The order and the priority of replays.
struct ReplayExporterTests {
  @Test func `The newest waiting clip is exported first`() throws {
    let (begun, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let clips = Mutex<[String]>([])
    let policies = Mutex<[Int32]>([])
    let replays = ReplayExporter(handler: { replay in clips.withLock { $0.append(replay.clip) } }) {
      (clip, _) throws(MediaError) in
      let policy = Mutex<Int32>(-1)
      let thread = try? BlockingThread { policy.withLock { $0 = sched_getscheduler(0) } }
      thread?.join()
      policies.withLock { $0 += [sched_getscheduler(0), policy.withLock { $0 }] }
      if clip == "a" {
        begun.signal()
        released.wait()
      }
      throw MediaError(.writeFailed, "\(clip) is not exported")
    }
    replays.add("a", to: "a.mp4")
    begun.wait()
    for clip in ["b", "c", "d"] { replays.add(clip, to: "\(clip).mp4") }
    #expect(replays.waitingCount == 3)
    released.signal()
    replays.finish()
    #expect(clips.withLock { $0 } == ["a", "d", "c", "b"])
    // SCHED_IDLE, which threads inherit.
    #expect(policies.withLock { $0 } == Array(repeating: 5, count: 8))
    replays.add("e", to: "e.mp4")
    replays.finish()
    #expect(clips.withLock { $0.last } == "e")
  }

  @Test func `A replay shows the clip at its speed with its marks`() throws {
    let scratch = try Scratch()
    let recipe = MovieRecipe.constant(240, count: 24)
    try recipe.write(to: scratch.file("clip.mov"))
    let results = Mutex<[ReplayExporter.Replay]>([])
    let replays = ReplayExporter(speed: Speed(1, over: 8)) { replay in
      results.withLock { $0.append(replay) }
    }
    replays.add(scratch.file("clip.mov"), to: scratch.file("clip.replay.mp4"))
    replays.add(scratch.file("missing.mov"), to: scratch.file("missing.replay.mp4"))
    replays.finish()
    let found = results.withLock { $0 }
    #expect(found.count == 2)
    for replay in found {
      switch replay.result {
      case .success(let report): #expect(report.framesEncoded == 24)
      case .failure(let error): #expect(error.code == .fileNotFound)
      }
    }
    let asset = try Asset(path: scratch.file("clip.replay.mp4"))
    #expect(asset.videoTrack?.nominalFrameRate == 30 && asset.duration.doubleValue == 0.8)
    #expect(asset.audioTrack == nil)
  }
}
