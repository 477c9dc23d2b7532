// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// A simulated camera that has only controls.
///
/// Its calls fail on request.
private final class PaperCamera: ControlPort {
  struct State {
    var values: [ControlID: Int64]
    var ranges: [ControlID: ControlRange]
    var calls = 0
    /// The calls that fail, as numbers in the order of calls.
    var failures: Set<Int> = []
    /// The controls that cannot be set.
    var refused: Set<ControlID> = []
  }

  let state: Mutex<State>

  init(_ controls: [ControlID: (value: Int64, range: ControlRange)]) {
    state = Mutex(
      State(values: controls.mapValues(\.value), ranges: controls.mapValues(\.range)))
  }

  /// A webcam in its usual state: aperture priority exposure that may lower the frame rate.
  static func webcam(mode: Int64 = 3, exposure: Int64 = 300) -> PaperCamera {
    PaperCamera([
      .automaticExposure: (mode, ControlRange(minimum: 0, maximum: 3, items: [1, 3])),
      .exposureTime: (exposure, ControlRange(minimum: 3, maximum: 2_047)),
      .exposureMayLowerRate: (1, ControlRange(minimum: 0, maximum: 1)),
      .wideDynamicRange: (1, ControlRange(minimum: 0, maximum: 1)),
    ])
  }

  func value(_ id: ControlID) -> Int64? { state.withLock { $0.values[id] } }

  func refuse(_ id: ControlID) { state.withLock { $0.refused = [id] } }

  func range(of id: ControlID) -> ControlRange? { state.withLock { $0.ranges[id] } }

  func value(of id: ControlID) throws(CallFailure) -> Int64 {
    let value = state.withLock { state -> Int64? in
      state.calls += 1
      return state.failures.contains(state.calls) ? nil : state.values[id]
    }
    guard let value else { throw CallFailure(.readControl, "/dev/paper", code: 5) }
    return value
  }

  func set(_ id: ControlID, to value: Int64) throws(CallFailure) {
    let isDone = state.withLock { state -> Bool in
      state.calls += 1
      guard state.ranges[id]?.contains(value) == true, !state.refused.contains(id) else {
        return false
      }
      state.values[id] = value
      // A call may fail after the camera has applied the value.
      return !state.failures.contains(state.calls)
    }
    guard isDone else { throw CallFailure(.setControl, "/dev/paper", code: 22) }
  }
}

struct ExposureGuardTests {
  private let frame: MediaTime

  init() throws { frame = MediaTime(1, over: 240) }

  @Test(arguments: [
    (1, 240, 41), (1, 120, 83), (1, 100, 99), (1, 30, 333), (1_001, 240_000, 41), (1, 10_000, 1),
    (1, 960, 10),
  ])
  func `The longest allowed exposure is shorter than a frame period`(
    numerator: Int64, denominator: Int64, expected: Int64
  ) throws {
    let duration = try MediaTime(Rational(Int128(numerator), over: Int128(denominator)))
    #expect(ExposureGuard.longestExposure(in: duration) == expected)
  }

  @Test func `Auto exposure stays on but cannot lower the frame rate`() {
    let camera = PaperCamera.webcam()
    let guardian = ExposureGuard(camera, frameDuration: frame)
    guardian.apply()
    #expect(camera.value(.automaticExposure) == 3)
    #expect(camera.value(.exposureMayLowerRate) == 0)
    #expect(camera.value(.wideDynamicRange) == 0)
    #expect(camera.value(.exposureTime) == 300)
    #expect(guardian.weaknesses.isEmpty)
    guardian.restore()
    #expect(camera.value(.exposureMayLowerRate) == 1)
    #expect(camera.value(.wideDynamicRange) == 1)
  }

  @Test func `The exposure guard shortens a long exposure temporarily`() {
    let camera = PaperCamera.webcam(mode: 1)
    let guardian = ExposureGuard(camera, frameDuration: frame)
    guardian.apply()
    #expect(camera.value(.exposureTime) == 41)
    guardian.restore()
    #expect(camera.value(.exposureTime) == 300)
    #expect(guardian.unrestored.isEmpty)
  }

  @Test func `The exposure guard can switch to manual exposure`() {
    let camera = PaperCamera.webcam()
    let guardian = ExposureGuard(camera, frameDuration: frame)
    #expect(guardian.canExposeManually)
    guardian.willExposeManually()
    guardian.apply()
    #expect(camera.value(.automaticExposure) == 1)
    #expect(camera.value(.exposureTime) == 41)
    guardian.restore()
    #expect(camera.value(.automaticExposure) == 3)
    #expect(camera.value(.exposureTime) == 300)
  }

  @Test func `The exposure guard reports the controls that it cannot set`() {
    let camera = PaperCamera.webcam(mode: 1)
    camera.refuse(.exposureTime)
    let guardian = ExposureGuard(camera, frameDuration: frame)
    guardian.apply()
    #expect(guardian.weaknesses == [.keepsLongExposure])
    let automatic = PaperCamera.webcam()
    automatic.refuse(.exposureMayLowerRate)
    let other = ExposureGuard(automatic, frameDuration: frame)
    other.apply()
    #expect(other.weaknesses == [.keepsDynamicFrameRate])
  }

  @Test func `The exposure guard names a control that it cannot restore`() {
    let camera = PaperCamera.webcam()
    let guardian = ExposureGuard(camera, frameDuration: frame)
    guardian.apply()
    camera.refuse(.exposureMayLowerRate)
    guardian.restore()
    #expect(guardian.unrestored == ["exposure_dynamic_framerate"])
  }

  @Test func `All controls are restored although some driver calls fail`() {
    for seed in 0..<1_000 {
      var random = SeededGenerator(seed: UInt64(seed))
      let camera = PaperCamera.webcam(
        mode: [1, 3].randomElement(using: &random) ?? 3,
        exposure: Int64.random(in: 3...2_047, using: &random))
      let before = camera.state.withLock { $0.values }
      // Some calls to the camera fail, but never three in a row.
      let failures = Set((0..<8).map { _ in Int.random(in: 0..<16, using: &random) * 4 })
      camera.state.withLock { $0.failures = failures }
      let guardian = ExposureGuard(camera, frameDuration: frame)
      if Bool.random(using: &random) { guardian.willExposeManually() }
      guardian.apply()
      if Bool.random(using: &random) { guardian.apply() }
      guardian.restore()
      #expect(camera.state.withLock { $0.values } == before, "seed \(seed)")
      #expect(guardian.unrestored.isEmpty)
    }
  }
}
