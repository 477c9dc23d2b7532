// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
