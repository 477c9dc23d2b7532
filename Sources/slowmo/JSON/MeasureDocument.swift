// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `measure`, and its table.
struct MeasureDocument: Encodable {
  /// A frame and the points marked in it.
  struct Frame {
    let index: Int
    let time: MediaTime
    /// The capture time; nil for a frame of unknown origin.
    let captureTime: MediaTime?
    let points: [ImagePoint]
  }

  /// A distance between two points, or an angle at the second of three points.
  struct Measurement: Encodable {
    let index: Int
    let pts: MediaTime
    let capture: MediaTime?
    /// The numbers of the points, from 1.
    let points: [Int]
    private(set) var pixels: Double?
    private(set) var pixelsUncertainty: Double?
    private(set) var meters: Double?
    private(set) var metersUncertainty: Double?
    private(set) var degrees: Double?
    private(set) var degreesUncertainty: Double?

    fileprivate init(
      _ frame: Frame, _ points: [Int], distance: MeasuredValue, _ scale: LengthScale?
    ) {
      (index, pts, self.points) = (frame.index, frame.time, points)
      capture = frame.captureTime
      (pixels, pixelsUncertainty) = (distance.value, distance.uncertainty)
      let length = scale?.meters(of: distance)
      (meters, metersUncertainty) = (length?.value, length?.uncertainty)
    }

    fileprivate init(_ frame: Frame, _ points: [Int], angle: MeasuredValue) {
      (index, pts, self.points) = (frame.index, frame.time, points)
      capture = frame.captureTime
      // Two points in one place have no angle.
      guard angle.value.isFinite else { return }
      (degrees, degreesUncertainty) = (angle.value, angle.uncertainty)
    }

    /// The measurement as a line of CSV.
    fileprivate var line: String {
      let values = [
        pixels, pixelsUncertainty, meters, metersUncertainty, degrees, degreesUncertainty,
      ].map { $0.map { decimal($0, 6) } ?? "" }
      let names = points.map(String.init).joined(separator: "-")
      return "\(index),\(pts.wholeNanoseconds),\(names),\(values.joined(separator: ",")),"
        + (capture.map { "\($0.wholeNanoseconds)" } ?? "")
    }
  }

  let schema = schemaName("measure")
  let file: String
  let csv: String?
  let pointUncertaintyPx: Double
  let metersPerPixel: Double?
  let clock: CaptureClock.Choice
  let timeSource: CaptureClock.Source
  let timeScale: Rational?
  let timeAssumption: CaptureClock.Assumption?
  let measurements: [Measurement]
  /// The number of measured frames that were synthesized and not captured.
  let framesSynthesized: Int
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  let dryRun: Bool

  init(
    file: String, csv: String?, time: MeasuredTime, frames: [Frame], pointUncertainty: Double,
    scale: LengthScale?, framesSynthesized: Int, notes: [String], dryRun: Bool
  ) {
    (self.framesSynthesized, self.notes) = (framesSynthesized, notes)
    (self.file, self.csv, self.dryRun) = (file, csv, dryRun)
    (clock, timeSource) = (time.clock, time.timeSource)
    (timeScale, timeAssumption) = (time.timeScale, time.timeAssumption)
    pointUncertaintyPx = pointUncertainty
    metersPerPixel = scale?.metersPerPixel
    let measuring = ImageMeasurement(pointUncertainty: pointUncertainty)
    measurements = frames.flatMap { frame in
      let points = frame.points
      let distances = (1..<points.count).map {
        Measurement(
          frame, [$0, $0 + 1], distance: measuring.distance(from: points[$0 - 1], to: points[$0]),
          scale)
      }
      let angles = (1..<points.count).dropLast().map {
        Measurement(
          frame, [$0, $0 + 1, $0 + 2],
          angle: measuring.angle(at: points[$0], between: points[$0 - 1], and: points[$0 + 1]))
      }
      return distances + angles
    }
  }

  /// One line of CSV per measured frame, after a header.
  var table: String {
    let header =
      "index,pts_ns,points,pixels,pixels_uncertainty,meters,meters_uncertainty,degrees,"
      + "degrees_uncertainty,capture_ns"
    return ([header] + measurements.map(\.line)).map { "\($0)\n" }.joined()
  }
}
