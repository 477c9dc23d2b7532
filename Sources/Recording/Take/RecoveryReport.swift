// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// What became of a recording that a crash or a power cut left unfinished.
public struct RecoveryReport: Hashable, Sendable, Codable {
  /// The file.
  public let path: String
  /// Whether the file was a plain movie already; nothing was changed then.
  public let wasIntact: Bool
  /// The device that was recorded, and the mode; nil where the file does not say.
  public package(set) var device: String?
  /// The mode that was recorded, as `modes` names it; nil where the file does not say.
  public package(set) var mode: String?
  /// Pictures in the file now.
  public package(set) var frameCount: Int64 = 0
  /// Pictures that readers found before.
  public package(set) var frameCountBefore: Int64 = 0
  /// Frames of which something had reached the file, and that are lost.
  ///
  /// What was still in the memory of the program that was killed left no trace, and is in no count.
  public package(set) var lostFrameCount: Int64 = 0
  /// How long those would have played.
  public package(set) var lostDuration = MediaTime.zero
  /// How long the file plays.
  public package(set) var duration = MediaTime.zero
  /// What became of every frame period, made again from the records in the file; nil for a file
  /// that was plain.
  public package(set) var ledger: FrameLedger?
  /// Where frames are missing, in order.
  public package(set) var gaps: [FrameGap] = []
  /// The times from one frame to the next; nil for fewer than two frames.
  public package(set) var intervals: FrameIntervals?
  /// The rate that the device delivered; nil for fewer than two frames, and for a file that was
  /// plain.
  public package(set) var measuredFrameRate: Rational?
  /// Whether the file can be played, as reading it back has shown.
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
