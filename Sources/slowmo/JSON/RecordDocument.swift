// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What `record --dry-run` says.
struct RecordPlanDocument: Encodable {
  let schema = schemaName("record")
  let dryRun = true
  let file: String
  let device: String
  let mode: String
  let requestedFps: String
  let requestedFpsValue: Double
  let codec: String
  /// The microphone; the camera's own sound needs none.
  @Nullable var audio: String?

  enum CodingKeys: CodingKey {
    case schema, dryRun, file, device, mode, requestedFps, requestedFpsValue, codec, audio
  }
}

/// What `record` says of a take.
struct RecordDocument: Encodable {
  struct Ledger: Encodable {
    let expected, stored, corrupt, lostStart, lostDevice, lostKernel, lostQueue: Int64
    let lostWriter, evicted, unknown: Int64

    init(_ ledger: FrameLedger) {
      expected = ledger.expected
      stored = ledger.stored
      corrupt = ledger.corrupt
      lostStart = ledger.lostStart
      lostDevice = ledger.lostDevice
      lostKernel = ledger.lostKernel
      lostQueue = ledger.lostQueue
      lostWriter = ledger.lostWriter
      evicted = ledger.evicted
      unknown = ledger.unknown
    }
  }
  struct Gap: Encodable {
    let afterIndex: Int64
    let count: Int64
    let atNs: Int64
    let cause: String
  }
  struct Intervals: Encodable {
    @Nullable var p50Ns: Int64?
    @Nullable var p95Ns: Int64?
    @Nullable var p99Ns: Int64?
    @Nullable var maxNs: Int64?

    init(_ intervals: FrameIntervals?) {
      p50Ns = intervals?.p50
      p95Ns = intervals?.p95
      p99Ns = intervals?.p99
      maxNs = intervals?.max
    }
  }

  /// What was measured before the take.
  struct Proof: Encodable {
    let locked: Bool
    @Nullable var cause: String?
    @Nullable var fps: String?
    @Nullable var fpsValue: Double?
    let jitterNs: Int64
    let dropped: Int64

    init(_ proof: FrameRateVerification) {
      locked = proof.isLocked
      cause = proof.cause?.rawValue
      fps = proof.measurement.frameRate?.description
      fpsValue = proof.measurement.frameRate?.doubleValue
      jitterNs = proof.measurement.jitterNanoseconds
      dropped = proof.measurement.dropped
    }
  }

  /// Where in a clip its trigger is.
  struct Trigger: Encodable {
    let source: String
    @Nullable var frameIndex: Int64?
    let atNs: Int64

    init(_ mark: TriggerMark) {
      source = mark.trigger.source.rawValue
      frameIndex = mark.frameIndex
      atNs = mark.nanoseconds
    }
  }

  /// How the pictures are encoded.
  struct Video: Encodable {
    let codec: String
    @Nullable var profile: String?
    @Nullable var level: String?
    let bitRate: Int64
    @Nullable var maxBitRate: Int64?

    init(_ video: RecordedVideo) {
      codec = video.codec.rawValue
      profile = video.profile
      level = video.level
      bitRate = video.bitRate
      maxBitRate = video.maximumBitRate
    }
  }

  /// The memory that waited for triggers.
  struct Ring: Encodable {
    let capacityBytes: Int
    let peakBytes: Int
  }

  /// What was known before the take.
  struct Preflight: Encodable {
    let bytesPerSecond: Int64
    @Nullable var diskBytesPerSecond: Int64?
    @Nullable var freeBytes: Int64?
    @Nullable var freeNs: Int64?
    let longestBurstNs: Int64

    init(_ preflight: RecordingPreflight) {
      bytesPerSecond = preflight.bytesPerSecond
      diskBytesPerSecond = preflight.diskBytesPerSecond
      freeBytes = preflight.freeBytes
      freeNs = preflight.freeDuration.map { nanoseconds($0.seconds) }
      longestBurstNs = nanoseconds(preflight.maximumBurstDuration.seconds)
    }
  }

  /// One of the clips of `--repeat`.
  struct Clip: Encodable {
    let file: String
    let durationNs: Int64
    let ledger: Ledger
    let gaps: [Gap]
    let intervals: Intervals
    let stoppedBy: String
    let playable: Bool
    @Nullable var trigger: Trigger?
    let warnings: [String]
    @Nullable var video: Video?
    @Nullable var audio: Audio?

    init(_ report: RecordingReport) {
      file = report.path
      durationNs = report.durationNanoseconds
      ledger = Ledger(report.ledger)
      gaps = report.gaps.map(Gap.init)
      intervals = Intervals(report.intervals)
      stoppedBy = report.stoppedBy.rawValue
      playable = report.isPlayable
      trigger = report.trigger.map(Trigger.init)
      warnings = report.warnings
      video = report.video.map(Video.init)
      audio = report.audio.map(Audio.init)
    }
  }

  let schema = schemaName("record")
  let file: String
  let mode: String
  let codec: String
  let requestedFps: String
  let requestedFpsValue: Double
  let negotiatedFps: String
  let negotiatedFpsValue: Double
  @Nullable var measuredFps: String?
  @Nullable var measuredFpsValue: Double?
  /// Why the measured rate is not the one that was asked for.
  @Nullable var rateCause: String?
  @Nullable var proof: Proof?
  let durationNs: Int64
  @Nullable var startupNs: Int64?
  let ledger: Ledger
  let gaps: [Gap]
  let intervals: Intervals
  let stoppedBy: String
  let playable: Bool
  /// Of the one clip; null where the take was simply begun, and with `--repeat`.
  @Nullable var trigger: Trigger?
  @Nullable var ring: Ring?
  /// Triggers without a clip; null where none were waited for.
  @Nullable var ignoredTriggers: Int?
  @Nullable var refusedTriggers: Int?
  let preflight: Preflight
  let warnings: [String]
  /// Null with `--repeat`, where each clip has its own.
  @Nullable var video: Video?
  @Nullable var audio: Audio?
  /// Only with `--repeat`.
  var files: [Clip]?
  /// Only where something failed; a document without this key is a success.
  private(set) var error: ErrorDetails?

  /// What ends the verb.
  private(set) var problem: CommandError?
  /// What `--max-drops` counts.
  let dropped: Int64

  enum CodingKeys: CodingKey {
    case schema, file, mode, codec, requestedFps, requestedFpsValue, negotiatedFps
    case negotiatedFpsValue, measuredFps, measuredFpsValue, rateCause, proof, durationNs, startupNs
    case ledger, gaps, intervals, stoppedBy, playable, trigger, ring
    case ignoredTriggers, refusedTriggers, preflight
    case warnings, video, audio, files, error
  }

  /// Says that something failed after the take, unless that did.
  mutating func fail(_ problem: CommandError) {
    guard self.problem == nil else { return }
    self.problem = problem
    error = ErrorDetails(problem)
  }

  /// Tells of a take, or of a capture that waited for triggers and its one clip.
  init(
    _ report: RecordingReport, of capture: TriggeredReport? = nil,
    _ preflight: RecordingPreflight, _ problem: CommandError?
  ) {
    file = report.path
    mode = report.mode
    codec = report.codec?.rawValue ?? ""
    requestedFps = report.requestedFrameRate.description
    requestedFpsValue = report.requestedFrameRate.doubleValue
    negotiatedFps = report.negotiatedFrameRate.description
    negotiatedFpsValue = report.negotiatedFrameRate.doubleValue
    measuredFps = report.measuredFrameRate?.description
    measuredFpsValue = report.measuredFrameRate?.doubleValue
    rateCause = report.rateCause?.rawValue
    proof = report.proof.map(Proof.init)
    durationNs = report.durationNanoseconds
    startupNs = report.startupNanoseconds
    ledger = Ledger(report.ledger)
    dropped = report.ledger.dropped
    gaps = report.gaps.map(Gap.init)
    intervals = Intervals(report.intervals)
    stoppedBy = report.stoppedBy.rawValue
    playable = report.isPlayable
    trigger = report.trigger.map(Trigger.init)
    ring = capture.map { Ring(capacityBytes: $0.ringCapacity, peakBytes: $0.ringPeak) }
    ignoredTriggers = capture?.ignoredTriggerCount
    refusedTriggers = capture?.refusedTriggerCount
    self.preflight = Preflight(preflight)
    warnings = report.warnings
    self.problem = problem
    video = report.video.map(Video.init)
    audio = report.audio.map(Audio.init)
    error = problem.map(ErrorDetails.init)
  }

  /// Tells of a capture that waited for triggers; `path` is the file asked for, or its template.
  init(
    _ capture: TriggeredReport, _ preflight: RecordingPreflight, path: String, repeats: Bool,
    _ problem: CommandError?
  ) {
    // One clip is a take of its own; of several the capture is the take.
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
      whole.durationNanoseconds = capture.clips.reduce(0) { $0 + $1.durationNanoseconds }
      whole.stoppedBy = capture.stoppedBy
      whole.isPlayable = capture.clips.allSatisfy(\.isPlayable)
    }
    whole.measuredFrameRate = capture.measuredFrameRate
    whole.startupNanoseconds = capture.startupNanoseconds
    whole.proof = capture.proof
    whole.ledger = capture.ledger
    whole.warnings += capture.warnings
    self.init(whole, of: capture, preflight, problem)
    if repeats { files = capture.clips.map(Clip.init) }
  }
}

extension RecordDocument.Gap {
  init(_ gap: FrameGap) {
    self.init(
      afterIndex: gap.afterIndex, count: gap.count, atNs: gap.nanoseconds,
      cause: gap.cause.rawValue)
  }
}
