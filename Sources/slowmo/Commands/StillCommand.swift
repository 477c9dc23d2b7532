// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank

/// `slowmo still sheet|strobe|trail|finish FILE -o IMAGE`: makes one image of many frames.
struct StillCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "still",
    abstract: "Make one image of many frames: sheet, strobe, trail or finish.",
    discussion: """
      EXAMPLES
        slowmo still sheet take.mov -o sheet.png --tiles 8 --columns 4
        slowmo still strobe take.mov --range 0.1..0.9 --every 0.1 -o strobe.png
        slowmo still trail take.mov --range 0.1..0.3 -o trail.png
        slowmo still finish take.mov --range 0..0.5 --column 192 -o finish.png

        sheet   small frames in rows, each with its time
        strobe  a moving object at several times, over the still background
        trail   the same with all frames, older ones fainter
        finish  a photo finish: the column of the finish line in each frame, side by side

      The image is a PNG file, and - is standard output.

      MANUAL
      strobe and trail: the background is the median of frames, so the camera must not move.

      Times are those of the capture, also in a movie that was slowed down: the labels of a sheet,
      --every and the ruler.

      finish: a ruler shows milliseconds of real time. Its zero is --origin, or the start of the
      range.
      """)

  /// The kinds of image that the command makes.
  enum Kind: String, CaseIterable, ExpressibleByArgument, Encodable {
    case sheet, strobe, trail, finish
  }

  @Argument(help: "The kind of image: sheet, strobe, trail or finish.")
  var kind: Kind

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(name: .shortAndLong, help: "The image to write: .png, or -.", completion: .file())
  var output: String

  @Option(
    parsing: .unconditional, help: "The part of the movie, such as 1.2..1.5. Default: all.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(help: "sheet, strobe: the number of frames. Default: 12 for sheet, 8 for strobe.")
  var tiles: Int?

  @Option(help: "sheet: the number of frames in a row.")
  var columns: Int?

  @Option(help: "sheet: the width of a frame in pixels. Default: 240.")
  var width: Int?

  @Option(help: "strobe: the real time from one frame to the next.", transform: positiveDuration)
  var every: MediaTime?

  @Option(help: "finish: the column of the finish line in pixels. Default: the middle.")
  var column: Int?

  @Option(help: "finish: the number of pixels for each frame, 1 to 64.")
  var slit = 2

  @Option(
    parsing: .unconditional, help: "finish: the time of the ruler's zero.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var origin: TimeExpression?

  @Flag(help: "finish: time runs to the left.")
  var reversed = false

  @Flag(name: [.customShort("y"), .long], help: "Replace the output if it exists.")
  var overwrite = false

  @Flag(help: "Check the options, and write nothing.")
  var dryRun = false

  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if output != standardOutput, !output.lowercased().hasSuffix(".png") {
      throw ValidationError("\(output) is not the name of a PNG image: use the extension .png")
    }
    let options: [(String, Bool, [Kind])] = [
      ("--tiles", tiles != nil, [.sheet, .strobe]), ("--columns", columns != nil, [.sheet]),
      ("--width", width != nil, [.sheet]), ("--every", every != nil, [.strobe]),
      ("--column", column != nil, [.finish]), ("--slit", slit != 2, [.finish]),
      ("--origin", origin != nil, [.finish]), ("--reversed", reversed, [.finish]),
    ]
    for (name, isGiven, kinds) in options where isGiven && !kinds.contains(kind) {
      throw ValidationError("\(name) is for \(kinds.map(\.rawValue).joined(separator: " and "))")
    }
    if tiles != nil, every != nil {
      throw ValidationError("--tiles and --every exclude each other")
    }
    for (name, value, limit) in [
      ("--tiles", tiles, 1_000), ("--columns", columns, 1_000), ("--width", width, 4_096),
      ("--slit", slit, 64),
    ] {
      if let value, !(1...limit).contains(value) {
        throw ValidationError("\(name) \(value) is not 1 to \(limit)")
      }
    }
    try common.check(standardOutputFor: "-o", output)
  }

  struct Document: Encodable {
    struct Frame: Encodable {
      let index: Int
      let pts: MediaTime
      let x: Int
      let y: Int
      let width: Int
      let height: Int
    }
    let schema = schemaName("still")
    let kind: Kind
    let file: String
    let output: String
    let width: Int?
    let height: Int?
    let frames: [Frame]
    let clock: CaptureClock.Choice
    let timeSource: CaptureClock.Source
    let timeScale: Rational?
    let timeAssumption: CaptureClock.Assumption?
    /// The faults of the file that did not prevent reading it.
    let notes: [String]
    let dryRun: Bool
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([output], inputs: [file])
    try Files.refuseExisting(output, overwrites: overwrite)
    let asset = try trackChoice.open(file)
    Output.notes(of: asset)
    Output.noteMissingToneMapping(of: asset)
    let clock = try timing.clock(of: asset)
    let composer = try StillComposer(
      asset, range: range.map(asset.resolve), clock: clock,
      isCancelled: { Interrupt.isRequested })
    let time = MeasuredTime(timing, clock)
    guard !dryRun else { return try finish(nil, asset, time) }
    let image = try image(composer, asset)
    try Files.write(output, Data(image.pngData()), overwrites: overwrite)
    return try finish(image, asset, time)
  }

  private func image(_ composer: StillComposer, _ asset: Asset) throws -> StillImage {
    if kind == .sheet || kind == .finish { Output.noteMissingFonts() }
    switch kind {
    case .sheet:
      return try composer.contactSheet(
        StillComposer.SheetSettings(count: tiles ?? 12, columns: columns, frameWidth: width))
    case .strobe:
      return try composer.strobe(every.map { .every($0) } ?? .count(tiles ?? 8))
    case .trail: return try composer.trail()
    case .finish:
      return try composer.photoFinish(
        StillComposer.FinishSettings(
          column: column, slitWidth: slit, origin: origin.map(asset.resolve), isReversed: reversed))
    }
  }

  private func finish(_ image: StillImage?, _ asset: Asset, _ time: MeasuredTime) throws
    -> ExitStatus
  {
    if common.json {
      let frames = image?.frames.map {
        Document.Frame(
          index: $0.index, pts: $0.time, x: $0.box.x, y: $0.box.y, width: $0.box.width,
          height: $0.box.height)
      }
      try Output.document(
        Document(
          kind: kind, file: file, output: output, width: image?.pixels.width,
          height: image?.pixels.height, frames: frames ?? [], clock: time.clock,
          timeSource: time.timeSource, timeScale: time.timeScale,
          timeAssumption: time.timeAssumption, notes: asset.notes, dryRun: dryRun))
    } else if image != nil, output != standardOutput {
      Output.line(output)
    }
    return .done
  }
}
