// SPDX-License-Identifier: Apache-2.0

/// What happens where a frame cannot be decoded.
public enum UndecodableFramePolicy: String, Hashable, Sendable, CaseIterable {
  /// The work ends with an error.
  case stop
  /// The frame before is shown in its place; at the start of a file, the first that can be decoded.
  case hold
  /// It is left out.
  case skip
}
