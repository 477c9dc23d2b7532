// SPDX-License-Identifier: Apache-2.0

/// The fate of every frame that came due during playback.
///
/// A frame comes due when playback reaches it, by playing, a seek or a step. Each such frame is
/// counted exactly once, so ``due`` is the sum of the other three.
public struct PlaybackLedger: Hashable, Sendable, Codable {
  /// Frames that came due.
  public internal(set) var due = 0
  /// Frames that were on screen from the first refresh after they came due.
  public internal(set) var shown = 0
  /// Frames that playback passed between two refreshes, because the rate shows more frames per
  /// second than the screen.
  public internal(set) var skippedByRate = 0
  /// Frames that were not decoded at the refresh that should have shown them.
  public internal(set) var late = 0
  /// Refreshes that showed a synthesized frame; see ``PlayerSettings/sampling``.
  ///
  /// This is no part of the sum. A captured frame counts as shown if such a refresh was the first one
  /// after it came due.
  public internal(set) var synthesized = 0

  /// True if every frame that came due has exactly one fate; always true.
  public var isBalanced: Bool { due == shown + skippedByRate + late }

  /// Counts the frames that came due at a refresh: the one to show, and those before it.
  mutating func count(_ passed: Int, isReady: Bool) {
    guard passed > 0 else { return }
    due += passed
    skippedByRate += passed - 1
    if isReady { shown += 1 } else { late += 1 }
  }

  /// Counts the frames that came due before a refresh that shows a gap.
  mutating func skip(_ passed: Int) {
    due += passed
    skippedByRate += passed
  }
}
