// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

extension MediaError.Code {
  /// The file was replaced or removed while it was being recorded.
  public static let outputReplaced = Self(rawValue: "output_replaced")
  /// The codec does not go with what the camera delivers.
  public static let codecRefused = Self(rawValue: "codec_refused")
  /// The output is connected to no camera, or to one that has stopped.
  public static let notConnected = Self(rawValue: "not_connected")
  /// No frame arrived that could be stored.
  public static let nothingStored = Self(rawValue: "nothing_stored")
  /// The recording was cut off before its first frame.
  public static let nothingToRecover = Self(rawValue: "nothing_to_recover")
  /// The queue to the file is full.
  public static let notReady = Self(rawValue: "not_ready")
  /// The call does not fit the current state.
  public static let wrongState = Self(rawValue: "wrong_state")
  /// The file is still being recorded.
  public static let beingRecorded = Self(rawValue: "being_recorded")
}

extension MediaError {
  /// A recording that libav or the disk cannot write.
  init(recording error: LibAVError) {
    if [EAGAIN, ENOMEM].contains(error.systemErrorNumber) {
      self.init(
        .outOfMemory, error.description, recovery: "close other programs and try again",
        cause: error.cause)
      return
    }
    let isFull = error.isDiskFull
    self.init(
      isFull ? .diskFull : .writeFailed, error.description,
      recovery: isFull
        ? "free some space; what was written so far can be played"
        : Recovery("check the disk, or choose another codec", .change(.codec)),
      cause: error.cause)
  }

  /// The name of a finished recording belongs to another file, or to none.
  init(replacing file: OpenFile) {
    let isTaken = FileIdentity(ofName: file.path) != nil
    self.init(
      .outputReplaced,
      isTaken
        ? "another file took the place of \(file.path) while it was being recorded"
        : "\(file.path) was removed while it was being recorded",
      recovery: file.currentPath.map { "the recording is now \($0)" }
        ?? "record again, and leave the file alone meanwhile")
  }
}
