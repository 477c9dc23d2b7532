// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery

struct BouncingBallTests {
  /// The Newtonian motion of a ball that leaves the ground at the same speed after each contact.
  private struct Model {
    let ball: BouncingBall

    /// Counts the contacts up to a time, and then computes the height.
    func state(at time: Rational) -> (contact: Int64, height: Rational) {
      var (contact, since) = (Int64(0), time)
      while since >= ball.period {
        since -= ball.period
        contact += 1
      }
      let gravity = 2 * ball.height / (ball.period / 2) / (ball.period / 2)
      let speed = gravity * (ball.period / 2)
      return (contact, speed * since - gravity * since * since / 2)
    }
  }

  @Test func `The ball height and contacts follow a model of gravity`() throws {
    var random = SeededGenerator(seed: 21)
    for _ in 0..<50 {
      let ball = try #require(
        BouncingBall(
          height: Rational(.random(in: 1...130, using: &random), over: 100),
          period: Rational(
            .random(in: 1...30, using: &random), over: .random(in: 1...10, using: &random))
        ))
      let model = Model(ball: ball)
      #expect(ball.gravity == 2 * ball.height / (ball.period / 2) / (ball.period / 2))
      for _ in 0..<20 {
        let time = Rational(
          .random(in: 0...10_000, using: &random), over: .random(in: 1...2_000, using: &random))
        let state = model.state(at: time)
        #expect(ball.lastContact(at: time) == state.contact, "\(ball) \(time)")
        #expect(ball.height(at: time) == state.height, "\(ball) \(time)")
      }
    }
  }

  @Test func `The ball is on the ground at contacts and peaks between them`() {
    let ball = BouncingBall()
    for number in [0, 1, 59, 1 << 40] as [Int64] {
      let contact = ball.time(ofContact: number)
      #expect(contact == Rational(number))
      #expect(ball.height(at: contact) == 0)
      #expect(ball.lastContact(at: contact) == number)
      #expect(ball.height(at: contact + Rational(1, over: 2)) == ball.height)
      #expect(ball.height(at: contact + Rational(1, over: 4)) == ball.height * Rational(3, over: 4))
    }
    #expect(ball.gravity == Rational(1226, over: 125))
  }

  @Test func `The ball height never overflows at late times`() throws {
    let ball = try #require(
      BouncingBall(
        height: Rational(999_983, over: 999_979), period: Rational(999_961, over: 999_959)))
    for frame in [1, Int64(1) << 40, .max] {
      let time = Rational(frame) / Rational(60_000, over: 1_001)
      let height = ball.height(at: time)
      #expect(height.isValid && height >= 0 && height <= ball.height)
    }
  }

  @Test func `Refuses a ball with an invalid height or bounce period`() {
    for (height, period) in [
      (Rational(0), Rational(1)), (-1, 1), (Rational(131, over: 100), 1), (.invalid, 1), (1, 0),
      (1, Rational(1, over: 11)), (1, 61), (1, .invalid), (Rational(1, over: 101), 1),
      (Rational(1_000_001, over: 1_000_003), 1), (1, Rational(1, over: 3_000_000)),
    ] as [(Rational, Rational)] {
      #expect(BouncingBall(height: height, period: period) == nil, "\(height) \(period)")
    }
  }
}
