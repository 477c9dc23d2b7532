// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// What a clip is to hold around its trigger, and how long to wait for triggers.
///
/// A clip holds the frames whose times are in `[trigger − preDuration, trigger + postDuration)`, by
/// the camera's clock: those before it come out of a ring in memory. Each trigger outside the quiet
/// period of the last makes a clip of its own, with all its frames, also where it comes while another
/// is being recorded. At most 16 clips are recorded at a time; further triggers are refused.
public struct TriggerSettings: Sendable {
  /// How much is kept from before the trigger.
  public var preDuration: MediaTime
  /// How much is recorded after it.
  public var postDuration: MediaTime
  /// Whether further triggers make further clips; else the first clip ends the capture.
  public var repeats = false
  /// The least time from one trigger that has a clip to the next; those between are ignored.
  ///
  /// Nil for the length of a clip, so that clips do not overlap.
  public var quietPeriod: MediaTime?
  /// The number of clips after which the capture ends, where triggers repeat; nil for no limit.
  public var maximumClipCount: Int?
  /// Bytes that the ring may take; nil for what `preDuration` and two seconds for a slow disk need
  /// at most, but no more than half of the memory that is free.
  ///
  /// Compressed frames are smaller than a driver says, so in fact it takes less. Where the ring is
  /// too small for `preDuration`, the oldest frames leave it early, and the report says so.
  public var memoryLimit: Int?
  /// The sounds that give triggers; nil for none.
  public var audio: AudioTrigger?
  /// The motion that gives triggers; nil for none.
  public var motion: MotionTrigger?
  /// The file of each clip, by its number from 1; nil takes the path of the recording's settings.
  public var clipPath: (@Sendable (_ number: Int) -> String)?

  /// Makes settings for one clip.
  public init(preDuration: MediaTime, postDuration: MediaTime) {
    self.preDuration = preDuration
    self.postDuration = postDuration
  }
}

/// The instant around which a clip is recorded.
public struct CaptureTrigger: Hashable, Sendable {
  /// What gave the trigger.
  public enum Source: String, Hashable, Sendable, CaseIterable, Codable {
    /// A call of the library.
    case call
    /// A signal of the system.
    case signal
    /// A key, or a line of input.
    case key
    /// A datagram.
    case udp
    /// A loud sound.
    case audio
    /// Something that moves.
    case motion
  }

  /// What gave the trigger.
  public let source: Source
  /// When, by the camera's clock.
  public var time: MediaTime { MediaTime(microseconds: microseconds) }
  /// The same in microseconds, which are all that a driver tells.
  package let microseconds: Int64

  /// Makes a trigger.
  ///
  /// - Parameters:
  ///   - source: What gave it.
  ///   - time: When, by the camera's clock; rounded to the nearest microsecond.
  public init(source: Source, time: MediaTime) {
    self.init(source: source, microseconds: time.wholeMicroseconds)
  }

  package init(source: Source, microseconds: Int64) {
    self.source = source
    self.microseconds = microseconds
  }
}

/// Where in a clip its trigger is.
public struct TriggerMark: Hashable, Sendable, Codable {
  /// What gave the trigger.
  public let source: CaptureTrigger.Source
  /// When it came, by the camera's clock.
  public let captureTime: MediaTime
  /// The stored frame that was the latest when the trigger came, from 0; nil where it came before
  /// the first of them.
  public let frameIndex: Int64?
  /// The trigger's time in the clip; below zero where it came before the first stored frame.
  public let time: MediaTime

  private enum CodingKeys: String, CodingKey {
    case source, frameIndex
    case captureTime = "capture"
    case time = "at"
  }
}

/// What a capture that waited for triggers was, and all its clips.
public struct TriggeredReport: Hashable, Sendable, Codable {
  /// The clips in the order of their triggers.
  public var clips: [RecordingReport] = []
  /// How many triggers came for which a clip was begun.
  public var triggerCount = 0
  /// How many triggers came within the quiet period of another, or after the last clip.
  public var ignoredTriggerCount = 0
  /// How many triggers have no clip because too many others waited or were being recorded.
  public var refusedTriggerCount = 0
  /// What became of every frame period from the beginning to the end of the capture: a frame is
  /// stored if it is in a clip, and evicted if it left the ring without having been in one.
  public var ledger = FrameLedger()
  /// Where frames are missing during the capture; indices count the frames stored in any clip.
  public var gaps: [FrameGap] = []
  /// The rate that was asked of the device.
  public var requestedFrameRate: FrameRate
  /// The rate that the device granted.
  public var negotiatedFrameRate: FrameRate
  /// The rate that the device delivered, losses included; nil for fewer than two frames.
  public var measuredFrameRate: Rational?
  /// From switching the stream on to the first period that the driver claims.
  public var startupDuration: Duration?
  /// The mode that was recorded, as `modes` names it.
  public var mode = ""
  /// The codec of the pictures.
  public var codec: VideoCodec?
  /// Bytes that the ring might take.
  public var ringCapacity = 0
  /// The most bytes that the ring held.
  public var ringPeak = 0
  /// What was measured before the capture began; nil where nothing was.
  public var proof: FrameRateVerification?
  /// Why the capture ended.
  public var stoppedBy = StopReason.signal
  /// What went wrong, where something did; clips may be playable all the same.
  public var problem: MediaError?
  /// What the user should know although nothing failed.
  public var warnings: [String] = []
}

extension TriggeredReport {
  /// Counts the triggers that never became clips.
  mutating func count(_ queue: TriggerQueue) {
    ignoredTriggerCount += queue.ignoredCount
    refusedTriggerCount += queue.refusedCount
    guard refusedTriggerCount > 0 else { return }
    warnings.append(
      "\(refusedTriggerCount) triggers have no clip: \(TriggerQueue.capacity) others were being "
        + "recorded")
  }
}
