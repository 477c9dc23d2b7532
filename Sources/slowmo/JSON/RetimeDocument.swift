// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `retime` and `edit`: an export, its plan, or a written project.
struct RetimeDocument: Encodable, TextDocument {
  /// The kind of result that the document describes.
  private enum Content {
    /// A finished export.
    case done(ExportReport)
    /// The plan of an export; nothing is written.
    case plan(ExportReport)
    /// The plan of one shard of an export, or of a join of all shards, if the output was already
    /// finished; nothing is written.
    case kept(ExportReport)
    /// A project file; nothing is exported.
    case project(path: String, isDryRun: Bool)
  }

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case schema, dryRun, kept, shard, file, duration, plan, cuts, lostMetadata, warnings
    // These keys are null for a project file, which is not an export.
    case copies, framesCopied, framesHidden, framesEncoded, framesDuplicated, framesSkipped
    case framesSynthesized, synthesizedConfidence, shutterDegrees, fileLength
    case framesHeaderChanged, framesWithoutRpu
    case hiddenNs, maxTimeErrorNs, audio, avEndDifferenceNs, sparseFrames

    static let unknownOfProject: [Self] = [
      .cuts, .copies, .framesCopied, .framesHidden, .framesEncoded, .framesDuplicated,
      .framesSkipped, .hiddenNs, .maxTimeErrorNs, .audio, .avEndDifferenceNs, .sparseFrames,
      .shard, .framesSynthesized, .synthesizedConfidence, .shutterDegrees, .fileLength,
      .framesHeaderChanged, .framesWithoutRpu,
    ]
  }

  private let verb: String
  private let content: Content
  private let duration: MediaTime
  private let segments: [SegmentDocument]

  /// Creates the document of a finished export.
  init(_ verb: String, _ report: ExportReport) throws {
    self.verb = verb
    content = .done(report)
    duration = report.duration
    segments = try report.segments.map(SegmentDocument.init)
  }

  /// Creates the document of an export's plan.
  init(_ verb: String, plan: ExportReport, _ composition: Composition) throws {
    self.verb = verb
    content = .plan(plan)
    duration = composition.duration
    segments = try plan.segments.map(SegmentDocument.init)
  }

  /// Creates the document of one shard of an export, or of a join of all shards, if the output was
  /// already finished.
  init(_ verb: String, kept plan: ExportReport) throws {
    self.verb = verb
    content = .kept(plan)
    duration = plan.duration
    segments = try plan.segments.map(SegmentDocument.init)
  }

  /// Creates the document of a project.
  init(_ verb: String, _ file: String, _ composition: Composition, isDryRun: Bool) throws {
    self.verb = verb
    content = .project(path: file, isDryRun: isDryRun)
    duration = composition.duration
    segments = try composition.segments.map(SegmentDocument.init)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch content {
    case .done(let report), .plan(let report), .kept(let report):
      try report.encode(to: encoder)
      try container.encode(report.cuts.map(CutDocument.init), forKey: .cuts)
      try container.encode(report.sparse.map(SparseDocument.init), forKey: .sparseFrames)
      if case .plan = content { try container.encode(true, forKey: .dryRun) }
      if case .kept = content {
        try container.encode(false, forKey: .dryRun)
        try container.encode(true, forKey: .kept)
      }
    case .project(let path, let isDryRun):
      for key in CodingKeys.unknownOfProject { try container.encodeNil(forKey: key) }
      try container.encode(path, forKey: .file)
      try container.encode(isDryRun, forKey: .dryRun)
      try container.encode([String](), forKey: .lostMetadata)
      try container.encode([String](), forKey: .warnings)
    }
    try container.encode(schemaName(verb), forKey: .schema)
    try container.encode(segments, forKey: .plan)
    try container.encode(duration, forKey: .duration)
  }
}

// MARK: Text

extension RetimeDocument {
  var lines: [String] {
    let seconds = decimal(duration.doubleValue, 6)
    switch content {
    case .done(let report): return segments.map(\.line) + Self.lines(report, seconds)
    case .plan(let report):
      return segments.map(\.line) + Self.planLines(report)
        + ["\(report.path): would last \(seconds) s; nothing written"]
    case .kept(let report): return ["\(report.path): kept, it was finished before"]
    case .project(let path, let isDryRun):
      return segments.map(\.line) + [
        isDryRun
          ? "\(path): would last \(seconds) s; nothing written"
          : "\(path): a project of \(seconds) s"
      ]
    }
  }

  private static func lines(_ report: ExportReport, _ seconds: String) -> [String] {
    var counts: [String] = []
    if report.framesCopied > 0 { counts.append("\(report.framesCopied) frames copied") }
    if report.framesHidden > 0 {
      counts.append(
        "\(report.framesHidden) hidden frames added (\(report.hiddenDuration.wholeNanoseconds) ns)")
    }
    if report.framesEncoded > 0 {
      counts.append(
        "\(report.framesEncoded) frames encoded (\(report.framesDuplicated) of them duplicates)")
    }
    if report.framesSynthesized > 0 { counts.append(synthesized(report)) }
    if report.framesSkipped > 0 { counts.append("\(report.framesSkipped) frames skipped") }
    var lines = report.cuts.map { CutDocument($0).line }
    lines.append(
      "\(report.path): \(seconds) s, \(counts.joined(separator: ", ")), "
        + "largest time error \(report.maxTimeError.wholeNanoseconds) ns")
    if let length = report.fileLength {
      var quality: [String] = []
      if let crf = length.crf { quality.append("--crf \(decimal(crf, 2))") }
      if let value = length.quality { quality.append("quality \(value)") }
      if let count = length.colorCount { quality.append("\(count) colors") }
      if let width = length.width, let height = length.height {
        quality.append("\(width)x\(height)")
      }
      lines.append(
        "size: \(length.byteCount) of \(length.limit) bytes with "
          + "\(quality.joined(separator: ", ")), attempts: \(length.attemptCount)")
    }
    if let audio = report.audio {
      lines.append("audio: \(audio.algorithm), \(audio.samples) samples")
    }
    if !report.lostMetadata.isEmpty {
      lines.append("not kept: \(Self.description(report.lostMetadata))")
    }
    return lines
  }

  /// Lost metadata as a list for people.
  private static func description(_ lost: [String]) -> String {
    var seen = Set<String>()
    return lost.map { name in
      if name.hasPrefix("language=") { return "the language \(name.dropFirst("language=".count))" }
      return switch name {
      case "com.overcrank.recording": "the camera's name, mode and settings"
      case "com.overcrank.capture_frame_rate", "com.android.capture.fps": "the capture rate"
      default: name
      }
    }
    .filter { seen.insert($0).inserted }.joined(separator: ", ")
  }

  private static func synthesized(_ report: ExportReport) -> String {
    guard let confidence = report.synthesizedConfidence else {
      return "\(report.framesSynthesized) frames synthesized"
    }
    return "\(report.framesSynthesized) frames synthesized (confidence "
      + "\(decimal(confidence.mean, 2)), lowest \(decimal(confidence.lowest, 2)))"
  }

  private static func planLines(_ plan: ExportReport) -> [String] {
    var lines = plan.cuts.map { CutDocument($0).line }
    if plan.framesCopied > 0 { lines.append("\(plan.framesCopied) frames to copy") }
    if plan.framesHidden > 0 {
      lines.append(
        "\(plan.framesHidden) frames to hide, \(plan.hiddenDuration.wholeNanoseconds) ns in total"
      )
    }
    if plan.framesEncoded > 0 { lines.append("\(plan.framesEncoded) frames to encode") }
    if plan.framesSynthesized > 0 {
      lines.append("\(plan.framesSynthesized) of them to synthesize")
    }
    if !plan.lostMetadata.isEmpty {
      lines.append("not to be kept: \(Self.description(plan.lostMetadata))")
    }
    return lines
  }
}

/// The JSON object of one cut in a source and its cost.
struct CutDocument: Encodable {
  private enum CodingKeys: String, CodingKey {
    case file, edge, source, target, frames, freeBefore, freeAfter
    case method = "way"
  }

  private let cut: ExportReport.Cut

  init(_ cut: ExportReport.Cut) { self.cut = cut }

  /// `start` if playback of the source starts at the cut, else `end`.
  private var edge: String { cut.isStart ? "start" : "end" }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(cut.path, forKey: .file)
    try container.encode(edge, forKey: .edge)
    try container.encode(cut.source, forKey: .source)
    try container.encode(cut.target.seconds, forKey: .target)
    try container.encode(cut.method, forKey: .method)
    try container.encode(cut.frames, forKey: .frames)
    try container.encodeIfPresent(cut.freeBefore?.seconds, forKey: .freeBefore)
    try container.encodeIfPresent(cut.freeAfter?.seconds, forKey: .freeAfter)
  }

  /// The cut as a text line.
  var line: String {
    let cost =
      switch cut.method {
      case .free: "needs no extra frames"
      case .hidden: "needs \(cut.frames) hidden frames"
      case .rendered: "needs \(cut.frames) encoded frames"
      }
    let near = [cut.freeBefore, cut.freeAfter].compactMap { $0?.exactDisplayText }
    return
      "cut: \(cut.path) \(edge)s at \(decimal(cut.source.doubleValue, 6)) s, \(cost)"
      + (cut.method == .free || near.isEmpty
        ? "" : "; none needed at \(near.joined(separator: " and "))")
  }
}

/// The JSON object of a range with fewer source frames than output frames.
struct SparseDocument: Encodable {
  let start: String
  let end: String
  let fps: Rational

  init(_ sparse: ExportReport.LowRateRange) {
    start = sparse.range.start.seconds.description
    end = sparse.range.end.seconds.description
    fps = sparse.framesPerSecond
  }
}

extension ExportReport.LowRateRange {
  /// The range and its frame rate as text.
  var summary: String {
    "from \(range.start.displayText) to \(range.end.displayText) s the source has only "
      + "\(decimal(framesPerSecond.doubleValue, 3)) fps: some frames are repeated"
  }
}
