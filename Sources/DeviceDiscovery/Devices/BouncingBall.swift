// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A ball that bounces on the ground forever, without loss of energy.
///
/// It touches the ground at time 0 and then once per period. Between two contacts it rises and
/// falls under gravity: `height(t) = height * 4u(1 - u)`, where `u` is the fraction of the period
/// since the last contact.
package struct BouncingBall: Hashable, Sendable {
  /// The greatest height of the ball's lowest point above the ground, in meters.
  package let height: Rational
  /// The time from one contact with the ground to the next, in seconds.
  package let period: Rational

  /// The supported heights of the bounces, in meters.
  package static let heights = Rational(1, over: 100)...Rational(13, over: 10)
  /// The supported times between two contacts with the ground, in seconds.
  package static let periods = Rational(1, over: 10)...Rational(60)

  /// Creates a ball that bounces once per second, with a gravity of 9.808 m/s², as on Earth.
  package init() {
    height = Rational(613, over: 500)
    period = 1
  }

  /// Creates a ball, or returns nil if a value is unsupported.
  ///
  /// Numerators and denominators above a million are unsupported, because the exact position could
  /// overflow.
  package init?(height: Rational, period: Rational) {
    guard Self.heights.contains(height), Self.periods.contains(period), height.isSmall,
      period.isSmall
    else { return nil }
    (self.height, self.period) = (height, period)
  }

  /// The acceleration of the ball by gravity, in meters per second squared.
  package var gravity: Rational { 8 * height / (period * period) }

  /// The number of the last contact with the ground at or before a time in seconds.
  ///
  /// Contact 0 is at time 0.
  package func lastContact(at time: Rational) -> Int64 {
    guard let number = try? (time / period).rounded(.towardNegativeInfinity) else { return 0 }
    return Int64(clamping: number)
  }

  /// The time at which the ball touches the ground for the given contact number, in seconds.
  package func time(ofContact number: Int64) -> Rational { Rational(number) * period }

  /// The height of the ball's lowest point above the ground in meters, at a time in seconds.
  package func height(at time: Rational) -> Rational {
    let share = time / period - Rational(lastContact(at: time))
    return height * (4 * share * (1 - share))
  }
}

extension Rational {
  fileprivate var isSmall: Bool { max(numerator, denominator) <= 1_000_000 }
}
