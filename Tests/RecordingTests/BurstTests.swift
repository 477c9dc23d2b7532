// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

struct BurstTests {
  @Test func `A burst recording stores all of its frames`() throws {
    let camera = try ScriptedCamera(240)
    let scratch = try Scratch()
    let path = scratch.file("burst.mov")
    var written: [Int64] = []
    let (report, _) = try camera.take(try camera.frames(0..<90), to: path) {
      $0.isBurst = true
    } progress: {
      written.append($0.bytes)
    }
    #expect(report.ledger.stored == 90)
    #expect(report.ledger.expected == 90)
    #expect(report.isPlayable)
    #expect(try paintedNumbers(Asset(path: path)) == Array(0..<90))
    #expect(written.last.map { $0 > 0 } == true)
  }

  @Test func `A burst recording ends without frame loss if memory is full`() throws {
    let rate = FrameRate(240)
    let camera = try ScriptedCamera(240)
    let driver = ScriptedDriver(
      try (0..<40).map { .frame(try camera.observation($0), byteCount: 300_000) })
    let queue = try FrameQueue(capacity: 3 << 20, largestFrame: 300_000)
    let control = CaptureControl()
    let take = TakeSink(
      limit: CaptureLimit(), queue: queue, control: control, endsCapture: true, endsWhenFull: true)
    var pump = CaptureLoop(
      pool: BufferPool(driver), frameRate: rate,
      integrityCheck: FrameIntegrityCheck(byteCount: nil, isJPEG: false), control: control,
      sinkList: SinkList([take]))
    try pump.start()
    #expect(pump.run().stopReason == .maxSize)
    let end = try #require(take.end)
    var account = FrameAccount(frameRate: rate, trustsCounter: false) { camera.base - 1_000 }
    while queue.withNextFrame({ account.record($0.observation) }) != nil {}
    account.close(end.frames)
    #expect(account.ledger.stored == 10)
    #expect(account.ledger.expected == 10)
    #expect(account.ledger.dropped == 0)
  }

  @Test func `The recording preflight warns about a slow or full disk`() {
    func preflight(_ needed: Int64, disk: Int64?, free: Int64?) -> RecordingPreflight {
      RecordingPreflight(
        bytesPerSecond: needed, diskBytesPerSecond: disk, freeBytes: free,
        maximumBurstDuration: .zero)
    }
    let slow = preflight(60_000_000, disk: 35_000_000, free: 600_000_000_000)
    #expect(slow.warnings(for: nil).count == 1)
    #expect(slow.warnings(for: nil)[0].contains("35 MB"))
    #expect(slow.freeDuration == MediaTime(seconds: 10_000))
    let full = preflight(60_000_000, disk: 90_000_000, free: 600_000_000)
    #expect(full.warnings(for: nil).count == 1)
    #expect(full.warnings(for: MediaTime(seconds: 9)).isEmpty)
    #expect(full.warnings(for: MediaTime(seconds: 11)).count == 1)
    #expect(preflight(60_000_000, disk: nil, free: nil).warnings(for: nil).isEmpty)
    #expect(preflight(0, disk: nil, free: 0).freeDuration == .zero)
    // Some file systems report unlimited free space.
    #expect(preflight(1, disk: nil, free: .max).warnings(for: nil).isEmpty)
  }

  @Test func `Measures the disk speed and leaves no file behind`() throws {
    let scratch = try Scratch()
    let speed = try #require(DiskProbe.bytesPerSecond(besides: scratch.file("take.mov")))
    #expect(speed > 0)
    #expect(try scratch.names() == [])
    #expect(DiskProbe.bytesPerSecond(besides: scratch.file("missing/take.mov")) == nil)
    #expect(try #require(FreeSpace.bytes(at: scratch.file("take.mov"))) > 0)
  }
}
