// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankRaster

/// Finds an object of one color, such as a ball, by the center of the pixels that have the color.
struct ColorMatcher {
  private let width: Int
  private let height: Int
  /// The mean color in the middle of the object's box, in RGB.
  private let color: SIMD3<Float>
  /// The area of the object in pixels, and half the longer side of its box.
  private let area: Double
  private let radius: Double

  /// Learns the color in the middle of a box; nil if the background has nearly the same color.
  init?(_ image: UprightFrames.Image, _ box: PixelRect) {
    width = box.width
    height = box.height
    var (sum, count): (SIMD3<Float>, Float) = (.zero, 0)
    for y in box.y + box.height / 3...box.y + 2 * box.height / 3 {
      for x in box.x + box.width / 3...box.x + 2 * box.width / 3 {
        sum += Self.pixel(image, x, y)
        count += 1
      }
    }
    color = sum / max(1, count)
    radius = Double(max(width, height)) / 2
    guard let background = Self.background(image, box),
      Self.length(color - background.color) >= 24
    else { return nil }
    var area = 0.0
    for y in box.y..<box.y + box.height {
      for x in box.x..<box.x + box.width {
        let share = Self.share(Self.pixel(image, x, y), background.color, color)
        if share > 0.5 { area += 1 }
      }
    }
    guard area >= 4 else { return nil }
    self.area = area
  }

  /// Searches an image around a position of the object's center.
  ///
  /// - Returns: Nil if nothing has the color.
  func match(in image: UprightFrames.Image, near center: Point, reach: Int) -> ObjectMatch? {
    let x = max(0, Int(center.x) - reach - width / 2)
    let y = max(0, Int(center.y) - reach - height / 2)
    let right = min(image.width, Int(center.x) + reach + width / 2 + 1)
    let bottom = min(image.height, Int(center.y) + reach + height / 2 + 1)
    guard right - x > 2, bottom - y > 2 else { return nil }
    let window = PixelRect(x: x, y: y, width: right - x, height: bottom - y)
    guard let background = Self.background(image, window) else { return nil }
    let regions = regions(image, window, background.color)
    guard let best = regions.max(by: { score($0) < score($1) }) else { return nil }
    let rival = regions.filter { $0.start != best.start }.map(score).max() ?? 0
    guard var match = centered(image, best.center, background) else { return nil }
    match.score = score(best)
    match.resemblance = match.score * colorAgreement(image, match.position, background.color)
    match.rival = rival
    return match
  }

  /// A region of adjacent pixels that have the color of the object.
  private struct Region {
    let start: Int
    let count: Double
    let center: Point
  }

  /// How well the size of a region fits that of the marked object, from 0 to 1.
  private func score(_ region: Region) -> Double {
    min(region.count / area, area / region.count)
  }

  private func regions(
    _ image: UprightFrames.Image, _ window: PixelRect, _ background: SIMD3<Float>
  ) -> [Region] {
    var isFree = [Bool](repeating: false, count: window.width * window.height)
    for row in 0..<window.height {
      for column in 0..<window.width {
        let pixel = Self.pixel(image, window.x + column, window.y + row)
        isFree[row * window.width + column] = Self.share(pixel, background, color) > 0.5
      }
    }
    var regions: [Region] = []
    for start in isFree.indices where isFree[start] {
      isFree[start] = false
      var (open, count, sumX, sumY) = ([start], 0.0, 0.0, 0.0)
      while let index = open.popLast() {
        let (column, row) = (index % window.width, index / window.width)
        count += 1
        sumX += Double(column) + 0.5
        sumY += Double(row) + 0.5
        for (i, j) in [(column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1)]
        where (0..<window.width).contains(i) && (0..<window.height).contains(j) {
          let next = j * window.width + i
          if isFree[next] {
            isFree[next] = false
            open.append(next)
          }
        }
      }
      guard count >= area / 8 else { continue }
      regions.append(
        Region(
          start: start, count: count,
          center: Point(
            x: Double(window.x) + sumX / count, y: Double(window.y) + sumY / count)))
    }
    return regions
  }

  /// The center of gravity of the color around a region's center.
  private func centered(
    _ image: UprightFrames.Image, _ start: Point,
    _ background: (color: SIMD3<Float>, deviation: Double)
  ) -> ObjectMatch? {
    var center = start
    let contrast = Double(Self.length(color - background.color))
    var deviation = 0.0
    for _ in 0..<4 {
      let reach = radius + 2.5
      var (total, sumX, sumY, lever) = (0.0, 0.0, 0.0, 0.0)
      let (left, top) = (max(0, Int(center.x - reach)), max(0, Int(center.y - reach)))
      let right = max(left, min(image.width, Int(center.x + reach) + 1))
      let bottom = max(top, min(image.height, Int(center.y + reach) + 1))
      for y in top..<bottom {
        for x in left..<right {
          let (right, down) = (Double(x) + 0.5 - center.x, Double(y) + 0.5 - center.y)
          guard hypot(right, down) <= reach else { continue }
          let share = Double(Self.share(Self.pixel(image, x, y), background.color, color))
          // Ignores faint pixels. An uneven background has more of them on one side, which would
          // move the center.
          guard share > 0.2 else { continue }
          total += share
          sumX += share * right
          sumY += share * down
          lever += (right * right + down * down) / 2
        }
      }
      guard total > 1 else { return nil }
      center.x += sumX / total
      center.y += sumY / total
      deviation = background.deviation / contrast * lever.squareRoot() / total
      if hypot(sumX, sumY) / total < 1e-3 { break }
    }
    // Adds a deviation of 0.013 pixels: even without noise, a pixel near the color's threshold may
    // be counted or not.
    return ObjectMatch(
      position: center, deviation: hypot(deviation, 0.013), score: 0, rival: 0, resemblance: 0)
  }

  /// How well the color in the middle of a match agrees with the object's, from 0 to 1.
  private func colorAgreement(
    _ image: UprightFrames.Image, _ center: Point, _ background: SIMD3<Float>
  ) -> Double {
    let (x, y, reach) = (Int(center.x), Int(center.y), max(1, Int(radius / 3)))
    var (sum, count): (SIMD3<Float>, Float) = (.zero, 0)
    for row in max(0, y - reach)..<min(image.height, y + reach + 1) {
      for column in max(0, x - reach)..<min(image.width, x + reach + 1) {
        sum += Self.pixel(image, column, row)
        count += 1
      }
    }
    guard count > 0 else { return 0 }
    let contrast = Self.length(color - background)
    return contrast > 0 ? Double(max(0, 1 - Self.length(sum / count - color) / contrast)) : 0
  }

  private static func pixel(_ image: UprightFrames.Image, _ x: Int, _ y: Int) -> SIMD3<Float> {
    let index = 3 * (y * image.width + x)
    return SIMD3(
      Float(image.bytes[index]), Float(image.bytes[index + 1]), Float(image.bytes[index + 2]))
  }

  private static func length(_ color: SIMD3<Float>) -> Float {
    (color * color).sum().squareRoot()
  }

  /// Returns the fraction of a pixel that the object covers: 0 for the background, 1 for the
  /// object's color.
  private static func share(
    _ pixel: SIMD3<Float>, _ background: SIMD3<Float>, _ color: SIMD3<Float>
  ) -> Float {
    let direction = color - background
    let square = (direction * direction).sum()
    guard square > 0 else { return 0 }
    let offset = pixel - background
    let along = (offset * direction).sum() / square
    // A pixel whose color is far from the line between the two colors shows neither object nor
    // background.
    let rest = offset - along * direction
    return (rest * rest).sum() > square / 4 ? 0 : min(1, along)
  }

  /// The median color of the edge of a box, and the noise in that color.
  private static func background(
    _ image: UprightFrames.Image, _ box: PixelRect
  ) -> (color: SIMD3<Float>, deviation: Double)? {
    var pixels: [SIMD3<Float>] = []
    let (right, bottom) = (box.x + box.width - 1, box.y + box.height - 1)
    for x in box.x...right { for y in [box.y, bottom] { pixels.append(pixel(image, x, y)) } }
    for y in box.y...bottom { for x in [box.x, right] { pixels.append(pixel(image, x, y)) } }
    guard !pixels.isEmpty else { return nil }
    var color = SIMD3<Float>.zero
    for channel in 0..<3 { color[channel] = pixels.map { $0[channel] }.sorted()[pixels.count / 2] }
    // Estimates the noise from the median distance, which is 1.54 standard deviations for noise in
    // three channels.
    let distances = pixels.map { length($0 - color) }.sorted()
    return (color, max(0.3, Double(distances[distances.count / 2]) / 1.54))
  }
}
