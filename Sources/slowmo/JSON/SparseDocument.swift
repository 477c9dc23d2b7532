// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Where the source has fewer frames than a constant rate asks for.
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
  /// The same for people.
  var words: String {
    "from \(range.start.displayText) to \(range.end.displayText) s the source has only "
      + "\(decimal(framesPerSecond.doubleValue, 3)) frames a second: some stay on for several"
  }
}
