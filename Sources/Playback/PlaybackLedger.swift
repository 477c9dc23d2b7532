// SPDX-License-Identifier: Apache-2.0

/// Counts of the frames that came due during playback, by what happened to them.
///
/// A frame comes due when playback reaches it, by playing, a seek or a step. Each frame that came
/// due is counted once, so ``due`` is the sum of ``shown``, ``skippedByRate`` and ``late``.
public struct PlaybackLedger: Hashable, Sendable, Codable {
  /// Frames that came due.
  public internal(set) var due = 0
  /// Frames that were shown by the first refresh after they came due.
  public internal(set) var shown = 0
  /// Frames that were not shown, because at the rate of playback more frames come due per second
  /// than the screen has refreshes.
  public internal(set) var skippedByRate = 0
  /// Frames that were not decoded at the refresh that should have shown them.
  public internal(set) var late = 0
  /// Refreshes that showed a synthesized frame; see ``PlayerSettings/sampling``.
  ///
  /// These refreshes are not part of ``due``. If such a refresh is the first after a captured frame
  /// came due, the captured frame counts as shown.
  public internal(set) var synthesized = 0

  /// True if ``due`` is the sum of the three outcomes, which always holds.
  public var isBalanced: Bool { due == shown + skippedByRate + late }

  /// Counts the frames that came due since the last refresh: the frame to show now, and the skipped
  /// frames before it.
  mutating func count(_ passed: Int, isReady: Bool) {
    guard passed > 0 else { return }
    due += passed
    skippedByRate += passed - 1
    if isReady { shown += 1 } else { late += 1 }
  }

  /// Counts the frames that came due since the last refresh, if this refresh shows a gap.
  mutating func skip(_ passed: Int) {
    due += passed
    skippedByRate += passed
  }
}
