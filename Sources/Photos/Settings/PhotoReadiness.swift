// SPDX-License-Identifier: Apache-2.0

/// Whether a photo output can accept a capture now.
public enum PhotoReadiness: String, Hashable, Sendable {
  /// No camera with a suitable format is running.
  case sessionNotRunning
  /// A capture is accepted.
  case ready
  /// As many captures as possible are pending.
  case notReadyMomentarily
  /// The memory for frames that wait to be encoded is nearly full.
  ///
  /// A capture is accepted, but a burst may fail.
  case notReadyWaitingForProcessing
}
