// SPDX-License-Identifier: Apache-2.0

/// The policy for synthesized frames of low confidence, where the motion between two frames cannot
/// be followed.
public enum LowConfidencePolicy: String, Hashable, Sendable, CaseIterable {
  /// Shows the synthesized frame anyway.
  case flow
  /// Shows the earlier captured frame.
  case hold
  /// Shows a mix of both captured frames.
  case blend
}
