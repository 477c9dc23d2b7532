// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import FoundationEssentials
import Overcrank

/// `slowmo track FILE --at T --box X,Y,W,H`: follows an object through the frames of a movie.
struct TrackCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "track",
    abstract: "Follow an object through the frames, and measure its position and speed.",
    discussion: """
      EXAMPLES
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --csv ball.csv
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --json

      The box marks the object in the frame at --at: its left and top edge, width and height, in
      pixels of the displayed frame. The position x and y is the center of the object, from the
      upper left corner, with y downward. Without --csv and --json, the result is printed as a
      table.

      Several boxes are several objects. Each has its own --at, or all have the same.

      --scale gives a known length in the image, so that positions are also in meters.

      MANUAL
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --scale '57.7=0.5m'
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --by color --overlay path.svg

        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --y-axis up

      --by patch finds the brightness pattern of the box. --by color finds the color in the middle
      of the box. A frame has no position if the object is not found, or if two positions match
      about as well. The runs of these frames are reported. A lost object is found again only where
      its motion leads, and only if it looks as before. If an object is found in no other frame than
      the marked one, the exit code is 65, and the table is kept.

      --y-axis up lets y grow upward from the lower left corner. --origin-point 192,221 is the point
      where x and y are zero. Both apply to pixels, meters and velocities.

      A scale is written '96=1m', or '96±1=1±0.002m' with uncertainties. Units are m, cm and mm.
      Lens distortion and perspective are not corrected. The path and the known length must
      therefore be in one plane, parallel to the sensor.

      Speeds are in real time, also in a movie that was slowed down. They use the capture times in the
      file, or --capture-fps. The uncertainty of a speed is half the width of a 95 % interval.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditionalSingleValue,
    help: "The time of the frame in which the box marks the object; may be repeated.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: [TimeExpression] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: "The object: X,Y,WIDTH,HEIGHT in pixels; may be repeated.", transform: pixelBox)
  var box: [PixelRect] = []

  @Option(
    help: "Track the boxes of this file, which play writes, too.", completion: .file())
  var annotations: String?

  @Option(
    parsing: .unconditional, help: "End tracking at this time. Default: the end of the movie.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var until: TimeExpression?

  @Option(help: "Find the object by patch or color.")
  var by = ObjectTracker.Method.patch

  @Option(
    help: "Search up to this many pixels from the predicted position. Default: the size of the box."
  )
  var reach: Int?

  @Option(
    help: "A known length in the image, such as '96=1m'.",
    transform: LengthScale.init(argument:))
  var scale: LengthScale?

  @Option(help: "The direction in which y grows: down or up.")
  var yAxis = ImageAxes.VerticalDirection.down

  @Option(
    parsing: .unconditional,
    help: "The point X,Y of the frame where x and y are zero. Default: the left corner.",
    transform: imagePoint)
  var originPoint: Point?

  @Option(help: "Write one CSV line per frame and object.", completion: .file())
  var csv: String?

  @Option(help: "Draw the path over the first frame: .svg.", completion: .file())
  var overlay: String?

  @Flag(name: [.customShort("y"), .long], help: "Replace files that exist.")
  var overwrite = false

  @Flag(help: "Track, and write nothing.")
  var dryRun = false

  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    for (name, isMissing) in [("at", at.isEmpty), ("box", box.isEmpty)]
    where isMissing && (annotations == nil || at.isEmpty != box.isEmpty) {
      throw ValidationError("Missing expected argument '--\(name) <\(name)>'")
    }
    if at.count > 1, at.count != box.count {
      throw ValidationError(
        "\(at.count) --at and \(box.count) --box: each box needs one time, or all the same")
    }
    if let overlay, !overlay.lowercased().hasSuffix(".svg") {
      throw ValidationError("\(overlay) is not the name of an SVG image: use the extension .svg")
    }
    if let reach, !(1...4_096).contains(reach) {
      throw ValidationError("--reach \(reach) is not 1 to 4096")
    }
    try common.check(standardOutputFor: "--csv", csv)
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([csv, overlay], inputs: [file, annotations])
    for path in [csv, overlay].compactMap(\.self) {
      try Files.refuseExisting(path, overwrites: overwrite)
    }
    let asset = try trackChoice.open(file)
    Output.notes(of: asset)
    let times = try at.map(asset.resolve)
    let objects =
      try box.indices.map { number in
        ObjectTracker.MarkedObject(at: times[times.count == 1 ? 0 : number], in: box[number])
      } + annotatedObjects(asset)
    guard let first = box.first ?? objects.first?.box else {
      throw CommandError(
        .badData, code: "invalid_data", "\(annotations ?? "") has no box",
        hint: "draw one in the window of slowmo play")
    }
    let clock = try timing.clock(
      of: asset, x: first.x + first.width / 2, y: first.y + first.height / 2)
    var tracker = ObjectTracker(method: by)
    tracker.reach = reach
    let tracks = try tracker.track(
      asset, objects: objects, until: until.map(asset.resolve),
      isCancelled: { Interrupt.isRequested })
    var document = TrackDocument(
      file: file, csv: csv, overlay: overlay, tracks: tracks, of: asset, scale: scale,
      axes: ImageAxes(yAxis, origin: originPoint, imageHeight: asset.displayedHeight),
      clock: clock, timing,
      framesSynthesized: Output.warnOfSynthesizedFrames(
        Set(tracks.flatMap { $0.points.map(\.index) }), of: asset),
      notes: asset.notes, dryRun: dryRun)
    for (number, track) in tracks.enumerated() {
      let name = tracks.count == 1 ? "the object" : "object \(number + 1)"
      for run in track.lost { Output.note("\(file): \(Self.description(of: run, name))") }
    }
    document.problem = problem(tracks)
    if !dryRun {
      if let csv { try Files.write(csv, Data(document.table.utf8), overwrites: overwrite) }
      if let overlay {
        let svg = try TrackOverlay(tracks).svg(over: asset)
        try Files.write(overlay, Data(svg.utf8), overwrites: overwrite)
      }
    }
    if common.json {
      try Output.document(document)
    } else if csv == nil {
      try Output.file([UInt8](document.table.utf8))
    } else if csv != standardOutput, !dryRun {
      for path in [csv, overlay].compactMap(\.self) { Output.line(path) }
    }
    if let problem = document.problem, !common.json { Output.error(problem) }
    return document.problem?.status ?? .done
  }

  /// Returns the boxes of the file of annotations.
  private func annotatedObjects(_ asset: Asset) throws -> [ObjectTracker.MarkedObject] {
    guard let annotations, let track = asset.videoTrack else { return [] }
    return try AnnotationFile.read(annotations).annotations.filter { $0.kind == .box }.map { box in
      let (first, last) = (box.points[0], box.points[1])
      let (left, top) = (Int(first.x.rounded(.down)), Int(first.y.rounded(.down)))
      return ObjectTracker.MarkedObject(
        at: try track.frames.time(ofFrame: Int64(box.frameIndex)),
        in: PixelRect(
          x: left, y: top, width: Int(last.x.rounded(.up)) - left,
          height: Int(last.y.rounded(.up)) - top))
    }
  }

  /// The error if an object was not found at all.
  private func problem(_ tracks: [ObjectTrack]) -> CommandError? {
    let lost = tracks.indices.filter { tracks[$0].isLostThroughout }
    guard let first = lost.first else { return nil }
    let name = tracks.count == 1 ? "the object" : "object \(first + 1)"
    return CommandError(
      .badData, code: "object_lost", "\(name) is lost in all frames of \(file)",
      hint: by == .patch
        ? "choose a box with more structure, a greater --reach, or --by color"
        : "choose a box around the whole object, a greater --reach, or --by patch")
  }

  private static func description(of run: ObjectTrack.LostFrames, _ name: String) -> String {
    let time = "at \(run.time.displayText) s"
    return run.firstIndex == run.lastIndex
      ? "\(name) is lost in frame \(run.firstIndex) \(time)"
      : "\(name) is lost from frame \(run.firstIndex) \(time) to frame \(run.lastIndex)"
  }
}

extension Asset {
  /// The height of the frames as they are displayed, in pixels.
  fileprivate var displayedHeight: Int {
    guard let track = videoTrack else { return 0 }
    return track.rotation % 180 == 0 ? track.height : track.width
  }
}

extension ObjectTracker.Method: ExpressibleByArgument {}
extension ImageAxes.VerticalDirection: ExpressibleByArgument {}

/// Parses a point such as `192,221.5`.
private func imagePoint(_ text: String) throws -> Point {
  let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map {
    Double($0.filter { $0 != " " })
  }
  guard numbers.count == 2, let x = numbers[0], let y = numbers[1], x.isFinite, y.isFinite,
    abs(x) <= 1e9, abs(y) <= 1e9
  else { throw ValidationError("\(text) is not a point; write it as X,Y") }
  return Point(x: x, y: y)
}

/// Parses a box such as `10,20,48,48`.
private func pixelBox(_ text: String) throws -> PixelRect {
  let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map {
    Int($0.filter { $0 != " " })
  }
  guard numbers.count == 4, let x = numbers[0], let y = numbers[1], let width = numbers[2],
    let height = numbers[3]
  else { throw ValidationError("\(text) is not a box; write it as X,Y,WIDTH,HEIGHT") }
  return PixelRect(x: x, y: y, width: width, height: height)
}
