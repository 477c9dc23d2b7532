// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// How a take is divided into files.
///
/// No frame is lost between two files. A file begins with the first frame at or after a multiple of
/// ``duration``. If the camera delivers H.264, the file begins with the first key frame after that
/// instead. No audio sample is lost or repeated between two files, although compressed audio is
/// encoded anew for each file.
public struct SegmentSettings: Sendable {
  /// The duration of a file.
  ///
  /// Nil if a new file begins only when a lost camera returns.
  public var duration: MediaTime?
  /// The time to wait for a camera that was lost, or that is in another mode.
  ///
  /// A session that was running before the take may change the camera's mode for a photo. If the
  /// camera returns in time, the take continues in the next file, and the ledger of the take counts
  /// the missing periods as `lostDevice`. If nil, the take ends when the camera is lost.
  public var reconnectTimeout: MediaTime?
  /// Returns the path of the file with this number, from 1.
  ///
  /// Called on the thread that writes the files.
  public var filePath: @Sendable (_ number: Int) -> String

  /// Creates settings with the paths of the files.
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
  /// Its ledger also counts the frame periods during a loss of the camera, which are in no file's
  /// ledger. Intervals and audio are reported only for each file.
  public var take: RecordingReport
  /// The reports of the take's files, in order.
  public var files: [RecordingReport]
}

/// An event of a take with several files.
public enum SegmentEvent: Sendable {
  /// A file of the take was created.
  case didStart(path: String)
  /// More frames of the take were stored. The counts include all files.
  case progress(MovieFileOutput.Progress)
  /// A file of the take is finished.
  case didFinish(RecordingReport)
  /// A file could not be created, or has no frames.
  ///
  /// If it could not be created, the take continues in the file before it.
  case didFail(path: String, MediaError)
  /// The camera was lost, and the take waits for it.
  case waitingForDevice
}
