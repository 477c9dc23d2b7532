// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank

/// `slowmo measure FILE --at T --points 'X,Y X,Y …'`: measures between points marked in frames.
struct MeasureCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "measure",
    abstract: "Measure distances and angles between points that are marked in frames.",
    discussion: """
      EXAMPLES
        slowmo measure take.mov --at 0.2 --points '192,119 192,221'
        slowmo measure take.mov --at 0.2 --points '0,0 3,4' --scale '57.7=0.5m'
        slowmo measure take.mov --at 0.2 --points '150,221 192,221 192,119' --json

      Points are X,Y in pixels of the displayed frame, from the upper left corner. Each point is
      joined to the next one. The result has the distances between them, and the angle at each inner
      point. Without --csv and --json, it is printed as a table.

      --scale gives a known length in the image, so that distances are also in meters.

      MANUAL
        slowmo measure take.mov --at 0.2 --points '0,0 3,4' --csv angle.csv
        slowmo measure take.mov --at 0.2 --points '0,0 3,4' --at 0.3 --points '0,0 6,8'

      The nth --points belongs to the nth --at. An angle is 0 to 180 degrees.

      --point-error is how far a coordinate may be from the true one. Each uncertainty is half the
      width of a 95 % interval, and includes that of the scale.

      A scale is written '96=1m', or '96±1=1±0.002m' with uncertainties. Units are m, cm and mm.
      Lens distortion and perspective are not corrected. The points and the known length must
      therefore be in one plane, parallel to the sensor.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditionalSingleValue, help: "The time of a frame; may be repeated.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: [TimeExpression] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: "The points in that frame, such as '150,221 192,221'; may be repeated.",
    transform: imagePoints)
  var points: [[Point]] = []

  @Option(
    help: "Measure the distances and angles of this file, which play writes.", completion: .file())
  var annotations: String?

  @Option(help: "How far a coordinate may be from the true one, in pixels (95 % interval).")
  var pointError = 1.0

  @Option(
    help: "A known length in the image, such as '96=1m'.",
    transform: LengthScale.init(argument:))
  var scale: LengthScale?

  @Option(help: "Write one CSV line per measurement.", completion: .file())
  var csv: String?

  @Flag(name: [.customShort("y"), .long], help: "Replace files that exist.")
  var overwrite = false

  @OptionGroup var measuring: MeasuringOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    for (name, isMissing) in [("at", at.isEmpty), ("points", points.isEmpty)]
    where isMissing && annotations == nil {
      throw ValidationError("Missing expected argument '--\(name) <\(name)>'")
    }
    guard at.count == points.count else {
      throw ValidationError(
        "\(at.count) --at and \(points.count) --points: each time needs its points")
    }
    guard pointError.isFinite, pointError >= 0 else {
      throw ValidationError("--point-error \(pointError) is not zero or above")
    }
    try common.check(standardOutputFor: "--csv", csv)
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([csv].compactMap(\.self), inputs: [file, annotations])
    if let csv { try Files.refuseExisting(csv, overwrites: overwrite) }
    let asset = try measuring.trackChoice.open(file)
    Output.notes(of: asset)
    guard let track = asset.videoTrack else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) has no video", hint: "see slowmo info \(file)")
    }
    let drawn = try annotations.map { path in
      let all = try AnnotationFile.read(path).annotations
      let lines = all.filter { [.distance, .angle].contains($0.kind) }
      guard !lines.isEmpty || !points.isEmpty else {
        throw CommandError(
          .badData, code: "invalid_data", "\(path) has no distance or angle",
          hint: "draw one in the window of slowmo play")
      }
      return lines
    }
    let first = points.first?.first ?? drawn?.first?.points.first
    let clock = try measuring.timing.clock(
      of: asset, x: first.map { Int($0.x) }, y: first.map { Int($0.y) })
    func frame(_ index: Int, _ points: [Point]) throws -> MeasureDocument.Frame {
      for point in points { try check(point, in: track) }
      return MeasureDocument.Frame(
        index: index, time: try track.frames.time(ofFrame: Int64(index)),
        captureTime: clock.map.captureTime(ofFrame: index), points: points)
    }
    var frames = try zip(at, points).map { expression, points in
      let time = try asset.resolve(expression)
      guard let index = track.frames.index(at: time) else {
        throw CommandError(
          .usage, code: "outside_source", "\(file) shows no frame at \(time.displayText) s",
          hint: "it ends at \(asset.duration.displayText) s")
      }
      return try frame(index, points)
    }
    frames += try (drawn ?? []).map { try frame($0.frameIndex, $0.points) }
    let document = MeasureDocument(
      file: file, csv: csv, time: MeasuredTime(measuring.timing, clock), frames: frames,
      pointUncertainty: pointError, scale: scale,
      framesSynthesized: Output.warnOfSynthesizedFrames(frames.map(\.index), of: asset),
      notes: asset.notes, dryRun: measuring.dryRun)
    if let csv, !measuring.dryRun {
      try Files.write(csv, Data(document.table.utf8), overwrites: overwrite)
    }
    if common.json {
      try Output.document(document)
    } else if csv == nil {
      try Output.file([UInt8](document.table.utf8))
    } else if let csv, csv != standardOutput, !measuring.dryRun {
      Output.line(csv)
    }
    return .done
  }

  /// Throws if a point is outside the frame as it is displayed.
  private func check(_ point: Point, in track: VideoTrack) throws {
    let isTurned = track.rotation == 90 || track.rotation == 270
    let (width, height) = isTurned ? (track.height, track.width) : (track.width, track.height)
    guard (0...Double(width)).contains(point.x), (0...Double(height)).contains(point.y) else {
      throw CommandError(
        .usage, code: "outside_source",
        "the point \(decimal(point.x, 2)),\(decimal(point.y, 2)) is outside the frame",
        hint: "the frames of \(file) are displayed with \(width)x\(height) pixels")
    }
  }
}

/// Parses points such as `150,221 192,221.5`.
///
/// Neighboring points must differ, because no line joins equal ones.
private func imagePoints(_ text: String) throws -> [Point] {
  let points = text.split(separator: " ").map { point -> Point? in
    let sides = point.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    guard sides.count == 2, let x = sides[0], let y = sides[1], x.isFinite, y.isFinite
    else { return nil }
    return Point(x: x, y: y)
  }
  let known = points.compactMap(\.self)
  guard known.count == points.count, known.count >= 2 else {
    throw ValidationError("\(text) is not a list of points; write it as 'X,Y X,Y'")
  }
  guard zip(known, known.dropFirst()).allSatisfy(!=) else {
    throw ValidationError("\(text) names a point twice in a row")
  }
  return known
}

/// The JSON document of `measure`, and its table.
struct MeasureDocument: Encodable {
  /// A frame and the points marked in it.
  struct Frame {
    let index: Int
    let time: MediaTime
    /// The capture time; nil for a frame of unknown origin.
    let captureTime: MediaTime?
    let points: [Point]
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
