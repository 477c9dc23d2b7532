// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The scene in front of a synthetic camera.
package enum SyntheticScene: Hashable, Sendable {
  /// A ball that bounces beside a ruler, and a stop-watch.
  case ball(BouncingBall)
  /// Diagonal stripes that move upward.
  case pattern

  /// The ball whose contacts with the ground are heard as clicks.
  ///
  /// The pattern does not show a ball, but its audio clicks like the default ball.
  package var ball: BouncingBall {
    switch self {
    case .ball(let ball): ball
    case .pattern: BouncingBall()
    }
  }

  /// The options of a device name that select the scene of the synthetic camera.
  struct Options {
    private let parts: DeviceSpecifier
    private var isPattern = false
    private var height: Rational?
    private var period: Rational?

    init(of parts: DeviceSpecifier) { self.parts = parts }

    mutating func setScene(_ text: String) throws(MediaError) {
      guard text == "ball" || text == "pattern" else {
        throw parts.failure(
          "scene=\(text) is not a scene", recovery: "write scene=ball or scene=pattern")
      }
      isPattern = text == "pattern"
    }

    /// Reads a height in meters: `0.8`, `3/4`.
    mutating func setHeight(_ text: String) throws(MediaError) {
      guard let height = try? Rational(parsing: text),
        BouncingBall(height: height, period: 1) != nil
      else {
        throw parts.failure(
          "height=\(text) is not a height of the ball in meters",
          recovery: "write 0.01 to 1.3 with at most six digits: height=0.8")
      }
      self.height = height
    }

    /// Reads a period in seconds: `0.5`, `2/3`, `500ms`.
    mutating func setPeriod(_ text: String) throws(MediaError) {
      guard let period = (try? Rational(parsing: text)) ?? (try? MediaTime(parsing: text).seconds),
        BouncingBall(height: 1, period: period) != nil
      else {
        throw parts.failure(
          "period=\(text) is not a period of the ball in seconds",
          recovery: "write 0.1 to 60 with at most six digits: period=0.5")
      }
      self.period = period
    }

    /// The selected scene, with the values of a ball on Earth by default.
    ///
    /// - Throws: `MediaError` with `.badName` if a height or a period is given for the pattern.
    func scene() throws(MediaError) -> SyntheticScene {
      let standard = BouncingBall()
      guard isPattern else {
        return .ball(
          BouncingBall(height: height ?? standard.height, period: period ?? standard.period)
            ?? standard)
      }
      guard height == nil, period == nil else {
        throw parts.failure(
          "scene=pattern has no ball for height= or period=",
          recovery: "leave them out, or choose scene=ball")
      }
      return .pattern
    }
  }
}
