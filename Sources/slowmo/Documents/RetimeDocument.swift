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

    init(_ range: TimeRange) {
      start = range.start.seconds.description
      end = range.end.seconds.description
    }
  }
  @Nullable var source: Range?
  let target: Range
  @Nullable var speed: String?
  @Nullable var speedValue: Double?

  /// The same for people.
  let line: String

  enum CodingKeys: CodingKey { case source, target, speed, speedValue }

  init(_ segment: TrackSegment) throws {
    source = segment.mapping.map { Range($0.source) }
    target = Range(segment.target)
    let speed = try segment.speed()
    self.speed = speed?.description
    speedValue = speed?.fraction.doubleValue
    let from = segment.mapping.map { "source \($0.source.secondsText)" } ?? "nothing"
    line =
      "plan: \(from) plays at \(segment.target.secondsText), speed "
      + (speed?.description ?? "none")
  }

}

/// What `retime --dry-run` says.
struct RetimePlanDocument: Encodable, TextDocument {
  let schema = schemaName("retime")
  let dryRun = true
  let file: String
  let plan: [SegmentDocument]
  let durationNs: Int64

  enum CodingKeys: CodingKey { case schema, dryRun, file, plan, durationNs }

  init(_ file: String, _ composition: Composition) throws {
    self.file = file
    plan = try composition.segments.map(SegmentDocument.init)
    durationNs = try composition.duration.nanoseconds(.halfAwayFromZero)
  }

  var lines: [String] {
    plan.map(\.line)
      + ["\(file): would play \(decimal(Double(durationNs) / 1e9, 6)) s; nothing was written"]
  }
}

/// What `retime` says of what it did.
struct RetimeDocument: Encodable, TextDocument {
  struct Audio: Encodable {
    let algorithm: String
    let samples: Int64
    let lengthErrorSamples: Int64
  }

  let schema = schemaName("retime")
  let file: String
  let durationNs: Int64
  let plan: [SegmentDocument]
  let framesCopied: Int64
  let framesEncoded: Int64
  let framesDuplicated: Int64
  let framesSkipped: Int64
  let hiddenNs: Int64
  let maxTimeErrorNs: Int64
  @Nullable var audio: Audio?
  @Nullable var avEndDifferenceNs: Int64?
  let lostMetadata: [String]
  let wallNs: Int64

  enum CodingKeys: CodingKey {
    case schema, file, durationNs, plan, framesCopied, framesEncoded, framesDuplicated
    case framesSkipped, hiddenNs, maxTimeErrorNs, audio, avEndDifferenceNs, lostMetadata, wallNs
  }

  init(_ report: ExportReport, _ composition: Composition) throws {
    file = report.path
    durationNs = try report.duration.nanoseconds(.halfAwayFromZero)
    plan = try composition.segments.map(SegmentDocument.init)
    framesCopied = report.framesCopied
    framesEncoded = report.framesEncoded
    framesDuplicated = report.framesDuplicated
    framesSkipped = report.framesSkipped
    hiddenNs = report.hiddenNanoseconds
    maxTimeErrorNs = report.maxTimeErrorNanoseconds
    audio = report.sound.map {
      Audio(
        algorithm: $0.algorithm, samples: $0.samples, lengthErrorSamples: $0.lengthErrorSamples)
    }
    avEndDifferenceNs = report.avEndDifferenceNanoseconds
    lostMetadata = report.lostMetadata
    wallNs = report.wallNanoseconds
  }

  var lines: [String] {
    var lines = plan.map(\.line)
    var counts: [String] = []
    if framesCopied > 0 { counts.append("\(framesCopied) frames copied") }
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
