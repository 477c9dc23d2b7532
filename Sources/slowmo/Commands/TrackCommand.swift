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
      upper left corner. Without --csv and --json, the result is printed as a table.

      --scale gives a known length in the image, so that positions are also in meters.

      MANUAL
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --scale '57.7=0.5m'
        slowmo track take.mov --at 0.2 --box 176,103,32,32 --until 0.3 --by color --overlay path.svg

      --by patch finds the brightness pattern of the box. --by color finds the color in the middle
      of the box. A frame has no position if the object is not found, or if two positions match
      about as well. The runs of these frames are reported.

      A scale is written '96=1m', or '96±1=1±0.002m' with uncertainties. Units are m, cm and mm.
      Lens distortion and perspective are not corrected. The path and the known length must
      therefore be in one plane, parallel to the sensor.

      Speeds are in real time, also in a movie that was slowed down. They use the capture times in the
      file, or --capture-fps. The uncertainty of a speed is half the width of a 95 % interval.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditional, help: "The time of the frame in which the box marks the object.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: TimeExpression

  @Option(help: "The object: X,Y,WIDTH,HEIGHT in pixels.", transform: pixelBox)
  var box: PixelBox

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

  @Option(help: "Write one CSV line per frame.", completion: .file())
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
    if let overlay, !overlay.lowercased().hasSuffix(".svg") {
      throw ValidationError("\(overlay) is not the name of an SVG image: use the extension .svg")
    }
    if let reach, !(1...4_096).contains(reach) {
      throw ValidationError("--reach \(reach) is not 1 to 4096")
    }
    try common.check(standardOutputFor: "--csv", csv)
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([csv, overlay], inputs: [file])
    for path in [csv, overlay].compactMap(\.self) {
      try Files.refuseExisting(path, overwrites: overwrite)
    }
    let asset = try trackChoice.open(file)
    Output.notes(of: asset)
    let clock = try timing.clock(
      of: asset, x: box.x + box.width / 2, y: box.y + box.height / 2)
    var tracker = ObjectTracker(method: by)
    tracker.reach = reach
    let track = try tracker.track(
      asset, from: asset.resolve(at), in: box, until: until.map(asset.resolve),
      isCancelled: { Interrupt.isRequested })
    let document = TrackDocument(
      file: file, csv: csv, overlay: overlay, track: track, scale: scale,
      clock: clock, timing,
      framesSynthesized: Output.warnOfSynthesizedFrames(
        track.points.lazy.map(\.index), of: asset), notes: asset.notes, dryRun: dryRun)
    for run in track.lost { Output.note("\(file): \(Self.description(of: run))") }
    if !dryRun {
      if let csv { try Files.write(csv, Data(document.table.utf8), overwrites: overwrite) }
      if let overlay {
        let svg = try TrackOverlay(track).svg(over: asset)
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
    return .done
  }

  private static func description(of run: ObjectTrack.LostFrames) -> String {
    let time = "at \(run.time.displayText) s"
    return run.firstIndex == run.lastIndex
      ? "the object is lost in frame \(run.firstIndex) \(time)"
      : "the object is lost from frame \(run.firstIndex) \(time) to frame \(run.lastIndex)"
  }
}

extension ObjectTracker.Method: ExpressibleByArgument {}

/// Parses a box such as `10,20,48,48`.
private func pixelBox(_ text: String) throws -> PixelBox {
  let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map {
    Int($0.filter { $0 != " " })
  }
  guard numbers.count == 4, let x = numbers[0], let y = numbers[1], let width = numbers[2],
    let height = numbers[3]
  else { throw ValidationError("\(text) is not a box; write it as X,Y,WIDTH,HEIGHT") }
  return PixelBox(x: x, y: y, width: width, height: height)
}
