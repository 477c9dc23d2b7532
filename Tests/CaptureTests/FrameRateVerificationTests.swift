// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// The causes for a frame rate that is not the requested one.
struct FrameRateVerificationTests {
  /// A measurement of half a second or more: the rate, and the lost and corrupt frames.
  struct Measured {
    let rate: Int64
    var expected: Int64 = 120
    var lost: Int64 = 0
    var corrupt: Int64 = 0
  }

  @Test(
    arguments: [
      (240, 240, Measured(rate: 240), [], nil),
      // A difference of one frame in half a second is within the error of the measurement.
      (240, 240, Measured(rate: 238), [], nil),
      (240, 240, Measured(rate: 238, expected: 12_000), [], .falseReport),
      (240, 120, Measured(rate: 120, expected: 60), [], .driverClamp),
      (240, 240, Measured(rate: 240, lost: 6), [], nil),
      (240, 240, Measured(rate: 240, lost: 7), [], .bandwidth),
      (240, 240, Measured(rate: 240, lost: 4, corrupt: 3), [], .bandwidth),
      (240, 240, Measured(rate: 120), [.keepsLongExposure], .exposure),
      (240, 240, Measured(rate: 120), [.keepsLongExposure, .keepsDynamicFrameRate], .exposure),
      (240, 240, Measured(rate: 120), [.keepsDynamicFrameRate], .lowLight),
      // Low light cannot raise the frame rate, so a higher rate is a false report.
      (240, 240, Measured(rate: 300), [.keepsDynamicFrameRate], .falseReport),
      (240, 240, Measured(rate: 120), [], .falseReport),
      // A camera setting that could lower the rate, but does not, is not a cause.
      (240, 240, Measured(rate: 240), [.keepsDynamicFrameRate], nil),
    ] as [(Int64, Int64, Measured, Set<ExposureGuard.Weakness>, FrameRateMismatchReason?)])
  func `Verification names the cause of a frame rate mismatch`(
    requested: Int64, negotiated: Int64, measured: Measured,
    weaknesses: Set<ExposureGuard.Weakness>, cause: FrameRateMismatchReason?
  ) throws {
    var measurement = RateMeasurement()
    measurement.frameRate = Rational(measured.rate)
    measurement.ledger.expected = measured.expected
    measurement.ledger.lostDevice = measured.lost
    measurement.ledger.corrupt = measured.corrupt
    let verification = FrameRateVerification(
      requested: FrameRate(Int(requested)), negotiated: FrameRate(Int(negotiated)),
      measurement: measurement, weaknesses: weaknesses)
    #expect(verification.cause == cause)
    #expect(verification.isLocked == (cause == nil))
  }

  @Test func `A frame rate that was not measured counts as not verified`() throws {
    let rate = FrameRate(240)
    let verification = FrameRateVerification(
      requested: rate, negotiated: rate, measurement: RateMeasurement(), weaknesses: [])
    #expect(!verification.isLocked)
    // The frame rate also counts as not verified if the measurement stops before the first frame.
    let machine = try FakeVideoSystemCalls("hfr-usb")
    let stopped = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let input = try DeviceInput(device: camera, format: try camera.fastestFormat())
      return try input.verifyFrameRate { true }
    }
    #expect(!stopped.isLocked && stopped.measurement.frameRate == nil)
  }

  @Test(arguments: [("loss=10%", FrameRateMismatchReason.bandwidth), ("loss=1%", nil)])
  func `A frame loss of 10 percent is attributed to bus bandwidth`(
    faults: String, cause: FrameRateMismatchReason?
  ) throws {
    let machine = try FakeVideoSystemCalls("hfr-usb \(faults) apart=2 seed=3")
    let verification = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let input = try DeviceInput(device: camera, format: try camera.fastestFormat())
      return try input.verifyFrameRate()
    }
    #expect(verification.cause == cause, "\(verification)")
  }
}
