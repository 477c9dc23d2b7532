// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// How a take is divided into files.
///
/// No frame is lost between two files. A file begins with the first frame at or after a multiple of
/// ``duration``; if a camera delivers H.264, with the first key frame. Uncompressed audio continues
/// from file to file to the sample. Compressed audio does too, but is encoded anew for each file.
public struct SegmentSettings: Sendable {
  /// The duration of a file.
  ///
  /// Nil if only the camera's return begins another file.
  public var duration: MediaTime?
  /// The time to wait for a camera that was lost, or that is in another mode.
  ///
  /// A session that was running before the take may change the camera's mode for a photo. If the
  /// camera returns in time, the take goes on in the next file, and the missing periods are
  /// `lostDevice` in the ledger of the take. Nil ends the take when the camera is lost.
  public var reconnectTimeout: MediaTime?
  /// Returns the path of the file with this number, from 1.
  ///
  /// Called on the thread that writes.
  public var filePath: @Sendable (_ number: Int) -> String

  /// Makes settings with the paths of the files.
  public init(
    duration: MediaTime? = nil, reconnectTimeout: MediaTime? = nil,
    filePath: @escaping @Sendable (_ number: Int) -> String
  ) {
    (self.duration, self.reconnectTimeout) = (duration, reconnectTimeout)
    self.filePath = filePath
  }
}

/// The report of a take with several files.
public struct SegmentedReport: Hashable, Sendable, Codable {
  /// The report of the whole take.
  ///
  /// Its ledger also has the periods between files, which are in no file's ledger while the camera
  /// was lost. It has no intervals and no audio; the files' reports have them.
  public var take: RecordingReport
  /// The reports of the files, in order.
  public var files: [RecordingReport]
}

/// An event of a take with several files.
public enum SegmentEvent: Sendable {
  /// A file was created.
  case didStart(path: String)
  /// More of the take was stored. The counts are those of all files.
  case progress(MovieFileOutput.Progress)
  /// A file is finished.
  case didFinish(RecordingReport)
  /// A file could not be created, or has no frames.
  ///
  /// If it could not be created, the file before it goes on.
  case didFail(path: String, MediaError)
  /// The camera was lost, and the take waits for it.
  case waitingForDevice
}
