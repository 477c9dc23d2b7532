// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
