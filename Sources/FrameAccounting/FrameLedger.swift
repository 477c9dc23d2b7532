// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The counts of a take's frame periods by outcome.
///
/// `expected` counts frame periods, derived from sequence numbers and timestamps together. The
/// categories count frames with a known outcome. The ledger is balanced if the sum of the
/// categories equals `expected`.
public struct FrameLedger: Hashable, Sendable, Codable {
  /// The number of frame periods from the first frame that the driver counted to the end of the
  /// take.
  public var expected: Int64 = 0
  /// The number of frames stored in the file.
  public var stored: Int64 = 0
  /// The number of frames that arrived damaged and were not stored.
  public var corrupt: Int64 = 0
  /// The number of frames lost before the first arrived frame, according to the driver's sequence
  /// number, and of frames that a missing reference frame made undecodable.
  public var lostStart: Int64 = 0
  /// The number of frames lost in the device or on its bus (USB, PCIe).
  public var lostDevice: Int64 = 0
  /// The number of frames lost because the driver had no free buffer.
  public var lostKernel: Int64 = 0
  /// The number of frames lost because the recording queue was full, since the writer was too slow.
  public var lostQueue: Int64 = 0
  /// The number of frames that arrived intact but that the encoder or the file rejected.
  public var lostWriter: Int64 = 0
  /// The number of frames that left the pre-trigger ring before a trigger.
  public var evicted: Int64 = 0
  /// The number of frame periods in which it is unknown whether the device produced a frame.
  public var unknown: Int64 = 0

  /// Makes an empty ledger.
  public init() {}

  /// The sum of the numbers in all categories.
  ///
  /// It equals ``expected`` if the ledger is balanced.
  ///
  /// The sum wraps on overflow, which only a forged ledger can cause.
  public var accounted: Int64 {
    stored &+ corrupt &+ lostStart &+ lostDevice &+ lostKernel &+ lostQueue &+ lostWriter
      &+ evicted &+ unknown
  }

  /// Adds the counts of another part of the take.
  package static func += (left: inout FrameLedger, right: FrameLedger) {
    left.expected += right.expected
    left.stored += right.stored
    left.corrupt += right.corrupt
    left.lostStart += right.lostStart
    left.lostDevice += right.lostDevice
    left.lostKernel += right.lostKernel
    left.lostQueue += right.lostQueue
    left.lostWriter += right.lostWriter
    left.evicted += right.evicted
    left.unknown += right.unknown
  }

  /// Whether every expected frame period is counted in exactly one category.
  public var isBalanced: Bool { expected == accounted }

  /// The number of frames that were due during the take but are not in the file.
  ///
  /// This is the sum of all categories except `stored`, `evicted` and `lostStart`.
  public var dropped: Int64 { accounted &- stored &- evicted &- lostStart }
}

/// Consecutive missing frames with one cause, before, between or after stored frames.
public struct FrameGap: Hashable, Sendable, Codable {
  /// The cause of a loss.
  public enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
    /// The frames arrived damaged.
    case corrupt
    /// The frames were lost before the first frame arrived.
    case lostStart = "lost_start"
    /// The frames were lost in the device or on its bus.
    case lostDevice = "lost_device"
    /// The frames were lost because the driver had no free buffer.
    case lostKernel = "lost_kernel"
    /// The frames were lost because the recording queue was full.
    case lostQueue = "lost_queue"
    /// The encoder or the file rejected the frames.
    case lostWriter = "lost_writer"
    /// The frames were due after the device had stopped delivering frames. Whether the device
    /// produced them is unknown.
    case unknown
  }

  /// The index of the stored frame before the gap, from 0.
  ///
  /// It is -1 if the gap is before the first stored frame.
  public let afterIndex: Int64
  /// The number of frames that are missing in this gap.
  public var count: Int64
  /// The time in the file at which the first missing frame was due.
  ///
  /// Time zero is the first stored frame.
  public let time: MediaTime
  /// The cause of the loss.
  public let cause: Cause

  private enum CodingKeys: String, CodingKey {
    case afterIndex, count, cause
    case time = "at"
  }

  /// Makes a gap.
  public init(afterIndex: Int64, count: Int64, time: MediaTime, cause: Cause) {
    (self.afterIndex, self.count, self.time, self.cause) = (afterIndex, count, time, cause)
  }
}
