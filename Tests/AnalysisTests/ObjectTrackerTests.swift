// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// The share of a pixel that a disk with smooth edges covers.
private func disk(_ x: Int, _ y: Int, _ center: Point, radius: Double) -> Double {
  let distance = hypot(Double(x) + 0.5 - center.x, Double(y) + 0.5 - center.y)
  return min(1, max(0, radius - distance + 0.5))
}

/// Tracks objects whose true positions are known.
struct ObjectTrackerTests {
  /// An image of a disk with noise, in gray or in RGB.
  static func image(
    _ center: Point, noise: Double, isColor: Bool, _ random: inout SeededGenerator
  ) -> UprightFrames.Image {
    var image = UprightFrames.Image(width: 80, height: 64, bytes: [])
    for y in 0..<image.height {
      for x in 0..<image.width {
        let share = disk(x, y, center, radius: 9)
        let levels =
          isColor
          ? [60 + 140 * share, 70 - 30 * share, 80 - 50 * share] : [60 + 120 * share]
        for level in levels {
          image.bytes.append(UInt8(max(0, min(255, level + random.normal() * noise)).rounded()))
        }
      }
    }
    return image
  }

  @Test(arguments: [ObjectTracker.Method.patch, .color])
  func `The uncertainty covers the true position of a tracked disk`(
    method: ObjectTracker.Method
  ) throws {
    var (errors, widths, covered): ([Double], [Double], Int) = ([], [], 0)
    for seed in 0..<100 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      // The center of each disk has a random fraction of a pixel.
      let first = Point(
        x: 30 + .random(in: 0..<1, using: &random), y: 30 + .random(in: 0..<1, using: &random))
      let moved = Point(
        x: first.x + .random(in: 3..<12, using: &random),
        y: first.y - .random(in: 3..<8, using: &random))
      let box = PixelRect(x: 17, y: 17, width: 27, height: 27)
      let marked = Self.image(first, noise: 5, isColor: method == .color, &random)
      let next = Self.image(moved, noise: 5, isColor: method == .color, &random)
      let center = Point(x: 30.5, y: 30.5)
      let found: ObjectMatch?
      let expected: Double
      switch method {
      case .patch:
        let template = try #require(GrayImage(marked, x: 17, y: 17, width: 27, height: 27))
        found = PatchMatcher(template).match(in: next, near: center, reach: 16)
        // The center of the box moves by the same distance as the disk.
        expected = center.x + moved.x - first.x
      case .color:
        found = try #require(ColorMatcher(marked, box)).match(in: next, near: center, reach: 16)
        expected = moved.x
      }
      let match = try #require(found)
      let half = match.deviation * ConfidenceInterval.factor
      errors.append(match.position.x - expected)
      widths.append(half)
      covered += abs(match.position.x - expected) <= half ? 1 : 0
    }
    let deviation = (errors.reduce(0) { $0 + $1 * $1 } / 100).squareRoot()
    let width = widths.reduce(0, +) / 100
    print("track \(method): RMS \(deviation) pixels, interval \(width), \(covered) of 100")
    #expect(deviation < 0.1)
    #expect(covered >= 95)
    #expect(width <= 3 * deviation)
  }

  @Test(arguments: [ObjectTracker.Method.patch, .color])
  func `Tracks an object and finds it again after an occlusion`(
    method: ObjectTracker.Method
  ) throws {
    let scratch = try Scratch()
    func center(_ frame: Int) -> Point {
      Point(x: 20 + 2.3 * Double(frame), y: 30 + 8 * sin(Double(frame) / 9))
    }
    let asset = try PaintedMovie(width: 160, height: 64, rate: 240, count: 50)
      .write(
        to: scratch.file("a.mov"),
        color: { frame, x, y in
          // A wall hides the object in the middle of its path.
          if (70..<95).contains(x) { return (40, 45, 50) }
          let share = disk(x, y, center(frame), radius: 7)
          return (UInt8(60 + 150 * share), UInt8(70 - 20 * share), UInt8(80 - 50 * share))
        })
    let track = try ObjectTracker(method: method)
      .track(asset, from: .zero, in: PixelRect(x: 10, y: 20, width: 20, height: 20))
    #expect(track.points.map(\.index) == Array(0..<50))
    let (first, last) = (try #require(track.lost.first), try #require(track.lost.last))
    #expect((17...27).contains(first.firstIndex) && (28...39).contains(last.lastIndex))
    for point in track.points where point.index < 17 || point.index > 39 {
      let position = try #require(point.position)
      #expect(position.distance(to: center(point.index)) < 0.2, "\(point)")
    }
    // The object moves 2.3 pixels per frame to the right and up to 0.9 down.
    let speed = try #require(track.speeds()[7])
    let true7 = hypot(2.3, 8.0 / 9 * cos(7.0 / 9)) * 240
    #expect(abs(speed.value - true7) <= max(speed.uncertainty, 3))
    // If a clip plays at 1/8 speed, real time is 8 times shorter and the object 8 times faster.
    let real = try #require(track.speeds(timeScale: Rational(1, over: 8))[7])
    #expect(abs(real.value / speed.value - 8) < 1e-9)
    let overlay = try TrackOverlay(track).svg(over: asset)
    #expect(overlay.hasPrefix("<svg") && overlay.hasSuffix("</svg>\n"))
    #expect(overlay.contains("polyline"))
  }

  @Test(arguments: [ObjectTracker.Method.patch, .color])
  func `An object that left is not replaced by another`(method: ObjectTracker.Method) throws {
    let scratch = try Scratch()
    func center(_ frame: Int) -> Point { Point(x: 60 + 5.2 * Double(frame), y: 40) }
    // From frame 40 on, a smaller and paler disk lies on the way of the first one, which is outside.
    let asset = try PaintedMovie(width: 160, height: 80, rate: 240, count: 150)
      .write(
        to: scratch.file("a.mov"),
        color: { frame, x, y in
          let own = disk(x, y, center(frame), radius: 8)
          let other = frame < 40 ? 0 : disk(x, y, Point(x: 132, y: 44), radius: 5.6) * 0.75
          let share = max(own, other)
          return (UInt8(60 + 150 * share), UInt8(70 - 20 * share), UInt8(80 - 50 * share))
        })
    let track = try ObjectTracker(method: method)
      .track(asset, from: .zero, in: PixelRect(x: 48, y: 28, width: 24, height: 24))
    for point in track.points {
      let isInside = center(point.index).x < 140
      if point.index < 14 { #expect(point.position != nil, "\(point)") }
      if !isInside { #expect(point.position == nil || point.index < 22, "\(point)") }
    }
    #expect(!track.isLostThroughout && track.lost.last?.lastIndex == 149)
  }

  @Test func `Several objects are tracked as each would be alone`() throws {
    let scratch = try Scratch()
    let asset = try PaintedMovie(width: 160, height: 80, rate: 240, count: 24)
      .write(to: scratch.file("a.mov")) { frame, x, y in
        let one = disk(x, y, Point(x: 24 + 3 * Double(frame), y: 20), radius: 7)
        let other = disk(x, y, Point(x: 130 - 2 * Double(frame), y: 58), radius: 9)
        return UInt8(50 + 120 * max(one, other))
      }
    let objects = [
      ObjectTracker.MarkedObject(at: .zero, in: PixelRect(x: 14, y: 10, width: 20, height: 20)),
      .init(at: MediaTime(1, over: 48), in: PixelRect(x: 108, y: 46, width: 24, height: 24)),
    ]
    let tracker = ObjectTracker()
    let end = MediaTime(20, over: 240)
    let tracks = try tracker.track(asset, objects: objects, until: end)
    let alone = try objects.map { object in
      try tracker.track(asset, from: object.time, in: object.box, until: end)
    }
    #expect(tracks == alone)
    #expect(tracks.map { $0.points.first?.index } == [0, 5])
    #expect(tracks.map { $0.points.last?.index } == [19, 19])
    #expect(tracks.allSatisfy { $0.lost.isEmpty })
    let velocity = try #require(tracks[1].velocities()[5])
    #expect(abs(velocity.x + 480) < 5 && abs(velocity.y) < 5, "\(velocity)")
    let axes = ImageAxes(.up, imageHeight: 80)
    #expect(axes.coordinates(of: Point(x: 3, y: 20)) == Point(x: 3, y: 60))
    #expect(axes.coordinates(of: ImageVelocity(x: 1, y: 2)) == ImageVelocity(x: 1, y: -2))
    let moved = ImageAxes(origin: Point(x: 10, y: 5), imageHeight: 80)
    #expect(moved.coordinates(of: Point(x: 3, y: 20)) == Point(x: -7, y: 15))
  }

  @Test func `Tracking one of many identical grid crossings is ambiguous`() throws {
    let scratch = try Scratch()
    // A grid of equal lines moves: every crossing looks like every other.
    let asset = try PaintedMovie(width: 120, height: 90, rate: 60, count: 5)
      .write(to: scratch.file("a.mov")) { frame, x, y in
        (x + 4 * frame) % 14 == 0 || (y + frame) % 14 == 0 ? 60 : 190
      }
    let track = try ObjectTracker()
      .track(asset, from: .zero, in: PixelRect(x: 50, y: 40, width: 12, height: 12))
    #expect(track.points.dropFirst().allSatisfy { $0.position == nil && $0.isAmbiguous })
    // The position along a straight line cannot be determined.
    let line = try PaintedMovie(width: 120, height: 90, rate: 60, count: 2)
      .write(to: scratch.file("b.mov")) { _, x, _ in x == 60 ? 60 : 190 }
    for box in [
      PixelRect(x: 54, y: 40, width: 12, height: 12), .init(x: 0, y: 0, width: 9, height: 9),
    ] {
      #expect {
        try ObjectTracker().track(line, from: .zero, in: box)
      } throws: {
        ($0 as? MediaError)?.code == .ambiguousMatch
      }
    }
  }

  @Test(arguments: [
    PixelRect(x: -1, y: 0, width: 10, height: 10), .init(x: 0, y: 0, width: 5, height: 10),
    .init(x: 60, y: 0, width: 10, height: 10), .init(x: .max, y: .max, width: .max, height: .max),
    .init(x: 0, y: 0, width: .min, height: .min),
  ])
  func `Refuses to track a box outside the frame`(box: PixelRect) throws {
    let scratch = try Scratch()
    let asset = try PaintedMovie(rate: 60, count: 2)
      .write(to: scratch.file("a.mov")) { _, x, y in UInt8(x + y) }
    for method in ObjectTracker.Method.allCases {
      #expect {
        try ObjectTracker(method: method).track(asset, from: .zero, in: box)
      } throws: {
        ($0 as? MediaError)?.code == .outsideSource
      }
    }
  }
}

/// Measurements of distances and angles in an image, and of its scale.
struct ImageMeasurementTests {
  @Test func `Distances and angles include the uncertainty of their points`()
    throws
  {
    let (vertex, one, other) = (
      Point(x: 100, y: 100), Point(x: 220, y: 130), Point(x: 60, y: 190)
    )
    let scale = try #require(
      LengthScale(
        pixels: MeasuredValue(400, uncertainty: 2), meters: MeasuredValue(1, uncertainty: 0.002)))
    let measurement = ImageMeasurement(pointUncertainty: 1.5)
    var random = SeededGenerator(seed: 2)
    func moved(_ point: Point) -> Point {
      let deviation = 1.5 / 1.96
      return Point(
        x: point.x + random.normal() * deviation, y: point.y + random.normal() * deviation)
    }
    let distance = measurement.distance(from: one, to: other, scale: scale)
    let angle = measurement.angle(at: vertex, between: one, and: other)
    #expect(abs(distance.value - hypot(160, 60) / 400) < 1e-12)
    #expect(abs(angle.value - 99.926) < 0.01)
    var (distances, angles) = (0, 0)
    for _ in 0..<2_000 {
      let (v, a, b) = (moved(vertex), moved(one), moved(other))
      let trueScale = (1 + random.normal() * 0.002 / 1.96) / (400 + random.normal() * 2 / 1.96)
      let inside = abs(a.distance(to: b) * trueScale - distance.value) <= distance.uncertainty
      distances += inside ? 1 : 0
      let other = measurement.angle(at: v, between: a, and: b).value
      angles += abs(other - angle.value) <= angle.uncertainty ? 1 : 0
    }
    #expect((1_870...1_930).contains(distances), "\(distances)")
    #expect((1_870...1_930).contains(angles), "\(angles)")
    #expect(measurement.angle(at: one, between: one, and: other).value.isNaN)
    let beside = Point(x: 1e-170, y: 0)
    let corner = Point(x: 0, y: 0)
    #expect(measurement.distance(from: beside, to: corner).value == 0)
    #expect(measurement.angle(at: corner, between: beside, and: one).value.isNaN)
    #expect(LengthScale(pixels: MeasuredValue(0, uncertainty: 0), meters: distance) == nil)
    #expect(LengthScale(pixels: MeasuredValue(.nan, uncertainty: 0), meters: distance) == nil)
  }
}
