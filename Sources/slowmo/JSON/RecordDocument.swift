// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `record --dry-run`.
struct RecordPlanDocument: Encodable {
  let schema = schemaName("record")
  let dryRun = true
  let file: String
  let device: String
  let mode: String
  let requestedFps: FrameRate
  let codec: String
  /// The microphone.
  ///
  /// Nil if the camera's own audio or no audio is recorded.
  let audio: String?
}

/// The JSON document of `record`, for one recording or a triggered capture.
struct RecordDocument: Encodable {
  /// A recording report.
  ///
  /// The keys in `CodingKeys` are encoded after the report, so their values replace the report's
  /// values.
  struct Take: Encodable {
    let report: RecordingReport
    /// The path of the clip's replay, or nil.
    var replay: String?

    private enum CodingKeys: String, CodingKey {
      case codec, intervals, replay
      case verification = "proof"
    }

    func encode(to encoder: any Encoder) throws {
      var report = report
      // The command writes its own error object, so the report's error is left out.
      report.problem = nil
      try report.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(report.codec?.rawValue ?? "", forKey: .codec)
      try container.encodeIfPresent(
        report.frameRateVerification.map(Verification.init), forKey: .verification)
      if report.intervals == nil { try container.encode(NoIntervals(), forKey: .intervals) }
      try container.encodeIfPresent(replay, forKey: .replay)
    }
  }

  /// The intervals of a recording with fewer than two frames, all null.
  struct NoIntervals: Encodable {
    let p50: Duration? = nil
    let p95: Duration? = nil
    let p99: Duration? = nil
    let max: Duration? = nil
  }

  /// The result of the frame-rate verification that was made before the recording.
  private struct Verification: Encodable {
    let locked: Bool
    let cause: FrameRateMismatchReason?
    let fps: Rational?
    let jitter: Duration
    let dropped: Int64

    init(_ verification: FrameRateVerification) {
      locked = verification.isLocked
      cause = verification.cause
      fps = verification.measurement.frameRate
      jitter = verification.measurement.jitter
      dropped = verification.measurement.dropped
    }
  }

  /// The frame memory (ring) of a triggered capture.
  private struct Ring: Encodable {
    let capacityBytes: Int
    let peakBytes: Int
  }

  private enum CodingKeys: CodingKey {
    case schema, ring, ignoredTriggers, refusedTriggers, preflight, files, metadataSearch, limits
    case error
  }
  private enum PreflightKeys: CodingKey { case free }

  private let report: RecordingReport
  /// The triggered capture, or nil for a recording without triggers.
  ///
  /// Without `--repeat`, the document contains the report of the only clip. With `--repeat`, it
  /// contains the sums over all clips.
  private let capture: TriggeredReport?
  /// The paths of the replays by those of their clips.
  private let replays: [String: String]
  private let preflight: RecordingPreflight
  /// The report of each file; nil for a recording that can have only one file.
  private let files: [RecordingReport]?
  /// The error that ends the command; nil for none.
  private(set) var problem: CommandError?

  /// The search for objects in the frames; nil without one.
  private var search: MetadataSearch?

  /// The counts of a search for objects.
  private struct MetadataSearch: Encodable {
    let frameCount: Int64
    let examinedCount: Int64
    let searchedCount: Int64
  }

  /// The limits of the options that the recording does not keep.
  private(set) var limits: [BrokenLimit] = []

  /// Adds the counts of the search for objects.
  func counting(_ search: (any ObjectSearch)?) -> RecordDocument {
    var document = self
    document.search = search.map {
      MetadataSearch(
        frameCount: $0.offeredCount, examinedCount: $0.examinedCount,
        searchedCount: $0.searchedCount)
    }
    return document
  }

  /// Limits the number of lost frames.
  mutating func limit(maxDrops: Int64) {
    let dropped = report.ledger.dropped
    guard dropped > maxDrops else { return }
    let lost = dropped == 1 ? "1 frame was lost" : "\(dropped) frames were lost"
    limits.append(
      BrokenLimit(
        "max_drops", limit: .count(maxDrops), value: .count(dropped), file: report.path,
        "\(lost), and --max-drops allows \(maxDrops)"))
  }

  /// Records a failure after the recording.
  ///
  /// The first recorded failure is kept.
  mutating func fail(_ problem: CommandError) { self.problem = self.problem ?? problem }

  /// Creates the document of a recording with one file.
  init(_ report: RecordingReport, _ preflight: RecordingPreflight, _ problem: CommandError?) {
    (self.report, self.preflight, self.problem) = (report, preflight, problem)
    (capture, files, replays) = (nil, nil, [:])
  }

  /// Creates the document of a recording with several files.
  init(_ report: SegmentedReport, _ preflight: RecordingPreflight, _ problem: CommandError?) {
    (self.report, self.preflight, self.problem) = (report.take, preflight, problem)
    (capture, files, replays) = (nil, report.files, [:])
  }

  /// Creates the document of a triggered capture.
  ///
  /// `path` is the output file, or its template if `repeats` allows several clips.
  init(
    _ capture: TriggeredReport, _ preflight: RecordingPreflight, path: String, repeats: Bool,
    replays: [String: String], _ problem: CommandError?
  ) {
    self.replays = replays
    // A single clip supplies the report. Several clips are added up in a new report.
    var whole =
      capture.clips.first.flatMap { repeats ? nil : $0 }
      ?? RecordingReport(
        requestedFrameRate: capture.requestedFrameRate,
        negotiatedFrameRate: capture.negotiatedFrameRate)
    if repeats {
      whole.path = path
      whole.mode = capture.mode
      whole.codec = capture.codec
      whole.gaps = capture.gaps
      whole.duration = MediaTime(
        nanoseconds: capture.clips.reduce(0) { $0 + $1.duration.wholeNanoseconds })
      whole.stoppedBy = capture.stoppedBy
      whole.isPlayable = capture.clips.allSatisfy(\.isPlayable)
    }
    whole.measuredFrameRate = capture.measuredFrameRate
    whole.timestampQuantum = capture.timestampQuantum
    whole.startupDuration = capture.startupDuration
    whole.frameRateVerification = capture.frameRateVerification
    whole.ledger = capture.ledger
    whole.warnings += capture.warnings
    report = whole
    files = repeats ? capture.clips : nil
    (self.capture, self.preflight, self.problem) = (capture, preflight, problem)
  }

  private func take(_ report: RecordingReport) -> Take {
    Take(report: report, replay: replays[report.path])
  }

  func encode(to encoder: any Encoder) throws {
    try take(report).encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("record"), forKey: .schema)
    try container.encodeIfPresent(
      capture.map { Ring(capacityBytes: $0.ringCapacity, peakBytes: $0.ringPeak) }, forKey: .ring)
    try container.encodeIfPresent(capture?.ignoredTriggerCount, forKey: .ignoredTriggers)
    try container.encodeIfPresent(capture?.refusedTriggerCount, forKey: .refusedTriggers)
    let nested = container.superEncoder(forKey: .preflight)
    try preflight.encode(to: nested)
    var more = nested.container(keyedBy: PreflightKeys.self)
    try more.encodeIfPresent(preflight.freeDuration, forKey: .free)
    if let files { try container.encode(files.map(take), forKey: .files) }
    if let search { try container.encode(search, forKey: .metadataSearch) }
    try container.encode(limits, forKey: .limits)
    try container.encodeIfPresent(problem.map(ErrorDetails.init), forKey: .error)
  }
}
