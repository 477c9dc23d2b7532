// SPDX-License-Identifier: Apache-2.0

import Overcrank

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
