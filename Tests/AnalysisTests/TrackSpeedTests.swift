// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Measures the speeds of objects whose true speeds are known.
struct TrackSpeedTests {
  /// A motion in pixels per frame.
  enum Motion: String, CaseIterable {
    case still, uniform, accelerated

    func speed(_ random: inout SeededGenerator) -> Point {
      self == .still
        ? Point(x: 0, y: 0)
        : Point(
          x: .random(in: 1..<3, using: &random), y: .random(in: 0.5..<2, using: &random))
    }

    /// The acceleration of a falling ball, in pixels per frame squared.
    var acceleration: Double { self == .accelerated ? 0.4 : 0 }
  }

  /// Each motion is tracked 20 times with other noise, or 100 times in a full test run.
  @Test(arguments: ObjectTracker.Method.allCases, Motion.allCases)
  func `The uncertainty covers the true speed of a tracked object`(
    method: ObjectTracker.Method, motion: Motion
  ) throws {
    var tally = IntervalTally()
    let count = RunSize.cases(20, full: 100)
    for seed in 0..<UInt64(count) {
      var random = SeededGenerator(seed: 500 + seed)
      let box = PixelRect(x: 17, y: 17, width: 27, height: 27)
      let first = Point(
        x: 30 + .random(in: 0..<1, using: &random), y: 30 + .random(in: 0..<1, using: &random))
      let speed = motion.speed(&random)
      let isColor = method == .color
      let marked = ObjectTrackerTests.image(first, noise: 5, isColor: isColor, &random)
      let match: (UprightFrames.Image, Point) -> ObjectMatch?
      switch method {
      case .patch:
        let matcher = PatchMatcher(
          try #require(GrayImage(marked, x: 17, y: 17, width: 27, height: 27)))
        match = { matcher.match(in: $0, near: $1, reach: 8) }
      case .color:
        let matcher = try #require(ColorMatcher(marked, box))
        match = { matcher.match(in: $0, near: $1, reach: 8) }
      }
      let points = try (0..<5).map { index -> TrackedPoint in
        let time = Double(index)
        let center = Point(
          x: first.x + speed.x * time,
          y: first.y + speed.y * time + motion.acceleration / 2 * time * time)
        let image = ObjectTrackerTests.image(center, noise: 5, isColor: isColor, &random)
        let found = try #require(match(image, center))
        return TrackedPoint(
          index: index, time: MediaTime(Int64(index), over: 240), position: found.position,
          uncertainty: found.deviation * ConfidenceInterval.factor, score: found.score,
          isAmbiguous: false)
      }
      let found = try #require(ObjectTrack(method: method, box: box, points: points).speeds()[2])
      tally.add(found, truth: hypot(speed.x, speed.y + motion.acceleration * 2) * 240)
    }
    print("speed, \(method), \(motion): \(tally)")
    #expect(tally.covered * 100 >= 95 * count)
    // The RMS of 20 errors has a standard deviation of 16 % of that RMS.
    #expect(tally.width <= (RunSize.isFull ? 3 : 4) * tally.deviation)
  }

  /// Tracks a bouncing ball.
  ///
  /// The errors of its positions are `scatter` times the stated uncertainty.
  private static func bounce(
    at instant: Double = 30, scatter: Double, times: [Int], lost: Set<Int> = [], seed: UInt64
  ) -> (track: ObjectTrack, truth: [Double]) {
    var random = SeededGenerator(seed: seed)
    let points = times.enumerated().map { index, tick in
      let after = Double(tick) - instant
      let fall = after < 0 ? -3 * after : 2.5 * after
      let position = Point(
        x: 2 * after + random.normal() * 0.05 * scatter,
        y: 400 - fall + 0.05 * after * after + random.normal() * 0.05 * scatter)
      let isLost = lost.contains(tick)
      return TrackedPoint(
        index: index, time: MediaTime(Int64(tick), over: 240), position: isLost ? nil : position,
        uncertainty: isLost ? nil : 0.05 * ConfidenceInterval.factor, score: 1,
        isAmbiguous: false)
    }
    let truth = times.map { tick in
      let after = Double(tick) - instant
      return hypot(2, (after < 0 ? 3 : -2.5) + 0.1 * after) * 240
    }
    let box = PixelRect(x: 0, y: 0, width: 9, height: 9)
    return (ObjectTrack(method: .color, box: box, points: points), truth)
  }

  @Test(arguments: [1.0, 3])
  func `A bounce widens the speed uncertainty only near the bounce`(scatter: Double) throws {
    // Some frames are missing, so that frame intervals differ.
    let times = (0..<70).filter { ![11, 12, 20, 45, 52, 53, 54].contains($0) }
    var (around, elsewhere) = (IntervalTally(), IntervalTally())
    for seed in 0..<100 as Range<UInt64> {
      let (track, truth) = Self.bounce(scatter: scatter, times: times, seed: seed)
      for (index, speed) in track.speeds().enumerated() {
        guard let speed else { continue }
        // At the bounce itself, the ball has no defined speed.
        switch abs(times[index] - 30) {
        case 0: break
        case 1: around.add(speed, truth: truth[index])
        default: elsewhere.add(speed, truth: truth[index])
        }
      }
    }
    print("bounce: \(around) next to it, \(elsewhere) elsewhere")
    #expect(around.covered * 100 >= 95 * around.count)
    #expect(elsewhere.covered * 100 >= 95 * elsewhere.count)
    #expect(elsewhere.width <= 3 * elsewhere.deviation)
    #expect(around.width > 3 * elsewhere.width)
  }

  @Test(arguments: [28, 31, 32], [1.0, 3])
  func `A bounce next to a lost frame widens the speed uncertainty`(
    lost: Int, scatter: Double
  ) throws {
    var tallies: [Int: IntervalTally] = [:]
    for seed in 0..<100 as Range<UInt64> {
      let (track, truth) = Self.bounce(
        at: 30.5, scatter: scatter, times: Array(0..<60), lost: [lost], seed: seed)
      for (index, speed) in track.speeds().enumerated() {
        guard let speed else { continue }
        tallies[(29...32).contains(index) ? index : 0, default: IntervalTally()].add(
          speed, truth: truth[index])
      }
    }
    for (index, tally) in tallies {
      print("bounce at 30.5, \(lost) lost, \(index): \(tally)")
      #expect(tally.covered * 100 >= 95 * tally.count, "\(index)")
    }
    let rest = try #require(tallies[0])
    #expect(rest.width <= 3 * rest.deviation)
    #expect(try #require(tallies[30]).width > 3 * rest.width)
  }

  /// Tracks without five consecutive known positions.
  ///
  /// The scatter of the positions must widen the uncertainty intervals.
  @Test(arguments: [1.0, 3, 10], [3, 4, 28])
  func `Scattered positions of a short track widen speed uncertainty`(scatter: Double, count: Int) {
    var tally = IntervalTally()
    for seed in 0..<400 as Range<UInt64> {
      let (track, truth) = Self.bounce(
        scatter: scatter, times: Array(0..<count), lost: [4, 9, 14, 19, 24], seed: seed)
      for (speed, truth) in zip(track.speeds(), truth) {
        if let speed { tally.add(speed, truth: truth) }
      }
    }
    print("short track: \(tally)")
    #expect(tally.covered * 100 >= 95 * tally.count)
    // With fewer positions, the scatter is less certain and an acceleration has more influence.
    #expect(tally.width <= (count > 4 ? 5 : 8) * tally.deviation)
  }
}

/// Compares the errors of measured values with the stated uncertainty intervals.
struct IntervalTally: CustomStringConvertible {
  private var squares = 0.0
  private var widths = 0.0
  private(set) var count = 0
  /// The number of intervals that contain the true value.
  private(set) var covered = 0

  /// The root of the mean squared error.
  var deviation: Double { (squares / Double(count)).squareRoot() }
  /// The mean half-width of the intervals.
  var width: Double { widths / Double(count) }

  mutating func add(_ measured: MeasuredValue, truth: Double) {
    let error = measured.value - truth
    squares += error * error
    widths += measured.uncertainty
    count += 1
    covered += abs(error) <= measured.uncertainty ? 1 : 0
  }

  var description: String {
    "RMS error \(deviation), mean half-width \(width), \(covered) of \(count) covered"
  }
}
