// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// `slowmo sync A B [C…]`: measures the time offset between recordings of the same event.
struct SyncCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Measure the time offset between recordings of the same event.",
    discussion: """
      EXAMPLES
        slowmo sync take.mov second.mov --max-offset 0.5
        slowmo sync take.mov second.mov --by audio --max-offset 0.5 --json
        slowmo sync take.mov second.mov --max-offset 0.5 -o both.otio

      Each recording is compared with the first. Its offset is the time of the first recording at
      which it starts. Recordings with nothing in common, and events that repeat, are refused (exit
      code 65). --max-offset limits the search, which makes repeating events unambiguous.

      -o writes a project with a track for each recording, aligned, in the part that all share. Show
      them with slowmo compare both.otio, or export the first with slowmo edit.

      MANUAL
      --by audio compares the audio. --by flash compares the frames in which a light is switched on or off.
      --by auto uses the audio. If the audio repeats, a flash may decide between its offsets. Without
      audio, a flash needs its start and its end. A flash that the audio contradicts is refused.

      The uncertainty is half the width of an interval that contains the true offset in at least 95
      of 100 cases. Audio that arrives later because of its distance counts as an offset: 2.9 ms for
      each meter.
      """)

  @Argument(help: "The recordings; the first is the reference.", completion: .file())
  var files: [String]

  @Option(name: .shortAndLong, help: "Write a project: .otio.", completion: .file())
  var output: String?

  @Option(help: "Compare by auto, audio or flash.")
  var by = ComparedEvent.auto

  @Option(
    help: "The greatest offset to search, such as 0.5 or 20ms. Default: any.",
    transform: positiveDuration)
  var maxOffset: MediaTime?

  @Flag(name: [.customShort("y"), .long], help: "Replace the output if it exists.")
  var overwrite = false

  @OptionGroup var measuring: MeasuringOptions
  @OptionGroup var common: CommonOptions

  /// The kinds of event of `--by`.
  enum ComparedEvent: String, CaseIterable, ExpressibleByArgument {
    case auto, audio, flash

    var method: RecordingOffset.Method? { RecordingOffset.Method(rawValue: rawValue) }
  }

  func validate() throws {
    if files.count < 2 { throw ValidationError("name at least two recordings") }
    if let output, !output.lowercased().hasSuffix(".otio") {
      throw ValidationError("\(output) is not the name of a project: use the extension .otio")
    }
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([output], inputs: files)
    if let output { try Files.refuseExisting(output, overwrites: overwrite) }
    let assets = try files.map { path throws(MediaError) in try measuring.trackChoice.open(path) }
    let notes = Output.notes(of: assets)
    let clocks = try assets.map { asset throws(MediaError) in
      asset.videoTrack == nil ? nil : try measuring.timing.clock(of: asset)
    }
    let synchronizer = RecordingSynchronizer(method: by.method, maximumOffset: maxOffset)
    var recordings = [SynchronizedRecording(assets[0], clock: clocks[0])]
    var pairs: [SyncDocument.Pair] = []
    for (asset, clock) in zip(assets, clocks).dropFirst() {
      let known = clock.flatMap { own in clocks[0].map { (own, $0) } }
      let offset = try synchronizer.offset(
        of: asset, to: assets[0], clocks: known, isCancelled: { Interrupt.isRequested })
      recordings.append(SynchronizedRecording(asset, offset: offset.offset, clock: clock))
      pairs.append(SyncDocument.Pair(files[0], asset.path, offset))
    }
    if let output {
      let composition = try Composition(synchronizing: recordings)
        .replacingSourcePaths { ProjectPaths.path($0, seenFrom: output) }
      let project = OpenTimelineDocument(composition, name: output.lastPathComponent)
      if !measuring.dryRun {
        try Files.write(output, Data(try project.text().utf8), overwrites: overwrite)
      }
    }
    let document = SyncDocument(
      clock: measuring.timing.clock,
      recordings: zip(files, clocks).map { SyncDocument.Recording($0, $1) },
      pairs: pairs, output: output, notes: notes, dryRun: measuring.dryRun)
    try Output.print(document, asJSON: common.json)
    return .done
  }
}

/// The JSON document of `sync`.
struct SyncDocument: Encodable, TextDocument {
  /// The time offset of one recording to the first recording.
  struct Pair: Encodable {
    let a: String
    let b: String
    let offset: MediaTime
    let uncertainty: MediaTime
    let method: RecordingOffset.Method
    let confidence: Double
    let at: MediaTime
    let driftPpm: Double?
    let matchCount: Int

    init(_ a: String, _ b: String, _ measured: RecordingOffset) {
      (self.a, self.b) = (a, b)
      (offset, uncertainty) = (measured.offset, measured.uncertainty)
      (method, confidence) = (measured.method, measured.confidence)
      (at, driftPpm, matchCount) = (measured.time, measured.drift, measured.matchCount)
    }

    var line: String {
      let drift = driftPpm.map { ", drift \(decimal($0, 2)) ppm" } ?? ""
      return "\(b): starts at \(decimal(offset.doubleValue, 6)) s of \(a), "
        + "± \(decimal(uncertainty.doubleValue * 1e3, 3)) ms (\(method.rawValue), "
        + "confidence \(decimal(confidence, 2))\(drift))"
    }
  }

  /// A recording, and the time in which it was measured.
  struct Recording: Encodable {
    let file: String
    /// Nil without video.
    let timeSource: CaptureClock.Source?
    let timeScale: Rational?
    let timeAssumption: CaptureClock.Assumption?

    init(_ file: String, _ clock: CaptureClock?) {
      self.file = file
      (timeSource, timeScale) = (clock?.source, clock?.timeScale)
      timeAssumption = clock?.assumption
    }
  }

  let schema = schemaName("sync")
  let clock: CaptureClock.Choice
  let recordings: [Recording]
  let pairs: [Pair]
  let output: String?
  /// The faults of the files that did not prevent reading them, each after the name of its file.
  let notes: [String]
  let dryRun: Bool

  var lines: [String] { pairs.map(\.line) + [dryRun ? nil : output].compactMap(\.self) }
}
