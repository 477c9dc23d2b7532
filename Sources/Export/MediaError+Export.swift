// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankRetiming

extension MediaError.Code {
  /// The name of the file asks for a container that is not written.
  public static let unsupportedContainer = Self(rawValue: "unsupported_container")
  /// The composition has content that this kind of export cannot write.
  public static let unsupportedSource = Self(rawValue: "unsupported_source")
  /// Without re-encoding, a cut must fall on a key frame.
  public static let cutNotOnKeyFrame = Self(rawValue: "cut_not_on_key_frame")
  /// The codec cannot store images of the requested size.
  public static let boxRefused = Self(rawValue: "box_refused")
  /// The audio cannot be retimed in this way.
  public static let audioRefused = Self(rawValue: "sound_refused")
}

extension MediaError {
  /// An export that libav or the disk ended.
  init(exporting error: LibAVError) {
    guard !error.isCancelled else {
      self = .exportCancelled
      return
    }
    // The source is to blame, not the disk: damaged data, or a format the encoder does not take.
    let isOfSource =
      error.isInvalidData
      || error.systemErrorNumber.map { [EINVAL, ERANGE, ENOSYS, ETIMEDOUT, EAGAIN].contains($0) }
        ?? false
    guard !isOfSource else {
      self.init(
        .unsupportedSource, error.description,
        recovery: "check that the source plays, or export in the other way", cause: error.cause)
      return
    }
    self.init(
      error.isDiskFull ? .diskFull : .writeFailed, error.description,
      recovery: error.isDiskFull
        ? "free some space and try again" : "check the disk, or export in the other way",
      cause: error.cause)
  }

  /// An error of the layers below, as the export reports it.
  init(exporting error: any Error) {
    switch error {
    // A source may be read again at any time, and its reading be cancelled.
    case let error as MediaError where error.code == .cancelled: self = .exportCancelled
    case let error as MediaError where Self.audioCodes.contains(error.code):
      self.init(
        .audioRefused, error.message,
        recovery: Recovery(
          "choose another algorithm; mute takes any speed", .change(.pitchAlgorithm)),
        cause: error.cause)
    case let error as MediaError: self = error
    case let error as FileCreationError: self.init(error)
    case let error as LibAVError: self.init(exporting: error)
    default: self.init(.init(rawValue: "internal"), "the export failed: \(error)")
    }
  }

  /// What an ``AudioRetimer`` refuses.
  private static let audioCodes: Set<Code> = [
    .speedOutOfRange, .unsupportedFormat, .invalidMappings, .invalidSamples, .engine,
  ]

  static func hasNoFrames(_ path: String) -> MediaError {
    MediaError(
      .unsupportedSource, "\(path) holds no images", recovery: "give a movie with video")
  }

  static let exportCancelled = MediaError(
    .cancelled, "the export was cancelled", recovery: "nothing was left behind")
}
