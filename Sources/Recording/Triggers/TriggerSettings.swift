// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankFrameAccounting
public import OvercrankMediaCore

/// The clip length and the triggers of a triggered recording.
///
/// A clip contains the frames with times in `[trigger − preDuration, trigger + postDuration)` on
/// the camera's clock. Frames before the trigger come from a ring in memory. A trigger outside the
/// quiet period of the previous trigger creates a complete clip, even if another clip is still
/// being recorded. At most 16 clips are recorded at the same time. Further triggers are refused.
public struct TriggerSettings: Sendable {
  /// The duration of a clip before its trigger.
  public var preDuration: MediaTime
  /// The duration of a clip after its trigger.
  public var postDuration: MediaTime
  /// Whether each trigger creates a clip.
  ///
  /// If false, the capture ends after the first clip.
  public var repeats = false
  /// The least time between two triggers that create clips.
  ///
  /// Triggers in between are ignored.
  ///
  /// Nil uses the length of a clip, so that clips do not overlap.
  public var quietPeriod: MediaTime?
  /// The number of clips after which a repeating capture ends.
  ///
  /// Nil means no limit.
  public var maximumClipCount: Int?
  /// The greatest size of the ring in bytes.
  ///
  /// Nil selects enough memory for the frames of `preDuration` plus two seconds, in which the disk
  /// may stall, but at most half of the free memory. Compressed frames usually need less. If the
  /// ring is too small, it drops its oldest frames early, and the report contains a warning.
  public var memoryLimit: Int?
  /// The audio trigger, or nil for none.
  public var audio: AudioTrigger?
  /// The motion trigger, or nil for none.
  public var motion: MotionTrigger?
  /// Whether triggers are ignored until the ring holds ``preDuration``.
  ///
  /// The duration limit in the recording settings then counts from that time. If the memory is too
  /// small for ``preDuration``, triggers count as soon as the ring is full. Default: false.
  public var armsWhenFull = false
  /// Returns the path of a clip; clips are numbered from 1.
  ///
  /// Nil uses the path in the recording settings.
  public var clipPath: (@Sendable (_ number: Int) -> String)?

  /// Returns the details of a trigger's clip, or nil for those of the recording settings.
  package var clipDetails: (@Sendable (CaptureTrigger) -> ClipDetails?)?
  /// Called when the last frame of a clip was stored, before its file is finished, on the thread that
  /// writes the clips.
  package var clipDidRecord: (@Sendable (CaptureTrigger) -> Void)?
  /// Called with the result of each clip, on the thread that writes the clips.
  package var clipDidEnd: (@Sendable (CaptureTrigger, Result<RecordingReport, MediaError>) -> Void)?
  /// Whether the capture fails if the session is not running.
  ///
  /// If false, the capture starts the session.
  package var requiresRunningSession = false

  /// The path and the metadata of one clip.
  package struct ClipDetails: Sendable {
    package var path: String
    package var overwrites: Bool
    /// Items of the metadata in the clip's file.
    package var metadata: [MetadataItem]
    /// The key of a timed metadata value that is stored at the time of the trigger.
    package var markKey: String

    package init(path: String, overwrites: Bool, metadata: [MetadataItem], markKey: String) {
      (self.path, self.overwrites) = (path, overwrites)
      (self.metadata, self.markKey) = (metadata, markKey)
    }
  }

  /// Creates settings for a capture that ends after one clip.
  public init(preDuration: MediaTime, postDuration: MediaTime) {
    self.preDuration = preDuration
    self.postDuration = postDuration
  }
}

/// A trigger, whose time is the time around which a clip is recorded.
public struct CaptureTrigger: Hashable, Sendable {
  /// The source of a trigger.
  public enum Source: String, Hashable, Sendable, CaseIterable, Codable {
    /// A call of a method of this library.
    case call
    /// A POSIX signal.
    case signal
    /// A key press or a line of input.
    case key
    /// A UDP datagram.
    case udp
    /// Loud audio.
    case audio
    /// Motion in the image.
    case motion
  }

  /// The source of the trigger.
  public let source: Source
  /// The time of the trigger, on the camera's clock.
  public var time: MediaTime { MediaTime(microseconds: microseconds) }
  /// The time of the trigger in microseconds, the unit of V4L2 timestamps.
  package let microseconds: Int64
  /// A number by which the caller that creates triggers can identify them.
  package let tag: Int64

  /// Creates a trigger.
  ///
  /// - Parameters:
  ///   - source: The source of the trigger.
  ///   - time: The time on the camera's clock, rounded to microseconds.
  public init(source: Source, time: MediaTime) {
    self.init(source: source, microseconds: time.wholeMicroseconds)
  }

  package init(source: Source, microseconds: Int64, tag: Int64 = 0) {
    self.source = source
    self.microseconds = microseconds
    self.tag = tag
  }
}

/// The position of a trigger in its clip.
public struct TriggerMark: Hashable, Sendable, Codable {
  /// The source of the trigger.
  public let source: CaptureTrigger.Source
  /// The time of the trigger, on the camera's clock.
  public let captureTime: MediaTime
  /// The index of the last stored frame at or before the trigger, from 0.
  ///
  /// Nil if the trigger was before the first frame.
  public let frameIndex: Int64?
  /// The time of the trigger in the clip.
  ///
  /// Negative if it was before the first frame.
  public let time: MediaTime

  private enum CodingKeys: String, CodingKey {
    case source, frameIndex
    case captureTime = "capture"
    case time = "at"
  }
}

/// The report of a triggered recording with all its clips.
public struct TriggeredReport: Hashable, Sendable, Codable {
  /// The clips in the order of their triggers.
  public var clips: [RecordingReport] = []
  /// The number of triggers that started a clip.
  public var triggerCount = 0
  /// The number of triggers that were ignored because they came before the ring was full, within a
  /// quiet period, or after the last possible clip.
  public var ignoredTriggerCount = 0
  /// The number of triggers that were refused because 16 clips were already waiting or being
  /// recorded.
  public var refusedTriggerCount = 0
  /// The counts of frame periods by outcome, such as stored or evicted, over the whole capture.
  ///
  /// A frame that is in any clip counts as stored. A frame that left the ring without being in a
  /// clip counts as evicted.
  public var ledger = FrameLedger()
  /// The gaps of the whole capture.
  ///
  /// A gap's index counts the frames that are stored in at least one clip.
  public var gaps: [FrameGap] = []
  /// The frame rate that was requested for the capture.
  public var requestedFrameRate: FrameRate
  /// The frame rate that the driver reported after the request.
  public var negotiatedFrameRate: FrameRate
  /// The measured frame rate, in which lost frames count like stored ones.
  ///
  /// Nil for fewer than two frames.
  public var measuredFrameRate: Rational?
  /// The step of the driver's timestamps, or nil if none is apparent.
  public var timestampQuantum: Duration?
  /// The time from the start of the stream to the camera's first frame.
  ///
  /// If the driver did not deliver the first frame, its time is computed from the sequence number
  /// of the first delivered frame.
  public var startupDuration: Duration?
  /// The ID of the capture format, as in `CaptureFormat.id`.
  public var mode = ""
  /// The codec of the recorded video.
  public var codec: VideoCodec?
  /// The capacity in bytes of the ring that keeps the latest frames.
  public var ringCapacity = 0
  /// The greatest number of bytes in the ring during the capture.
  public var ringPeak = 0
  /// The result of the frame rate verification before the capture.
  ///
  /// Nil if the verification was skipped.
  public var frameRateVerification: FrameRateVerification?
  /// The reason why the capture ended.
  public var stoppedBy = StopReason.signal
  /// The first error of the capture, or nil.
  ///
  /// Clips may still be playable.
  public var problem: MediaError?
  /// Warnings about conditions of the capture that are not errors.
  public var warnings: [String] = []
}

extension TriggeredReport {
  /// Adds the numbers of triggers that were ignored or refused.
  mutating func count(_ queue: TriggerQueue) {
    ignoredTriggerCount += queue.ignoredCount
    refusedTriggerCount += queue.refusedCount
    guard refusedTriggerCount > 0 else { return }
    warnings.append(
      "\(refusedTriggerCount) triggers have no clip: \(TriggerQueue.capacity) others were being "
        + "recorded")
  }
}
