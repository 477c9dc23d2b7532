// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore

extension MovieFileOutput {
  /// The progress of a take.
  public struct Progress: Hashable, Sendable {
    /// The number of frames stored so far.
    public var stored: Int64
    /// The number of frames lost so far, for any reason.
    public var missing: Int64
    /// The duration of the growing file so far.
    public var duration: MediaTime
    /// How full the writer's queue is, from 0 (empty) to 1 (full), for display.
    public var queueFill: Double
    /// The number of bytes written so far.
    public var bytes: Int64
    /// The level of each audio channel over the last 300 ms.
    ///
    /// Empty without audio.
    public var levels: [AudioLevel] = []
  }

  /// A state change of a recording.
  public enum Event: Sendable {
    /// The recording to this path started.
    case didStart(path: String)
    /// The recording was paused. Frames are left out from now on.
    case didPause(path: String)
    /// The recording resumed.
    case didResume(path: String)
    /// The queue to the file is full, because the writer is too slow.
    ///
    /// Frames are lost until the queue has free space again.
    case didFillQueue(path: String)
    /// The queue is half empty again, and no more frames are lost.
    case didDrainQueue(path: String)
    /// The recording ended.
    ///
    /// If an error occurred after the start, the report contains it.
    case didFinish(RecordingReport)
    /// The recording failed and left no file.
    case didFail(path: String, MediaError)
  }

  /// A state change of a triggered recording.
  public enum TriggeredEvent: Sendable {
    /// The capture waits for a trigger, and keeps frames in a ring of this size in bytes.
    case waiting(ringBytes: Int)
    /// The ring holds frames of this duration from before a trigger.
    ///
    /// Sent up to 50 times while the ring fills, and once when it is full. It is full if it holds
    /// `TriggerSettings.preDuration`, or if it has no more memory.
    case preRoll(duration: MediaTime, isFull: Bool)
    /// A trigger arrived, and its clip started.
    case triggered(CaptureTrigger, clip: Int)
    /// More frames of a clip were stored.
    case progress(Progress)
    /// A clip is finished.
    case finished(RecordingReport)
  }
}
