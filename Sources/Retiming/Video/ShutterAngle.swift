// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The shutter angle of an imagined camera that captures the output of a constant-rate export.
///
/// The shutter opens at the time of each output frame and stays open for `degrees`/360 of the output
/// period. The period counts in composition time, so at 1/8 speed the blur is 1/8 of that at speed 1.
public struct ShutterAngle: Hashable, Sendable {
  /// The angle in degrees, above 0 and at most 360.
  public let degrees: Rational

  /// The angle of a shutter that never closes.
  public static let full = ShutterAngle(unchecked: 360)

  private init(unchecked degrees: Rational) { self.degrees = degrees }

  /// Makes an angle; nil unless it is above 0 and at most 360 degrees.
  public init?(exactly degrees: Rational) {
    guard degrees.isValid, degrees > .zero, degrees <= 360 else { return nil }
    self.init(unchecked: degrees)
  }

  /// Parses an angle in degrees: `180`, `172.8`, `360/7`.
  ///
  /// - Throws: `MediaError` with `.syntax` for text that is not such an angle, `.notPositive` for a
  ///   denominator of zero, `.overflow` for a number that does not fit.
  public init(parsing text: String) throws(MediaError) {
    guard let angle = ShutterAngle(exactly: try Rational(parsing: text)) else {
      throw MediaError(
        .syntax, "\"\(text)\" is not a shutter angle: write degrees above 0, at most 360")
    }
    self = angle
  }
}
