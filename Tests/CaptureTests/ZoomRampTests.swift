// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// A clock that only sleeping advances.
///
/// Its sleeps return at once.
private final class JumpingClock: Clock {
  struct Instant: InstantProtocol {
    var offset: Duration
    func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
    func duration(to other: Instant) -> Duration { other.offset - offset }
    static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
  }

  private let time = Mutex(Instant(offset: .zero))
  /// The closure that runs at each sleep, with the time slept so far.
  private let onSleep: @Sendable (Duration) -> Void

  init(onSleep: @escaping @Sendable (Duration) -> Void = { _ in }) { self.onSleep = onSleep }

  var now: Instant { time.withLock { $0 } }
  var minimumResolution: Duration { .nanoseconds(1) }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try Task.checkCancellation()
    time.withLock { $0 = max($0, deadline) }
    onSleep(deadline.offset)
    try Task.checkCancellation()
  }
}

/// Smooth changes of the zoom control.
struct ZoomRampTests {
  private let driver = ScriptedControls([
    DeviceControl(
      id: .zoom, name: "Zoom, Absolute", kind: .integer, minimum: 100, maximum: 400,
      defaultValue: 100)
  ])

  private func controls() throws -> CameraControls {
    try driver.camera()
  }

  private var values: [Int64] { driver.writes.compactMap(\.value.number) }

  @Test func `A zoom ramp of rate 1 doubles the factor every second`() async throws {
    let controls = try controls()
    let factors = Mutex<[Int64: Int64]>([:])
    let clock = JumpingClock { [driver] slept in
      let milliseconds =
        slept.components.seconds * 1000 + slept.components.attoseconds / 1_000_000_000_000_000
      factors.withLock { $0[milliseconds] = driver.writes.last?.value.number }
    }
    let end = try await controls.rampToVideoZoomFactor(4, withRate: 1, clock: clock).value
    #expect(end == 4)
    #expect(try controls.videoZoomFactor == 4)
    // The factor was set 15 ms earlier, before the sleep that ends at this time.
    #expect(factors.withLock { $0[1005] } == 199)
    #expect(factors.withLock { $0[1500] } == 280)
    #expect(values == values.sorted() && Set(values).count == values.count)
    #expect(clock.now.offset == .milliseconds(2010))
  }

  @Test func `A zoom ramp to the current factor ends at once`() async throws {
    let controls = try controls()
    #expect(try controls.setVideoZoomFactor(4) == 4)
    let clock = JumpingClock()
    #expect(try await controls.rampToVideoZoomFactor(1, withRate: 8, clock: clock).value == 1)
    #expect(values.last == 100)
    #expect(values == values.sorted(by: >))
    let before = clock.now
    #expect(try await controls.rampToVideoZoomFactor(1, withRate: 8, clock: clock).value == 1)
    #expect(clock.now == before)
  }

  @Test func `A cancelled zoom ramp keeps its current factor`() async throws {
    let controls = try controls()
    // Sleeps take no time, so the ramp waits here until the controls know that it runs.
    let runs = DispatchSemaphore(value: 0)
    let clock = JumpingClock { slept in
      guard slept >= .seconds(1) else { return }
      runs.wait()
      runs.signal()
      controls.cancelVideoZoomRamp()
    }
    let ramp = try controls.rampToVideoZoomFactor(4, withRate: 1, clock: clock)
    runs.signal()
    await #expect(throws: CancellationError.self) { try await ramp.value }
    let factor = try #require(try controls.videoZoomFactor)
    #expect(factor > 1.9 && factor < 2.1)
  }

  @Test func `A failed zoom control write ends the zoom ramp with an error`() async throws {
    let controls = try controls()
    driver.change { $0.writeErrors[.zoom] = 5 }
    let ramp = try controls.rampToVideoZoomFactor(4, withRate: 1, clock: JumpingClock())
    let error = await #expect(throws: MediaError.self) { try await ramp.value }
    #expect(error?.code == .deviceFailed)
  }

  @Test func `A zoom control with a minimum of zero is not supported`() throws {
    let driver = ScriptedControls([
      DeviceControl(id: .zoom, name: "Zoom, Absolute", kind: .integer, maximum: 4)
    ])
    let controls = try driver.camera()
    #expect(!controls.isVideoZoomSupported)
    #expect(try controls.videoZoomFactor == nil)
  }
}
