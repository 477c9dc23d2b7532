// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPreview
@testable import OvercrankRecording

/// Delayed previews of a camera whose frames the test delivers.
struct DelayedVideoPreviewTests {
  /// A delayed preview of a camera at 240 fps, and the frames of the camera.
  private final class Stage {
    let mirror: DelayedVideoPreview
    private let session: CaptureSession
    private let sink: DelaySink
    private(set) var count = 0
    let byteCount = 320 * 240

    init(
      delay: MediaTime, speed: Speed = .normal, maximum: MediaTime? = nil,
      memoryLimit: Int = 1 << 30
    ) throws {
      let camera = try CaptureDevice.named("synthetic:320x240@240")
      session = CaptureSession(
        DeviceInput(
          device: camera, format: try camera.format(matching: ModeRequest(parsing: "/grey")),
          driver: ScriptedDriver([.nothing], bufferCount: 8),
          delivery: try FrameDelivery(
            layout: .raw(.gray8, bytesPerRow: 0), width: 320, height: 240),
          negotiatedFrameRate: FrameRate(240), maximumByteCount: byteCount))
      mirror = try DelayedVideoPreview(
        session: session, delay: delay, speed: speed, maximumDelay: maximum,
        memoryLimit: memoryLimit)
      let connection = try #require(mirror.connection)
      let input = try #require(connection.camera)
      sink = try #require(try mirror.sink(for: connection, from: input) as? DelaySink)
    }

    /// The capture time of a frame at 240 fps, in microseconds of the driver.
    static func time(of frame: Int) -> Int64 { Int64(frame) * 1_000_000 / 240 + 5_000_000 }

    /// Delivers frames.
    ///
    /// Every pixel has the frame number modulo 251.
    func deliver(_ frames: Int) {
      for _ in 0..<frames {
        let observation = FrameObservation(
          sequence: UInt32(count), microseconds: Self.time(of: count))
        let level = UInt8(count % 251)
        [UInt8](repeating: level, count: byteCount).withUnsafeBytes { bytes in
          var frame = DequeuedBuffer(
            observation, bytes: bytes, index: 0, driver: sink.stream.pool.driver)
          #expect(sink.take(&frame) == nil)
        }
        count += 1
      }
    }

    /// The number of the frame that is shown at a time, after a check of its pixels.
    func shown(at time: Int64) throws -> Int? {
      guard
        let frame = try mirror.nextFrame(
          as: .gray, maximumWidth: 32, maximumHeight: 24, at: MediaTime(microseconds: time))
      else { return nil }
      let number = Int(frame.sequence)
      #expect(frame.image.bytes[100] == UInt8(number % 251))
      #expect(frame.presentationTimeStamp == MediaTime(microseconds: Self.time(of: number)))
      return number
    }
  }

  @Test func `The delay of a preview is exact to one frame`() throws {
    let stage = try Stage(delay: MediaTime(seconds: 2))
    var shown: [Int] = []
    var largest = 0
    // 60 refreshes per second for five seconds. Four frames arrive before each refresh.
    for refresh in 1...300 {
      stage.deliver(4)
      let now = Stage.time(of: stage.count - 1) + 1_000
      if let number = try stage.shown(at: now) {
        let late = now - 2_000_000 - Stage.time(of: number)
        #expect((0..<4_167).contains(late), "refresh \(refresh): \(late) µs")
        shown.append(number)
      }
      largest = max(largest, stage.mirror.memoryUse)
    }
    #expect(shown.count == 180 && zip(shown, shown.dropFirst()).allSatisfy { $1 - $0 == 4 })
    // The delayed preview stores frames in memory blocks of 2 MiB.
    let exact = 2 * 240 * stage.byteCount
    #expect(largest >= exact && largest <= exact * 105 / 100 + (2 << 20), "\(largest) of \(exact)")
    let ledger = stage.mirror.ledger
    #expect(ledger.isBalanced && ledger.delivered == 180 && ledger.offered == 1_200)
    #expect(ledger.dropped == [.frameWasLate: ledger.offered - ledger.delivered - ledger.waiting])
    #expect(stage.mirror.arrivals.frameCount == 1_200 && stage.mirror.arrivals.missingCount == 0)
  }

  @Test func `A new preview delay takes effect at the next display refresh`() throws {
    let stage = try Stage(delay: MediaTime(seconds: 1), maximum: MediaTime(seconds: 3))
    func now() -> Int64 { Stage.time(of: stage.count - 1) }
    stage.deliver(480)
    #expect(try stage.shown(at: now()) == 239)
    // A shorter delay takes effect at once, and older frames are released.
    stage.mirror.setDelay(MediaTime(1, over: 2))
    #expect(try stage.shown(at: now()) == 359)
    #expect(stage.mirror.memoryUse <= 120 * stage.byteCount * 105 / 100 + (2 << 20))
    // After a longer delay is set, the same frame stays until the next frame is old enough for the
    // new delay.
    stage.mirror.setDelay(MediaTime(seconds: 1))
    stage.deliver(60)
    #expect(try stage.shown(at: now()) == nil)
    stage.deliver(61)
    #expect(try stage.shown(at: now()) == 360)
    // Without a delay, the newest frame is shown. A delay above the maximum is limited to the
    // maximum.
    stage.mirror.setDelay(.zero)
    #expect(try stage.shown(at: now()) == stage.count - 1)
    stage.mirror.setDelay(MediaTime(seconds: 9))
    #expect(stage.mirror.delay == MediaTime(seconds: 3))
  }

  @Test func `A slow-motion preview jumps to live at its maximum delay`() throws {
    let stage = try Stage(delay: MediaTime(1, over: 2), speed: Speed(1, over: 2))
    stage.deliver(1)
    #expect(try stage.shown(at: Stage.time(of: 0)) == 0)
    // The delay of half a second is reached after one second, in which 240 frames arrive and 120
    // are shown.
    var shown: [Int] = []
    for _ in 0..<239 {
      stage.deliver(1)
      if let number = try stage.shown(at: Stage.time(of: stage.count - 1)) { shown.append(number) }
    }
    #expect(shown.count >= 118 && zip(shown, shown.dropFirst()).allSatisfy { $1 - $0 == 1 })
    stage.deliver(1)
    #expect(try stage.shown(at: Stage.time(of: 240)) == 240)
  }

  @Test func `A memory limit shortens the delay of a preview`() throws {
    let stage = try Stage(delay: MediaTime(seconds: 10), memoryLimit: 16 << 20)
    var last = -1
    for _ in 0..<120 {
      stage.deliver(4)
      if let number = try stage.shown(at: Stage.time(of: stage.count - 1)) { last = number }
    }
    #expect(last > 200 && last < stage.count)
    #expect(stage.mirror.ledger.dropped[.outOfBuffers] == nil)
  }

  @Test func `A recording with a delayed preview stores every frame`() throws {
    let scratch = try Scratch()
    let camera = try CaptureDevice.named("synthetic:320x240@240?scene=pattern&pace=max")
    let session = try CaptureSession(
      device: camera, format: camera.format(matching: ModeRequest(parsing: "/mjpg")))
    let mirror = try DelayedVideoPreview(session: session, delay: MediaTime(1, over: 4))
    mirror.connection?.automaticallyAdjustsVideoMirroring = false
    try mirror.connection?.setVideoMirrored(true)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.limit = CaptureLimit(frameCount: 240)
    let report = try MovieFileOutput(session: session, settings: settings).record { _ in
      let now = mirror.arrivals.newestTime ?? .zero
      _ = try? mirror.nextFrame(as: .bgra, maximumWidth: 64, maximumHeight: 48, at: now)
    }
    #expect(report.problem == nil && report.ledger.stored == 240 && report.ledger.dropped == 0)
    #expect(mirror.ledger.isBalanced)
    let numbers = try paintedNumbers(Asset(path: scratch.file("take.mov")))
    #expect(numbers == Array(0..<240))
  }

  @Test func `Refuses a delayed preview of H.264 or of an empty session`() throws {
    let session = try codedSession(of: .h264)
    let error = #expect(throws: MediaError.self) {
      try DelayedVideoPreview(session: session, delay: .zero)
    }
    #expect(error?.code == .notConvertible && session.outputs.isEmpty)
    let second = #expect(throws: MediaError.self) {
      try DelayedVideoPreview(session: CaptureSession(), delay: .zero)
    }
    #expect(second?.code == .notConnected)
  }
}
