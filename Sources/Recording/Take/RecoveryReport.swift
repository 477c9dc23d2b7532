// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// The result of recovering an unfinished recording.
public struct RecoveryReport: Hashable, Sendable, Codable {
  /// The path of the recovered file.
  public let path: String
  /// Whether the file already was a plain (unfragmented) movie and was therefore not changed.
  public let wasIntact: Bool
  /// The path or the ID of the recorded device, or nil if the file does not contain it.
  public package(set) var device: String?
  /// The ID of the capture format, as in `CaptureFormat.id`, or nil if the file does not contain
  /// it.
  public package(set) var mode: String?
  /// The number of frames in the file after the recovery.
  public package(set) var frameCount: Int64 = 0
  /// The number of frames that players could read before the recovery.
  public package(set) var frameCountBefore: Int64 = 0
  /// The number of lost frames that had partly reached the file.
  ///
  /// Frames that were still in the memory of the killed program left no trace and are not counted.
  public package(set) var lostFrameCount: Int64 = 0
  /// The duration of the lost frames.
  public package(set) var lostDuration = MediaTime.zero
  /// The duration of the file after the recovery.
  public package(set) var duration = MediaTime.zero
  /// The counts of frame periods by outcome, such as stored or lost, rebuilt from the file.
  ///
  /// Nil for an intact file.
  public package(set) var ledger: FrameLedger?
  /// The gaps in order.
  ///
  /// A gap consists of consecutive missing frames.
  public package(set) var gaps: [FrameGap] = []
  /// The intervals between the frames in the file.
  ///
  /// Nil for fewer than two frames.
  public package(set) var intervals: FrameIntervals?
  /// The measured capture rate.
  ///
  /// Nil for fewer than two frames and for an intact file.
  public package(set) var measuredFrameRate: Rational?
  /// Whether the file was read back successfully and is playable.
  public package(set) var isPlayable = false

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case wasIntact = "wasPlain"
    case lostFrameCount = "framesLost"
    case lostDuration = "lost"
    case measuredFrameRate = "measuredFps"
    case isPlayable = "playable"
    case device, mode, frameCount, frameCountBefore, duration, ledger, gaps, intervals
  }

  package init(path: String, wasIntact: Bool) {
    self.path = path
    self.wasIntact = wasIntact
  }
}
