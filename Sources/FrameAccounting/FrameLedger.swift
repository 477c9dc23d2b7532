// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// What became of every frame period of a take.
///
/// `expected` counts frame periods, which sequence numbers and time stamps together tell; the
/// categories count frames, each where it is known what became of it. The ledger adds up when
/// the two agree.
public struct FrameLedger: Hashable, Sendable, Codable {
  /// Frame periods from the first that the driver claims to the end of the take.
  public var expected: Int64 = 0
  /// Frames that are in the file.
  public var stored: Int64 = 0
  /// Frames that arrived damaged and are not in the file.
  public var corrupt: Int64 = 0
  /// Frames before the first that arrived, by the driver's own count.
  public var lostStart: Int64 = 0
  /// Frames lost in the device or on its bus.
  public var lostDevice: Int64 = 0
  /// Frames lost because the driver had no free buffer.
  public var lostKernel: Int64 = 0
  /// Frames lost because our queue was full: the writer was too slow.
  public var lostQueue: Int64 = 0
  /// Frames that the encoder or the file refused.
  public var lostWriter: Int64 = 0
  /// Frames that left the pre-trigger ring before a trigger came.
  public var evicted: Int64 = 0
  /// Frame periods of which nothing is known.
  public var unknown: Int64 = 0

  /// Makes an empty ledger.
  public init() {}

  /// The sum of all categories, which must equal ``expected``.
  ///
  /// It wraps where it does not fit, which only numbers can that somebody made up.
  public var accounted: Int64 {
    stored &+ corrupt &+ lostStart &+ lostDevice &+ lostKernel &+ lostQueue &+ lostWriter
      &+ evicted &+ unknown
  }

  /// Whether every expected period is accounted for exactly once.
  public var isBalanced: Bool { expected == accounted }

  /// Frames that were due during the take and are not in the file: all but the stored, the
  /// evicted and those before the first.
  public var dropped: Int64 { accounted &- stored &- evicted &- lostStart }
}

/// Frames missing between two stored ones, or after the last.
public struct FrameGap: Hashable, Sendable, Codable {
  /// Why frames are missing.
  public enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
    /// They arrived damaged.
    case corrupt
    /// Lost before the first frame arrived.
    case lostStart = "lost_start"
    /// Lost in the device or on its bus.
    case lostDevice = "lost_device"
    /// Lost because the driver had no free buffer.
    case lostKernel = "lost_kernel"
    /// Lost because our queue was full.
    case lostQueue = "lost_queue"
    /// Refused by the encoder or the file.
    case lostWriter = "lost_writer"
    /// Due, and nobody knows whether they ever were: the device fell silent before its end.
    case unknown
  }

  /// The stored frame after which they are missing, from 0; -1 before the first.
  public let afterIndex: Int64
  /// How many are missing for this cause.
  public var count: Int64
  /// When the first missing frame was due, in the time of the file, which begins with the first stored frame.
  public let time: MediaTime
  /// Why they are missing.
  public let cause: Cause

  private enum CodingKeys: String, CodingKey {
    case afterIndex, count, cause
    case time = "at"
  }

  /// Makes a gap.
  public init(afterIndex: Int64, count: Int64, time: MediaTime, cause: Cause) {
    self.afterIndex = afterIndex
    self.count = count
    self.time = time
    self.cause = cause
  }
}
