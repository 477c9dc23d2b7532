// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

extension MediaError.Code {
  /// The file was replaced or removed while it was being recorded.
  public static let outputReplaced = Self(rawValue: "output_replaced")
  /// The codec does not support the camera's format.
  public static let codecRefused = Self(rawValue: "codec_refused")
  /// No frame was stored.
  public static let nothingStored = Self(rawValue: "nothing_stored")
  /// The recording ended before its first frame.
  public static let nothingToRecover = Self(rawValue: "nothing_to_recover")
  /// The call is not allowed in the current state.
  public static let wrongState = Self(rawValue: "wrong_state")
  /// The file is still being recorded.
  public static let beingRecorded = Self(rawValue: "being_recorded")
}

extension MediaError {
  /// Converts a libav or disk error from writing a recording.
  init(recording failure: CallFailure) { self.init(failure, at: .recording) }

  /// The error for a recording whose file was replaced or removed.
  init(replacing file: OpenFile) {
    let isTaken = FileIdentity(ofName: file.path) != nil
    self.init(
      .outputReplaced,
      isTaken
        ? "\(file.path) was replaced by another file during the recording"
        : "\(file.path) was removed during the recording",
      recovery: file.currentPath.map { "find the recording in \($0)" }
        ?? "record again, and do not replace or remove the file")
  }
}

extension CallStage {
  /// Writing a recording.
  fileprivate static let recording = CallStage(
    [.diskFull: Row(.diskFull, "free some space; what was written so far can be played")],
    other: Row(
      .writeFailed, Recovery("check the disk, or choose another codec", .change(.codec))))
}
