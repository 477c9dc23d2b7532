// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore

/// How much of the picture must change to give a trigger: the first such picture after a quiet
/// period.
///
/// Pictures a thirtieth of a second apart are compared by how bright the parts of a grid are, so it
/// is known that soon after the motion, and takes little. What makes the whole picture brighter or
/// darker, such as a lamp, is no motion.
public struct MotionTrigger: Hashable, Sendable {
  /// Which share of the picture must change, above 0 up to 1.
  public var share: Double
  /// How long less must have changed before the next trigger.
  public var quietPeriod: MediaTime

  /// Makes settings; a motion that goes on for longer than the quiet period is one trigger.
  public init(share: Double = 0.02, quietPeriod: MediaTime = MediaTime(seconds: 1)) {
    self.share = share
    self.quietPeriod = quietPeriod
  }

  /// The time from one picture that is looked at to the next.
  static let interval = MediaTime(microseconds: 33_000)

  /// Looks at pictures in order.
  struct Detector {
    private static let (columns, rows) = (32, 24)
    /// How much brighter or darker a part must become, of 255: several times what a sensor's noise
    /// makes of the mean of so many pixels.
    private static let step = 8.0

    private let settings: MotionTrigger
    private var last: [Double] = []
    /// When something last moved, in microseconds of the capture clock.
    private var lastMotion: Int64?

    init(_ settings: MotionTrigger) { self.settings = settings }

    /// Whether a grey picture, captured at a time in microseconds, gives a trigger.
    mutating func see(_ picture: PixelBuffer, at time: Int64) -> Bool {
      let means = Self.means(picture)
      defer { last = means }
      guard last.count == means.count, !means.isEmpty else { return false }
      let changes = zip(means, last).map { $0 - $1 }
      let common = changes.sorted()[changes.count / 2]
      let moved = changes.count { abs($0 - common) >= Self.step }
      guard moved > 0, Double(moved) >= settings.share * Double(changes.count) else { return false }
      let quiet =
        (try? settings.quietPeriod.converted(to: 1_000_000, rounding: .towardPositiveInfinity))?
        .value ?? .max
      defer { lastMotion = time }
      return lastMotion.map { time - $0 > quiet } ?? true
    }

    /// How bright the parts of a picture are.
    private static func means(_ picture: PixelBuffer) -> [Double] {
      let (width, height, pixels) = (picture.width, picture.height, picture.bytes)
      let (columns, rows) = (min(columns, width), min(rows, height))
      guard columns > 0, rows > 0, width * height <= pixels.count else { return [] }
      var means: [Double] = []
      for row in 0..<rows {
        let lines = row * height / rows..<(row + 1) * height / rows
        for column in 0..<columns {
          let places = column * width / columns..<(column + 1) * width / columns
          var sum = 0
          for line in lines {
            for position in places { sum += Int(pixels[line * width + position]) }
          }
          means.append(Double(sum) / Double(lines.count * places.count))
        }
      }
      return means
    }
  }
}
