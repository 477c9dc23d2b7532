// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A document that can also be told in lines.
protocol TextDocument {
  /// The same for people.
  var lines: [String] { get }
}

/// A piece of a plan: what of the source plays when, and how fast.
struct SegmentDocument: Encodable {
  struct Range: Encodable {
    let start: String
    let end: String

    init(_ start: Rational, _ end: Rational) {
      self.start = start.description
      self.end = end.description
    }
  }
  /// The file that is played.
  @Nullable var file: String?
  @Nullable var source: Range?
  let target: Range
  /// Of a ramp the mean.
  @Nullable var speed: String?
  @Nullable var speedValue: Double?
  /// `constant`, `ramp`, `hold` or `empty`.
  let motion: String
  let reversed: Bool
  /// The speeds at the ends of a ramp.
  @Nullable var startSpeed: String?
  @Nullable var startSpeedValue: Double?
  @Nullable var endSpeed: String?
  @Nullable var endSpeedValue: Double?

  /// The same for people.
  let line: String

  enum CodingKeys: CodingKey {
    case file, source, target, speed, speedValue, motion, reversed
    case startSpeed, startSpeedValue, endSpeed, endSpeedValue
  }

  init(_ segment: TrackSegment) throws {
    file = segment.source?.path
    source = segment.mapping.map { Range($0.sourceStart, $0.sourceEnd) }
    target = Range(segment.target.start.seconds, segment.target.end.seconds)
    let speed = try segment.speed()
    self.speed = speed?.description
    speedValue = speed?.fraction.doubleValue
    reversed = segment.mapping?.isReversed ?? false
    var words = "speed \(speed?.description ?? "none")"
    switch segment.mapping?.motion {
    case .constant: motion = "constant"
    case .hold: motion = "hold"
    case nil: motion = "empty"
    case .ramp:
      motion = "ramp"
      let start = try segment.mapping?.speed(at: segment.target.start.seconds)
      let end = try segment.mapping?.speed(at: segment.target.end.seconds)
      (startSpeed, startSpeedValue) = (start?.description, start?.doubleValue)
      (endSpeed, endSpeedValue) = (end?.description, end?.doubleValue)
      words = "speed \(Self.text(start)) to \(Self.text(end))"
    }
    let from = segment.mapping.map(Self.words) ?? "nothing plays"
    line = "plan: \(from) at \(segment.target.displayText), \(words)"
  }

  private static func words(_ mapping: PlaybackMapping) -> String {
    let start = "source \(mapping.sourceStart.displayText)"
    if mapping.motion == .hold { return "\(start) is held" }
    return
      "\(start)..\(mapping.sourceEnd.displayText) plays\(mapping.isReversed ? " backwards" : "")"
  }

  /// A speed for people: the fraction where somebody may have written it.
  private static func text(_ speed: Rational?) -> String {
    speed.map { $0.denominator < 10_000 ? $0.description : $0.displayText } ?? ""
  }
}

/// Where the source has fewer frames than a constant rate asks for.
struct SparseDocument: Encodable {
  let start: String
  let end: String
  let fps: String
  let fpsValue: Double

  init(_ sparse: ExportReport.LowRateRange) {
    start = sparse.range.start.seconds.description
    end = sparse.range.end.seconds.description
    fps = "\(sparse.framesPerSecond.numerator)/\(sparse.framesPerSecond.denominator)"
    fpsValue = sparse.framesPerSecond.doubleValue
  }
}

extension ExportReport.LowRateRange {
  /// The same for people.
  var words: String {
    "from \(range.start.displayText) to \(range.end.displayText) s the source has only "
      + "\(decimal(framesPerSecond.doubleValue, 3)) frames a second: some stay on for several"
  }
}

/// A place where a source is cut, and what that takes.
struct CutDocument: Encodable {
  let file: String
  /// `start` or `end`: whether the source starts or ends to play there.
  let edge: String
  let source: String
  let sourceValue: Double
  let target: String
  let targetValue: Double
  /// `free`, `hidden` or `rendered`.
  let way: String
  let frames: Int64
  @Nullable var freeBefore: String?
  @Nullable var freeBeforeValue: Double?
  @Nullable var freeAfter: String?
  @Nullable var freeAfterValue: Double?

  /// The same for people.
  let line: String

  enum CodingKeys: CodingKey {
    case file, edge, source, sourceValue, target, targetValue, way, frames
    case freeBefore, freeBeforeValue, freeAfter, freeAfterValue
  }

  init(_ cut: ExportReport.Cut) {
    file = cut.path
    edge = cut.isStart ? "start" : "end"
    source = cut.source.description
    sourceValue = cut.source.doubleValue
    target = cut.target.seconds.description
    targetValue = cut.target.doubleValue
    way = cut.method.rawValue
    frames = cut.frames
    freeBefore = cut.freeBefore?.seconds.description
    freeBeforeValue = cut.freeBefore?.doubleValue
    freeAfter = cut.freeAfter?.seconds.description
    freeAfterValue = cut.freeAfter?.doubleValue
    let cost =
      switch cut.method {
      case .free: "is free"
      case .hidden: "takes \(cut.frames) hidden frames"
      case .rendered: "takes \(cut.frames) encoded frames"
      }
    let near = [cut.freeBefore, cut.freeAfter].compactMap { $0?.exactDisplayText }
    line =
      "cut: \(cut.path) \(edge)s at \(decimal(cut.source.doubleValue, 6)) s, which \(cost)"
      + (cut.method == .free || near.isEmpty ? "" : "; free at \(near.joined(separator: " and "))")
  }
}

/// A frame that could not be decoded.
struct UndecodableFrameDocument: Encodable {
  let file: String
  let index: Int
  let ptsNs: Int64

  init(_ frame: ExportReport.UndecodableFrame) throws {
    file = frame.path
    index = frame.index
    ptsNs = try frame.time.nanoseconds(.towardNegativeInfinity)
  }
}

/// Packets that are copied one after the other.
struct CopyDocument: Encodable {
  let file: String
  let firstPacket: Int64
  let packetCount: Int64

  init(_ copy: ExportReport.Copy) {
    file = copy.path
    firstPacket = copy.firstPacket
    packetCount = copy.packetCount
  }
}

/// What `retime` and `edit` say of what they would do, or of a project that they wrote.
struct RetimePlanDocument: Encodable, TextDocument {
  let schema: String
  let dryRun: Bool
  let file: String
  let plan: [SegmentDocument]
  let durationNs: Int64
  @Nullable var copies: [CopyDocument]?
  @Nullable var cuts: [CutDocument]?
  @Nullable var framesCopied: Int64?
  @Nullable var framesHidden: Int64?
  @Nullable var framesEncoded: Int64?
  @Nullable var framesDuplicated: Int64?
  @Nullable var framesSkipped: Int64?
  @Nullable var hiddenNs: Int64?
  @Nullable var maxTimeErrorNs: Int64?
  @Nullable var audio: RetimeDocument.Audio?
  @Nullable var avEndDifferenceNs: Int64?
  @Nullable var sparseFrames: [SparseDocument]?
  let lostMetadata: [String]

  enum CodingKeys: CodingKey {
    case sparseFrames
    case schema, dryRun, file, plan, durationNs, copies, cuts, framesCopied, framesHidden
    case framesEncoded
    case framesDuplicated
    case framesSkipped, hiddenNs, maxTimeErrorNs, audio, avEndDifferenceNs, lostMetadata
  }

  /// What an export would do.
  init(_ verb: String, _ report: ExportReport, _ composition: Composition) throws {
    schema = schemaName(verb)
    dryRun = true
    file = report.path
    plan = try report.segments.map(SegmentDocument.init)
    durationNs = try composition.duration.nanoseconds(.halfAwayFromZero)
    copies = report.copies.map(CopyDocument.init)
    cuts = report.cuts.map(CutDocument.init)
    framesCopied = report.framesCopied
    framesHidden = report.framesHidden
    framesEncoded = report.framesEncoded
    framesDuplicated = report.framesDuplicated
    framesSkipped = report.framesSkipped
    hiddenNs = report.hiddenNanoseconds
    maxTimeErrorNs = report.maxTimeErrorNanoseconds
    audio = report.audio.map(RetimeDocument.Audio.init)
    avEndDifferenceNs = report.avEndDifferenceNanoseconds
    sparseFrames = report.sparse.map(SparseDocument.init)
    lostMetadata = report.lostMetadata
  }

  /// What a project holds.
  init(
    _ verb: String, _ file: String, _ composition: Composition, isDryRun: Bool
  ) throws {
    schema = schemaName(verb)
    dryRun = isDryRun
    self.file = file
    plan = try composition.segments.map(SegmentDocument.init)
    durationNs = try composition.duration.nanoseconds(.halfAwayFromZero)
    lostMetadata = []
  }

  var lines: [String] {
    var lines = plan.map(\.line) + (cuts ?? []).map(\.line)
    if let framesCopied, framesCopied > 0 { lines.append("\(framesCopied) frames to copy") }
    if let framesHidden, framesHidden > 0 {
      lines.append("\(framesHidden) frames to hide, for \(hiddenNs ?? 0) ns in all")
    }
    if let framesEncoded, framesEncoded > 0 { lines.append("\(framesEncoded) frames to encode") }
    if !lostMetadata.isEmpty {
      lines.append("would not be kept: \(lostMetadata.joined(separator: ", "))")
    }
    let seconds = decimal(Double(durationNs) / 1e9, 6)
    lines.append(
      dryRun
        ? "\(file): would play \(seconds) s; nothing was written"
        : "\(file): a project of \(seconds) s")
    return lines
  }
}

/// What `retime` and `edit` say of what they did.
struct RetimeDocument: Encodable, TextDocument {
  struct Audio: Encodable {
    let algorithm: String
    let samples: Int64
    let lengthErrorSamples: Int64

    init(_ audio: ExportReport.Audio) {
      algorithm = audio.algorithm
      samples = audio.samples
      lengthErrorSamples = audio.lengthErrorSamples
    }
  }

  let schema: String
  let file: String
  let durationNs: Int64
  let plan: [SegmentDocument]
  let copies: [CopyDocument]
  let cuts: [CutDocument]
  let framesCopied: Int64
  let framesHidden: Int64
  let framesEncoded: Int64
  let framesDuplicated: Int64
  let framesSkipped: Int64
  let hiddenNs: Int64
  let maxTimeErrorNs: Int64
  @Nullable var audio: Audio?
  @Nullable var avEndDifferenceNs: Int64?
  let sparseFrames: [SparseDocument]
  let undecodableFrames: [UndecodableFrameDocument]
  let lostMetadata: [String]
  let wallNs: Int64

  enum CodingKeys: CodingKey {
    case sparseFrames, undecodableFrames
    case schema, file, durationNs, plan, copies, cuts, framesCopied, framesHidden, framesEncoded
    case framesDuplicated
    case framesSkipped, hiddenNs, maxTimeErrorNs, audio, avEndDifferenceNs, lostMetadata, wallNs
  }

  init(_ verb: String, _ report: ExportReport) throws {
    schema = schemaName(verb)
    file = report.path
    durationNs = try report.duration.nanoseconds(.halfAwayFromZero)
    plan = try report.segments.map(SegmentDocument.init)
    copies = report.copies.map(CopyDocument.init)
    cuts = report.cuts.map(CutDocument.init)
    framesCopied = report.framesCopied
    framesHidden = report.framesHidden
    framesEncoded = report.framesEncoded
    framesDuplicated = report.framesDuplicated
    framesSkipped = report.framesSkipped
    hiddenNs = report.hiddenNanoseconds
    maxTimeErrorNs = report.maxTimeErrorNanoseconds
    audio = report.audio.map(Audio.init)
    avEndDifferenceNs = report.avEndDifferenceNanoseconds
    sparseFrames = report.sparse.map(SparseDocument.init)
    undecodableFrames = try report.undecodable.map(UndecodableFrameDocument.init)
    lostMetadata = report.lostMetadata
    wallNs = report.wallNanoseconds
  }

  var lines: [String] {
    var lines = plan.map(\.line) + cuts.map(\.line)
    var counts: [String] = []
    if framesCopied > 0 { counts.append("\(framesCopied) frames copied") }
    if framesHidden > 0 {
      counts.append("\(framesHidden) more hidden (\(hiddenNs) ns)")
    }
    if framesEncoded > 0 {
      counts.append("\(framesEncoded) frames encoded (\(framesDuplicated) of them repeated)")
    }
    if framesSkipped > 0 { counts.append("\(framesSkipped) frames skipped") }
    lines.append(
      "\(file): \(decimal(Double(durationNs) / 1e9, 6)) s, \(counts.joined(separator: ", ")), "
        + "largest time error \(maxTimeErrorNs) ns")
    if let audio { lines.append("sound: \(audio.algorithm), \(audio.samples) samples") }
    if !lostMetadata.isEmpty {
      lines.append("not kept: \(lostMetadata.joined(separator: ", "))")
    }
    return lines
  }
}
