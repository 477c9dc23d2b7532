// SPDX-License-Identifier: Apache-2.0
public import ArgumentParser
import Overcrank

/// `slowmo retime FILE -o OUT`: parts of a clip at another speed.
struct RetimeCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "retime",
    abstract: "Play parts of a clip slower or faster, copied or at a constant frame rate.",
    discussion: """
      EXAMPLES
        slowmo retime take.mov -o slow.mov --range 0.5..1 --speed 1/8 --copy
        slowmo retime take.mov -o slow.mp4 --range 0.5..1 --speed 1/8 --fps 30
        slowmo retime take.mov -o b.mov --range 0..1 --speed 2 --range 1..2 --speed 1/4 --copy
        slowmo retime take.mov -o all.mp4 --speed 1/8 --fps 30 --pitch varispeed
        slowmo retime take.mov -o c.mov --range 0.5..1 --speed 1/8 --copy --dry-run

      The nth --speed belongs to the nth --range; what lies outside every range keeps its speed.
      --copy does not re-encode the picture: each frame keeps its bytes and gets its exact time.
      --fps shows at each instant the last frame that is due.
      """)

  @Argument(help: "The movie file.")
  var file: String

  @Option(name: .shortAndLong, help: "The movie file to write: .mov, .mp4 or .m4v.")
  var output: String

  @Option(
    parsing: .unconditionalSingleValue, help: "A range of the source, such as 1.2..1.5.",
    transform: TimeRangeExpression.init(parsing:))
  var range: [TimeRangeExpression] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: "Source seconds per output second, such as 1/8; for the whole clip without --range.",
    transform: Speed.init(parsing:))
  var speed: [Speed] = []

  @Flag(help: "Copy the picture's packets and give them new times.")
  var copy = false

  @Option(help: "Render at this constant rate, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @Option(help: "The sound of retimed parts: spectral, varispeed or mute.")
  var pitch = AudioTimePitchAlgorithm.spectral

  @Option(help: "How --fps picks frames; hold is the only way there is.")
  var sampling = FrameSampling.hold

  @Option(help: "The codec with --fps: h264, mjpeg or ffv1.")
  var codec = ExportCodec.h264

  @Option(help: "The quality of h264 with --fps, from 0 (lossless) to 51; 18 looks the same.")
  var crf: Int?

  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if copy == (fps != nil) {
      throw ValidationError(
        copy ? "--copy and --fps exclude each other" : "choose how to export: --copy or --fps RATE")
    }
    if speed.isEmpty { throw ValidationError("no --speed: give one, such as --speed 1/8") }
    if !range.isEmpty && range.count != speed.count {
      throw ValidationError(
        "\(range.count) --range and \(speed.count) --speed: each range needs its speed")
    }
    if range.isEmpty && speed.count > 1 {
      throw ValidationError("\(speed.count) --speed without --range: each needs its range")
    }
    if let crf, !(0...51).contains(crf) { throw ValidationError("--crf \(crf) is not 0 to 51") }
    if copy && crf != nil { throw ValidationError("--crf needs --fps: --copy encodes nothing") }
  }

  func perform() throws -> ExitStatus {
    let asset = try Asset(path: file)
    let composition = try Composition.retimed(asset.mediaSource(), changes: changes(asset))
    let session = ExportSession(composition, of: asset)
    var settings = ExportSettings(
      path: output, mode: fps.map { .constant($0) } ?? .passthrough)
    settings.audioTimePitchAlgorithm = pitch
    settings.codec = codec
    settings.crf = crf ?? settings.crf
    settings.overwrites = writing.overwrite
    if writing.dryRun {
      try session.check(settings)
      return try tell(RetimePlanDocument(output, composition))
    }
    let progress = ProgressReporter(writing.progress)
    progress.start(file: output)
    let seconds = composition.duration.doubleValue
    let report = try session.export(settings, isCancelled: { Interrupt.isRequested }) {
      done, total in
      progress.update(
        ProgressReporter.State(
          frame: done, totalFrames: total,
          seconds: total > 0 ? seconds * Double(done) / Double(total) : 0))
    }
    progress.end(file: output)
    return try tell(RetimeDocument(report, composition))
  }

  /// The ranges with their speeds, in the time of the source.
  private func changes(_ asset: Asset) throws -> [(range: TimeRange, speed: Speed)] {
    guard !range.isEmpty else {
      return [(try TimeRange(duration: asset.duration), speed[0])]
    }
    let frames = asset.videoTrack?.frames
    return try zip(range, speed).map { range, speed in
      let resolved = try range.resolved(
        sourceDuration: asset.duration, frameCount: Int64(frames?.entries.count ?? 0),
        frameTime: { try frames?.time(ofFrame: $0) ?? .zero })
      return (resolved, speed)
    }
  }

  private func tell(_ document: some Encodable & TextDocument) throws -> ExitStatus {
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return .done
  }
}

/// How frames are picked at a constant rate.
enum FrameSampling: String, CaseIterable, ExpressibleByArgument {
  /// The last frame at or before each instant.
  case hold
}

extension AudioTimePitchAlgorithm: ExpressibleByArgument {}
extension ExportCodec: ExpressibleByArgument {}
