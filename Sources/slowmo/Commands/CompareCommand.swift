// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// `slowmo compare A B [C…]|PROJECT -o OUT`: shows movies side by side or blended, aligned in time.
struct CompareCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Show movies side by side or blended, aligned at an instant of each.",
    discussion: """
      EXAMPLES
        slowmo compare take.mov second.mov -o both.mp4 --fps 30
        slowmo compare take.mov second.mov -o hit.mp4 --at 1,1.004 --fps 30
        slowmo compare take.mov second.mov -o blend.mp4 --overlay --fps 30 --json

      --at gives an instant of each movie, such as the hit of a ball. The movies are aligned at
      these instants, and the time since them is drawn in milliseconds. To measure the offset of two
      recordings, use slowmo sync. Its project shows them aligned: slowmo compare both.otio.

      All movies play at the same speed in real time. A movie that was already slowed plays faster,
      by the capture times in its file. The output covers the time that all movies share, up to their
      next cuts. It has no audio.

      MANUAL
        slowmo compare take.mov second.mov -o text.mp4 --fps 30 --burn-in time,frame
        slowmo compare take.mov second.mov -o quarter.mp4 --at 1,1 --speed 1/4 --fps 5

      Movies side by side have the height of the lowest one. Together they are at most 4096 pixels
      wide.

      --burn-in draws text for each movie above the time: the capture time since its first frame,
      the number of the frame, the speed, and the capture time since its instant. The texts of
      blended movies stand above each other, in the order of the movies.
      """)

  @Argument(
    help: "The movies, from left to right, or a project with a video track for each.",
    completion: .file())
  var files: [String]

  @Option(
    name: .shortAndLong, help: "The file to write: .mov, .mp4 or .m4v.", completion: .file())
  var output: String

  @Option(
    parsing: .unconditional,
    help: "The instant of each movie, such as 1.304,0.912. Default: the starts.",
    transform: timeList)
  var at: [TimeExpression]?

  @Option(help: "The frame rate of the output, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate

  @Option(help: "Speed in real time, such as 1/8. Default: 1.", transform: Speed.init(parsing:))
  var speed = Speed.normal

  @Flag(help: "Blend the movies over each other.")
  var overlay = false

  @Option(
    help: """
      Draw into the frames any of time, frame, speed, mark and logo=FILE, separated by commas; \
      font=NAME is the font of the text.
      """)
  var burnIn: BurnInOption?

  @Flag(help: "Store no times of the capture in the movie.")
  var noTimeMap = false

  @OptionGroup var writing: WritingOptions
  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if files.count < 2 && !isProject { throw ValidationError("name at least two movies") }
    if isProject, at != nil {
      throw ValidationError("--at excludes a project, which aligns its movies")
    }
    if let at, at.count != files.count {
      throw ValidationError("--at gives \(at.count) times for \(files.count) movies")
    }
    guard [".mov", ".mp4", ".m4v"].contains(where: output.lowercased().hasSuffix) else {
      throw ValidationError("\(output) is not the name of a movie: use the extension .mp4")
    }
    if burnIn?.hasMarkTime == true {
      throw ValidationError("--burn-in mark counts from the instants of --at: leave out its time")
    }
  }

  struct Document: Encodable {
    struct Clip: Encodable {
      let file: String
      let at: MediaTime
      let timeSource: CaptureClock.Source
      let timeScale: Rational?
      let timeAssumption: CaptureClock.Assumption?
      let x: Int
      let y: Int
      let width: Int
      let height: Int
    }
    let schema = schemaName("compare")
    let file: String
    let layout: ClipComparison.Layout
    let width: Int
    let height: Int
    let fps: FrameRate
    let speed: Speed
    let frameCount: Int
    let start: MediaTime
    let clips: [Clip]
    let clock: CaptureClock.Choice
    /// The faults of the files that did not prevent reading them, each after the name of its file.
    let notes: [String]
    let dryRun: Bool
  }

  private var isProject: Bool {
    files.count == 1 && (try? Files.isMovie(files[0])) != true
      && ["otio", "llc", "edl", "fcpxml", "xml"].contains(files[0].fileExtension)
  }

  /// Opens the movies, or those of the project.
  private func openClips() throws -> [ClipComparison.Clip] {
    guard isProject else {
      return try files.enumerated().map { number, file in
        let asset = try trackChoice.open(file)
        let origin = try at.map { try asset.resolve($0[number]) }
        let clock = asset.videoTrack == nil ? nil : try timing.clock(of: asset)
        return ClipComparison.Clip(asset, origin: origin ?? .zero, clock: clock)
      }
    }
    let project = files[0]
    do {
      let read = try ProjectReader(
        project, timecodeFps: nil,
        open: { path throws(MediaError) in
          try trackChoice.open(path)
        })
      guard read.videoTracks.count > 1 else {
        throw CommandError(
          .badData, code: "invalid_project", "\(project) has only one video track",
          hint: "name the movies, or choose a project of slowmo sync -o")
      }
      try OutputNames.check([output], inputs: read.assets.map(\.path))
      let starts = read.videoTracks.compactMap { track in
        track.segments.first { !$0.isEmpty }?.target.start
      }
      // The track on top is that of the first recording.
      return try read.videoTracks.reversed().map { track in
        try ClipComparison.Clip(track, at: starts.max() ?? .zero, of: read.assets) {
          asset throws(MediaError) in
          asset.videoTrack == nil ? nil : try timing.clock(of: asset)
        }
      }
    } catch { throw ProjectReader.dataError(project, error) }
  }

  func perform() throws -> ExitStatus {
    try burnIn?.prepareFont()
    try OutputNames.check([output], inputs: files)
    try Files.refuseExisting(output, overwrites: writing.overwrite)
    let clips = try openClips()
    let notes = Output.notes(of: clips.map(\.asset))
    var comparison = ClipComparison(
      clips, frameRate: fps, speed: speed, layout: overlay ? .overlay : .side)
    comparison.burnIn = try burnIn?.burnIn(nil)
    comparison.writesTimeMap = !noTimeMap
    let plan = try comparison.plan()
    if !writing.dryRun {
      // The time on each frame is in the standard font, even if the other text is not.
      if burnIn?.usesStandardFont != true { Output.noteMissingFonts() }
      let progress = ProgressReporter(writing.progress)
      progress.start(file: output)
      try comparison.write(
        to: output, overwrites: writing.overwrite, isCancelled: { Interrupt.isRequested }
      ) { done in
        progress.update(
          ProgressReporter.State(
            frame: Int64(done), totalFrames: Int64(plan.frameCount),
            seconds: Double(done) / fps.doubleValue))
      }
      progress.end(file: output)
    }
    if common.json {
      try Output.document(document(clips, plan, notes))
    } else {
      Output.line(
        "\(output): \(plan.frameCount) frames of \(plan.size.width)x\(plan.size.height), "
          + "\(clips.count) movies" + (writing.dryRun ? ", not written" : ""))
    }
    return .done
  }

  private func document(
    _ clips: [ClipComparison.Clip], _ plan: ClipComparison.Plan, _ notes: [String]
  ) -> Document {
    Document(
      file: output, layout: overlay ? .overlay : .side, width: plan.size.width,
      height: plan.size.height, fps: fps, speed: speed, frameCount: plan.frameCount,
      start: MediaTime(nanoseconds: nanoseconds(plan.start)),
      clips: zip(clips, plan.boxes).map { clip, box in
        Document.Clip(
          file: clip.asset.path, at: clip.origin, timeSource: clip.clock?.source ?? .file,
          timeScale: clip.clock?.timeScale, timeAssumption: clip.clock?.assumption, x: box.x,
          y: box.y, width: box.width, height: box.height)
      }, clock: timing.clock, notes: notes, dryRun: writing.dryRun)
  }
}

/// Parses times that are separated by commas.
@Sendable private func timeList(_ text: String) throws -> [TimeExpression] {
  try text.split(separator: ",", omittingEmptySubsequences: false).map {
    try TimeExpression(parsing: String($0))
  }
}
