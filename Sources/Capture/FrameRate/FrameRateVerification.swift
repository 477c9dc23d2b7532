// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankFrameAccounting
public import OvercrankMediaCore

/// The reason why a device's frame rate differs from the requested one.
public enum FrameRateMismatchReason: String, Hashable, Sendable, Codable {
  /// The driver selected another rate than the requested one.
  case driverClamp = "driver_clamp"
  /// Automatic exposure lengthens the frames in low light.
  case lowLight = "low_light"
  /// The manual exposure is longer than a frame.
  case exposure
  /// Frames are lost because the bus or the camera's encoder is too slow.
  case bandwidth
  /// The driver reports a rate that the camera does not deliver.
  case falseReport = "false_report"
}

/// The requested, the negotiated and the measured frame rate of a device.
///
/// Each may differ from the others: drivers round requests, and cameras may miss the rate that
/// their drivers report.
public struct FrameRateVerification: Hashable, Sendable, Codable {
  /// The requested frame rate.
  public let requested: FrameRate
  /// The frame rate that the driver reports after the request.
  public let negotiated: FrameRate
  /// The measured frame rate.
  public let measurement: RateMeasurement
  /// The reason for a wrong rate.
  ///
  /// Nil if the rate is right or was not measured.
  public let cause: FrameRateMismatchReason?

  /// The relative tolerance when two rates are compared.
  ///
  /// It allows for crystals, which deviate by about 100 ppm, and for drivers that simplify
  /// fractions.
  private static let tolerance = 0.005

  /// Whether the device delivers the requested rate and loses few frames.
  public var isLocked: Bool { cause == nil && measurement.frameRate != nil }

  /// Creates a verification from the three rates, and finds the reason if they differ.
  init(
    requested: FrameRate, negotiated: FrameRate, measurement: RateMeasurement,
    weaknesses: Set<ExposureGuard.Weakness>
  ) {
    (self.requested, self.negotiated, self.measurement) = (requested, negotiated, measurement)
    let measured = measurement.frameRate?.doubleValue ?? 0
    // The times of the first and the last frame may each be wrong by half a frame period. The
    // measured duration may therefore be wrong by one frame period, or by one step of the driver's
    // timestamps if that is longer.
    let step = measurement.timestampQuantum.map { Double($0.wholeNanoseconds) * 1e-9 * measured }
    let blur = max(1, step ?? 0) / Double(max(1, measurement.ledger.expected))
    if Self.areEqual(measured, negotiated.doubleValue, within: Self.tolerance + blur) {
      if !Self.areEqual(negotiated.doubleValue, requested.doubleValue, within: Self.tolerance) {
        cause = .driverClamp
      } else {
        // The measured rate equals the negotiated one, so no exposure lengthened the frames. The
        // bus or the camera's encoder therefore lost the missing frames.
        let lost = measurement.ledger.lostDevice + measurement.ledger.corrupt
        cause = lost * 20 > measurement.ledger.expected ? .bandwidth : nil
      }
    } else if weaknesses.contains(.keepsLongExposure) {
      cause = .exposure
    } else if weaknesses.contains(.keepsDynamicFrameRate), measured < negotiated.doubleValue {
      cause = .lowLight
    } else {
      cause = .falseReport
    }
  }

  private static func areEqual(_ a: Double, _ b: Double, within share: Double) -> Bool {
    abs(a - b) <= share * max(a, b)
  }
}

extension DeviceInput {
  /// The duration of a rate measurement, from the first frame.
  public static let verificationDuration = MediaTime(microseconds: 500_000)

  /// Measures whether the device delivers the negotiated rate, and shortens the exposure if the
  /// rate is too low.
  ///
  /// The stream is on during the call, for 0.5 s of frames. If the camera delivers a lower rate
  /// although its controls forbid that, the exposure is set manually to less than the frame
  /// duration. The rate is then measured again. The call blocks.
  ///
  /// - Parameter isStopped: Called after each frame. True ends the measurement early.
  /// - Returns: The three rates and the reason for a difference. A wrong rate does not throw.
  /// - Throws: `MediaError` if the device fails or delivers no frames.
  public func verifyFrameRate(
    until isStopped: () -> Bool = { false }
  ) throws(MediaError) -> FrameRateVerification {
    let first = try verify(isStopped)
    guard !first.isLocked, first.cause != .driverClamp, first.cause != .bandwidth, !isStopped(),
      let guardian = driver.exposureGuard, guardian.canExposeManually
    else { return first }
    guardian.willExposeManually()
    return try verify(isStopped)
  }

  private func verify(_ isStopped: () -> Bool) throws(MediaError) -> FrameRateVerification {
    judge(try measure(for: Self.verificationDuration, until: isStopped))
  }

  /// Compares a measured frame rate with the requested and the negotiated one, and finds the reason
  /// if they differ.
  package func judge(_ measurement: RateMeasurement) -> FrameRateVerification {
    FrameRateVerification(
      requested: requestedFrameRate, negotiated: negotiatedFrameRate, measurement: measurement,
      weaknesses: driver.exposureGuard?.weaknesses ?? [])
  }

  /// The names of the controls that the camera did not restore when the stream ended.
  package var unrestoredControls: [String] { driver.exposureGuard?.unrestored ?? [] }
}
