// SPDX-License-Identifier: Apache-2.0

/// The policy for frames that cannot be decoded.
public enum UndecodableFramePolicy: String, Hashable, Sendable, CaseIterable {
  /// The operation that needs the frame throws an error.
  case stop
  /// The previous decodable frame is shown instead.
  ///
  /// At the start of a file, the first decodable frame is shown.
  case hold
  /// The frame is left out of the output.
  case skip
}
