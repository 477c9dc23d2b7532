// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore

/// Why a device's rate is not the one that was asked for.
public enum FrameRateMismatchReason: String, Hashable, Sendable, Codable {
  /// The driver granted another rate.
  case driverClamp = "driver_clamp"
  /// The camera exposes longer than a frame, because it is dark and it may.
  case lowLight = "low_light"
  /// The exposure set by hand is longer than a frame.
  case exposure
  /// Frames are lost on the way: the bus, or the camera's own compression, is too slow.
  case bandwidth
  /// The driver says that it runs at a rate at which it does not run.
  case falseReport = "false_report"
}

/// A frame rate as it was asked for, as the driver granted it, and as it was measured.
///
/// The three are told apart because each is known to differ from the others: drivers round what
/// they are asked, and cameras do not keep what their drivers say.
public struct FrameRateVerification: Hashable, Sendable, Codable {
  /// The rate that was asked for.
  public let requested: FrameRate
  /// The rate that the driver granted, read back from it.
  public let negotiated: FrameRate
  /// What the device delivered.
  public let measurement: RateMeasurement
  /// Why the measured rate is not the one asked for; nil where it is, or where none was measured.
  public let cause: FrameRateMismatchReason?

  /// Rates nearer to each other than this are the same: crystals differ by some 100 ppm, and
  /// drivers simplify fractions.
  private static let tolerance = 0.005

  /// Whether the rate asked for is the one that is delivered, and every frame in its time.
  public var isLocked: Bool { cause == nil && measurement.frameRate != nil }

  /// Compares the three rates.
  init(
    requested: FrameRate, negotiated: FrameRate, measurement: RateMeasurement,
    weaknesses: Set<ExposureGuard.Weakness>
  ) {
    self.requested = requested
    self.negotiated = negotiated
    self.measurement = measurement
    let measured = measurement.frameRate?.doubleValue ?? 0
    // The first and the last frame each may have come half a period early or late.
    let blur = 1 / Double(max(1, measurement.ledger.expected))
    if Self.areEqual(measured, negotiated.doubleValue, within: Self.tolerance + blur) {
      if !Self.areEqual(negotiated.doubleValue, requested.doubleValue, within: Self.tolerance) {
        cause = .driverClamp
      } else {
        // The camera keeps its time; what is missing got lost on the way.
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
  /// How long a device is watched before its rate counts as proved, from its first frame on.
  public static let proofDuration = MediaTime(microseconds: 500_000)

  /// Measures whether the device keeps the rate it granted, and makes it do so if it can.
  ///
  /// The stream is on meanwhile, for half a second of frames. Where the camera lowers its rate
  /// although its controls forbid it, exposure is set by hand, kept below the frame duration,
  /// and the rate is measured again.
  ///
  /// - Parameter isStopped: Asked after each frame whether to give up.
  /// - Returns: The three rates, and why they differ if they do; a rate that does not hold is no
  ///   error.
  /// - Throws: `MediaError` when the device fails or delivers nothing.
  public func verifyFrameRate(
    until isStopped: () -> Bool = { false }
  ) throws(MediaError) -> FrameRateVerification {
    let first = try proof(isStopped)
    guard !first.isLocked, first.cause != .driverClamp, first.cause != .bandwidth, !isStopped(),
      let guardian = driver.exposureGuard, guardian.canExposeManually
    else { return first }
    guardian.willExposeManually()
    return try proof(isStopped)
  }

  private func proof(_ isStopped: () -> Bool) throws(MediaError) -> FrameRateVerification {
    judge(try measure(for: Self.proofDuration, until: isStopped))
  }

  /// Compares what was measured with what was asked for and granted.
  package func judge(_ measurement: RateMeasurement) -> FrameRateVerification {
    FrameRateVerification(
      requested: requestedFrameRate, negotiated: negotiatedFrameRate, measurement: measurement,
      weaknesses: driver.exposureGuard?.weaknesses ?? [])
  }
}

extension DeviceInput {
  /// The names of the controls that the camera did not take back when the stream ended.
  package var unrestoredControls: [String] { driver.exposureGuard?.unrestored ?? [] }
}
