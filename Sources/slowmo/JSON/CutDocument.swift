// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
