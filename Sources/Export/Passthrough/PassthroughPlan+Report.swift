// SPDX-License-Identifier: Apache-2.0

import OvercrankEditing
import OvercrankMediaCore

extension PassthroughPlan {
  /// Adds the copied packets and the cuts of a playback run to the report.
  mutating func note(
    _ run: PlaybackRun, _ shown: ClosedRange<Int>, _ selection: CutFinder.Selection,
    _ finder: CutFinder, _ path: String
  ) {
    copies += finder.copies(selection.copied)
    guard !run.isReversed else { return }
    for isStart in [true, false] {
      // If the run starts at the start of the source, or ends at its end, that boundary is not a
      // cut.
      let cut = isStart ? shown.lowerBound : shown.upperBound + 1
      guard isStart ? cut > 0 : cut < finder.frameCount else { continue }
      let rendered = isStart ? selection.head.count : selection.tail.count
      let hidden = selection.copied.count {
        isStart
          ? $0.position < finder.position(of: shown.lowerBound)
          : $0.position > finder.position(of: shown.upperBound)
      }
      let free = finder.freeCuts(isStart: isStart, around: cut, first: shown.lowerBound)
      cuts.append(
        ExportReport.Cut(
          path: path, isStart: isStart, source: isStart ? run.start : run.end,
          target: isStart ? run.target : run.targetEnd,
          method: rendered > 0 ? .rendered : hidden > 0 ? .hidden : .free,
          frames: Int64(rendered > 0 ? rendered : hidden), freeBefore: free.before,
          freeAfter: free.after))
    }
  }
}
