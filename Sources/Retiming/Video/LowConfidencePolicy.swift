// SPDX-License-Identifier: Apache-2.0

/// The policy for in-betweens of low confidence, where the motion between two frames cannot be
/// followed.
public enum LowConfidencePolicy: String, Hashable, Sendable, CaseIterable {
  /// The in-between as it is.
  case flow
  /// The earlier frame.
  case hold
  /// Both frames mixed.
  case blend
}
