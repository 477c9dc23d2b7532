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
  var at: [TimeExpression]

  @Option(
    parsing: .unconditionalSingleValue,
    help: "The points in that frame, such as '150,221 192,221'; may be repeated.",
    transform: imagePoints)
  var points: [[ImagePoint]]

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

  @Flag(help: "Measure, and write nothing.")
  var dryRun = false

  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
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
    try OutputNames.check([csv].compactMap(\.self), inputs: [file])
    if let csv { try Files.refuseExisting(csv, overwrites: overwrite) }
    let asset = try trackChoice.open(file)
    Output.notes(of: asset)
    guard let track = asset.videoTrack else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) has no video", hint: "see slowmo info \(file)")
    }
    let first = points.first?.first
    let clock = try timing.clock(
      of: asset, x: first.map { Int($0.x) }, y: first.map { Int($0.y) })
    let frames = try zip(at, points).map { expression, points in
      let time = try asset.resolve(expression)
      guard let index = track.frames.index(at: time) else {
        throw CommandError(
          .usage, code: "outside_source", "\(file) shows no frame at \(time.displayText) s",
          hint: "it ends at \(asset.duration.displayText) s")
      }
      for point in points { try check(point, in: track) }
      return MeasureDocument.Frame(
        index: index, time: try track.frames.time(ofFrame: Int64(index)),
        captureTime: clock.map.captureTime(ofFrame: index), points: points)
    }
    let document = MeasureDocument(
      file: file, csv: csv, time: MeasuredTime(timing, clock), frames: frames,
      pointUncertainty: pointError, scale: scale,
      framesSynthesized: Output.warnOfSynthesizedFrames(frames.map(\.index), of: asset),
      notes: asset.notes, dryRun: dryRun)
    if let csv, !dryRun {
      try Files.write(csv, Data(document.table.utf8), overwrites: overwrite)
    }
    if common.json {
      try Output.document(document)
    } else if csv == nil {
      try Output.file([UInt8](document.table.utf8))
    } else if let csv, csv != standardOutput, !dryRun {
      Output.line(csv)
    }
    return .done
  }

  /// Throws if a point is outside the frame as it is displayed.
  private func check(_ point: ImagePoint, in track: VideoTrack) throws {
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
private func imagePoints(_ text: String) throws -> [ImagePoint] {
  let points = text.split(separator: " ").map { point -> ImagePoint? in
    let sides = point.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    guard sides.count == 2, let x = sides[0], let y = sides[1], x.isFinite, y.isFinite
    else { return nil }
    return ImagePoint(x: x, y: y)
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
