// SPDX-License-Identifier: Apache-2.0

/// The image stabilization that a connection prefers.
public enum VideoStabilizationMode: String, Hashable, Sendable, CaseIterable {
  /// The camera does not stabilize the image.
  case off
  /// The camera stabilizes the image.
  case standard
  /// The camera keeps its own setting.
  case auto
}
