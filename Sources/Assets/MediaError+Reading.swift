// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
package import OvercrankMediaCore

extension MediaError {
  /// Converts an error of libav or of the system that occurred while a file was read.
  package init(reading error: CallFailure) {
    guard error.kind != .cancelled else {
      self = .readingCancelled(error.subject, cause: error.cause)
      return
    }
    // libav has no error code for a movie without an index. Only libav's log line shows the cause.
    if error.logLine?.contains("moov atom not found") == true {
      self.init(
        .invalidData,
        "\(error.subject) has no index (moov): it is truncated, or was never finished",
        recovery: "check that it is a movie, and copy it again from where it was recorded",
        cause: error.cause)
      return
    }
    if let format = error.unsupportedFormat {
      self.init(
        .invalidData,
        "\(error.subject) is not a movie: libavformat reads it as \(format), which may refer to other files",
        recovery: "choose the movie itself", cause: error.cause)
      return
    }
    switch error.systemNumber {
    case ESPIPE:
      self.init(
        .invalidData, "\(error.subject) is not a regular file and can be read only once",
        recovery: "save it to a file first", cause: error.cause)
      return
    case ETIMEDOUT:
      self.init(
        .invalidData, "\(error.subject) is damaged: libavformat reads it in an endless loop",
        recovery: "check that it is a movie file that plays", cause: error.cause)
      return
    default: break
    }
    self.init(error, at: .reading)
  }

  /// Creates the error for a file whose reading was cancelled.
  package static func readingCancelled(_ path: String, cause: Cause? = nil) -> MediaError {
    MediaError(
      .cancelled, "the reading of \(path) was cancelled", recovery: "nothing was written",
      cause: cause)
  }

  /// Throws an error if all reading in this process was cancelled.
  static func checkCancellation(_ path: String) throws(MediaError) {
    if ReadWatch.cancelsAll { throw .readingCancelled(path) }
  }

  /// Creates the error for a file that is not a readable movie.
  static func invalid(_ path: String, _ why: String) -> MediaError {
    MediaError(
      .invalidData, "\(path) \(why)",
      recovery: "choose a movie file")
  }
}

extension CallStage {
  /// Reading a movie.
  fileprivate static let reading = CallStage(
    [
      .notFound: Row(.fileNotFound, playable), .noPermission: Row(.noPermission, playable),
      .transferFailed: Row(.readFailed, playable),
    ], other: Row(.invalidData, playable))
  private static let playable: Recovery = "check that it is a movie file that plays"
}
