// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `track`, and its table.
struct TrackDocument: Encodable {
  /// The tracked object in one frame.
  struct Point: Encodable {
    let index: Int
    let pts: MediaTime
    let x: Double?
    let y: Double?
    let uncertaintyPx: Double?
    let score: Double
    let ambiguous: Bool
    let xM: Double?
    let yM: Double?
    let speedMps: Double?
    let speedUncertaintyMps: Double?

    /// The point as a line of CSV.
    fileprivate var line: String {
      func field(_ value: Double?, _ digits: Int) -> String {
        value.map { decimal($0, digits) } ?? ""
      }
      return "\(index),\(pts.wholeNanoseconds),\(field(x, 3)),\(field(y, 3)),"
        + "\(decimal(score, 4)),\(field(xM, 6)),\(field(yM, 6)),\(field(speedMps, 6)),"
        + "\(field(speedUncertaintyMps, 6))"
    }
  }

  /// A run of frames in which the object was lost.
  struct Lost: Encodable {
    let firstIndex: Int
    let lastIndex: Int
    let pts: MediaTime
  }

  let schema = schemaName("track")
  let file: String
  let csv: String?
  let overlay: String?
  let method: ObjectTracker.Method
  let frameCount: Int
  let foundCount: Int
  let lost: [Lost]
  let metersPerPixel: Double?
  let clock: CaptureClock.Choice
  let timeSource: CaptureClock.Source
  let timeScale: Rational?
  let timeAssumption: CaptureClock.Assumption?
  let points: [Point]
  /// The number of tracked frames that were synthesized and not captured.
  let framesSynthesized: Int
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  let dryRun: Bool

  init(
    file: String, csv: String?, overlay: String?, track: ObjectTrack, scale: LengthScale?,
    clock: CaptureClock, _ timing: ClockOptions, framesSynthesized: Int, notes: [String],
    dryRun: Bool
  ) {
    (self.framesSynthesized, self.notes) = (framesSynthesized, notes)
    (self.file, self.csv, self.overlay, self.dryRun) = (file, csv, overlay, dryRun)
    let range = (track.points.first?.index ?? 0)..<(track.points.last?.index ?? 0) + 1
    let time = MeasuredTime(timing, clock, frames: range)
    (self.clock, timeSource) = (time.clock, time.timeSource)
    (timeScale, timeAssumption) = (time.timeScale, time.timeAssumption)
    method = track.method
    metersPerPixel = scale?.metersPerPixel
    lost = track.lost.map {
      Lost(firstIndex: $0.firstIndex, lastIndex: $0.lastIndex, pts: $0.time)
    }
    points = zip(track.points, track.speeds(clock)).map { point, speed in
      let meters = scale.flatMap { scale in speed.map { scale.meters(of: $0) } }
      return Point(
        index: point.index, pts: point.time, x: point.position?.x, y: point.position?.y,
        uncertaintyPx: point.uncertainty, score: point.score, ambiguous: point.isAmbiguous,
        xM: scale.flatMap { scale in point.position.map { $0.x * scale.metersPerPixel } },
        yM: scale.flatMap { scale in point.position.map { $0.y * scale.metersPerPixel } },
        speedMps: meters?.value, speedUncertaintyMps: meters?.uncertainty)
    }
    frameCount = points.count
    foundCount = points.count { $0.x != nil }
  }

  /// One line of CSV per frame, after a header.
  var table: String {
    let header = "index,pts_ns,x,y,score,x_m,y_m,speed_mps,speed_uncertainty_mps"
    return ([header] + points.map(\.line)).map { "\($0)\n" }.joined()
  }
}
