// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `track`, and its table.
struct TrackDocument: Encodable {
  /// An object in one frame.
  struct Row: Encodable {
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
    /// The capture time since the first frame of the movie; nil if it is unknown.
    let seconds: Double?
    /// The capture time; nil if the file does not have it.
    let capture: MediaTime?
    let vxMps: Double?
    let vyMps: Double?

    /// The point as a line of CSV.
    fileprivate func line(ofObject number: Int) -> String {
      func field(_ value: Double?, _ digits: Int) -> String {
        value.map { decimal($0, digits) } ?? ""
      }
      let captured = capture.map { String($0.wholeNanoseconds) } ?? ""
      return "\(index),\(pts.wholeNanoseconds),\(field(x, 3)),\(field(y, 3)),"
        + "\(decimal(score, 4)),\(field(xM, 6)),\(field(yM, 6)),\(field(speedMps, 6)),"
        + "\(field(speedUncertaintyMps, 6)),\(number),\(field(seconds, 9)),\(captured),"
        + "\(field(vxMps, 6)),\(field(vyMps, 6))"
    }
  }

  /// A run of frames in which an object was lost.
  struct Lost: Encodable {
    let firstIndex: Int
    let lastIndex: Int
    let pts: MediaTime
  }

  /// A marked object.
  struct Object: Encodable {
    /// The number of the object, from 1, as in the table.
    let object: Int
    /// The left edge, upper edge, width and height in pixels of the frame.
    let box: [Int]
    let frameCount: Int
    let foundCount: Int
    let lost: [Lost]
    let points: [Row]
  }

  /// The axes of all positions.
  struct Axes: Encodable {
    let yAxis: ImageAxes.VerticalDirection
    let origin: [Double]
  }

  let schema = schemaName("track")
  let file: String
  let csv: String?
  let overlay: String?
  let method: ObjectTracker.Method
  let metersPerPixel: Double?
  let time: MeasuredTime
  let axes: Axes
  let objects: [Object]
  /// The number of tracked frames that were synthesized and not captured.
  let framesSynthesized: Int
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  let dryRun: Bool
  /// The error if an object was lost in all frames.
  var problem: CommandError?

  private enum CodingKeys: CodingKey {
    case schema, file, csv, overlay, method, metersPerPixel, axes, objects
    case framesSynthesized, notes, dryRun, error
    // The values of the first object.
    case frameCount, foundCount, lost, points
  }

  init(
    file: String, csv: String?, overlay: String?, tracks: [ObjectTrack], of asset: Asset,
    scale: LengthScale?, axes: ImageAxes, clock: CaptureClock, _ timing: ClockOptions,
    framesSynthesized: Int, notes: [String], dryRun: Bool
  ) {
    (self.framesSynthesized, self.notes) = (framesSynthesized, notes)
    (self.file, self.csv, self.overlay, self.dryRun) = (file, csv, overlay, dryRun)
    let indices = tracks.flatMap { $0.points.map(\.index) }
    time = MeasuredTime(timing, clock, frames: (indices.min() ?? 0)..<(indices.max() ?? 0) + 1)
    let start = clock.seconds(ofFrame: 0)
    self.axes = Axes(yAxis: axes.verticalDirection, origin: [axes.origin.x, axes.origin.y])
    method = tracks.first?.method ?? .patch
    metersPerPixel = scale?.metersPerPixel
    let rows = asset.frameTimingRows()
    objects = tracks.enumerated().map { number, track in
      let speeds = track.speeds(clock)
      let velocities = track.velocities(clock)
      let points = track.points.indices.map { index in
        let point = track.points[index]
        let position = point.position.map(axes.coordinates(of:))
        let speed = scale.flatMap { scale in speeds[index].map { scale.meters(of: $0) } }
        let velocity = velocities[index].map(axes.coordinates(of:))
        func meters(_ pixels: Double?) -> Double? {
          pixels.flatMap { pixels in scale.map { pixels * $0.metersPerPixel } }
        }
        return Row(
          index: point.index, pts: point.time, x: position?.x, y: position?.y,
          uncertaintyPx: point.uncertainty, score: point.score, ambiguous: point.isAmbiguous,
          xM: meters(position?.x), yM: meters(position?.y),
          speedMps: speed?.value, speedUncertaintyMps: speed?.uncertainty,
          seconds: start.flatMap { start in
            clock.seconds(ofFrame: point.index).map { ($0 - start).doubleValue }
          },
          capture: rows.indices.contains(point.index) ? rows[point.index].captureTime : nil,
          vxMps: meters(velocity?.x), vyMps: meters(velocity?.y))
      }
      return Object(
        object: number + 1,
        box: [track.box.x, track.box.y, track.box.width, track.box.height],
        frameCount: points.count, foundCount: points.count { $0.x != nil },
        lost: track.lost.map {
          Lost(firstIndex: $0.firstIndex, lastIndex: $0.lastIndex, pts: $0.time)
        }, points: points)
    }
  }

  func encode(to encoder: any Encoder) throws {
    try time.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schema, forKey: .schema)
    try container.encode(file, forKey: .file)
    try container.encodeIfPresent(csv, forKey: .csv)
    try container.encodeIfPresent(overlay, forKey: .overlay)
    try container.encode(method, forKey: .method)
    try container.encodeIfPresent(metersPerPixel, forKey: .metersPerPixel)
    try container.encode(axes, forKey: .axes)
    try container.encode(objects, forKey: .objects)
    try container.encode(objects.first?.frameCount ?? 0, forKey: .frameCount)
    try container.encode(objects.first?.foundCount ?? 0, forKey: .foundCount)
    try container.encode(objects.first?.lost ?? [], forKey: .lost)
    try container.encode(objects.first?.points ?? [], forKey: .points)
    try container.encode(framesSynthesized, forKey: .framesSynthesized)
    try container.encode(notes, forKey: .notes)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encodeIfPresent(problem.map(ErrorDetails.init), forKey: .error)
  }

  /// One line of CSV per frame and object, after a header; the objects in order.
  var table: String {
    let header =
      "index,pts_ns,x,y,score,x_m,y_m,speed_mps,speed_uncertainty_mps,object,seconds,capture_ns,"
      + "vx_mps,vy_mps"
    let lines = objects.flatMap { object in
      object.points.map { $0.line(ofObject: object.object) }
    }
    return ([header] + lines).map { "\($0)\n" }.joined()
  }
}
