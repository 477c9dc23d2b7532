// SPDX-License-Identifier: Apache-2.0

/// Whether a photo output can accept a capture now.
public enum PhotoReadiness: String, Hashable, Sendable {
  /// No camera with a suitable format is running.
  case sessionNotRunning
  /// The output accepts a capture.
  case ready
  /// The greatest possible number of captures is already pending.
  case notReadyMomentarily
  /// The memory for frames that wait to be encoded is nearly full.
  ///
  /// The output accepts a capture, but a burst may fail.
  case notReadyWaitingForProcessing
}
