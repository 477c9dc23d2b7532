// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
