// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

extension MovieFileOutput {
  /// Records to one file after another until a limit, ``stop(_:)`` or an error.
  ///
  /// Blocks.
  ///
  /// No frame is lost between files. The session is used as in ``record(progress:)``. The limits on
  /// duration and number of frames apply to the whole take. The limit on file size applies to each
  /// file.
  ///
  /// - Parameters:
  ///   - segments: How the take is divided, and where its files are.
  ///   - events: Called on this thread, which writes the files.
  /// - Returns: The report of the take and its files. The take's `problem` is an error that occurred
  ///   after its start.
  /// - Throws: `MediaError` if the first file cannot be created, the device cannot be started, or no
  ///   frame was stored.
  public func record(
    in segments: SegmentSettings, events: (SegmentEvent) -> Void = { _ in }
  ) throws(MediaError) -> SegmentedReport {
    if let duration = segments.duration, duration <= .zero {
      throw MediaError(
        .badConfiguration, "a file of \(duration.seconds) s holds no frame",
        recovery: "choose a duration above zero")
    }
    if segments.reconnectTimeout != nil, settings.isBurst {
      throw MediaError(
        .badConfiguration, "a burst cannot wait for a lost camera",
        recovery: "record without a burst")
    }
    var settings = settings
    settings.path = segments.filePath(1)
    return try recordFiles(settings, segments, events)
  }

  /// Records to one file after another on a background thread, and suspends the task.
  ///
  /// Cancelling the task stops the take as ``stop(_:)`` does, and the files are kept.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func record(
    in segments: SegmentSettings, events: @escaping @Sendable (SegmentEvent) -> Void = { _ in }
  ) async throws(MediaError) -> SegmentedReport {
    try await offload { () throws(MediaError) in try self.record(in: segments, events: events) }
  }

  /// Starts to record to a file on a background thread, or continues a running take in this file.
  ///
  /// A running take continues without a lost frame: the new file begins with the next frame, or
  /// with the next key frame if a camera delivers H.264. ``events`` report each file. If the file
  /// cannot be created, the take continues in the current one.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` while a triggered recording runs, and with
  ///   `.outOfMemory` if no thread can be created.
  public func startRecording(to path: String) throws(MediaError) {
    enum Effect { case joins, starts, refuses }
    let effect = state.withLock { state -> Effect in
      if state.takesPaths || state.take == nil && state.isStarting {
        state.inbox.append(path: path)
        return .joins
      }
      guard state.take == nil else { return .refuses }
      state.isStarting = true
      return .starts
    }
    switch effect {
    case .joins: return
    case .starts:
      do throws(MediaError) { try startRecording(path) } catch {
        endStart()
        throw error
      }
    case .refuses:
      throw MediaError(
        .badConfiguration, "a triggered recording names its files itself",
        recovery: "stop it first")
    }
  }

  /// Adds a value to the timed metadata of the take, such as a measurement of another device.
  ///
  /// The file gets a timed metadata track (`mebx`), which `Asset.timedMetadata()` reads. The value
  /// is kept even if the process is killed. May be called from any thread, and before the take
  /// starts.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key, such as `com.example.speed`.
  ///   - frame: The index of the stored frame in the take, from 0. The frame may be in the current
  ///     file, or still to come. Nil selects the frame that is captured now.
  /// - Returns: False if 65 536 values already wait for the writer. The value is then dropped.
  /// - Throws: `MediaError` with `.invalidMetadata` for a key or value that a movie cannot store, or
  ///   a negative index; `.notConnected` if the output has no camera.
  @discardableResult
  public func append(
    _ value: MetadataValue, forKey key: String, atFrame frame: Int64? = nil
  ) throws(MediaError) -> Bool {
    try TimedMetadataItem.check(key, value)
    if let frame, frame < 0 {
      throw MediaError(
        .invalidMetadata, "the frame \(frame) of a metadata value is negative",
        recovery: "count frames from 0")
    }
    let position: PendingValue.Position =
      if let frame { .frame(frame) } else { .captured(try camera().driver.microseconds()) }
    return state.withLock { $0.inbox }
      .append(PendingValue(position: position, key: key, value: value))
  }

  /// Adds a value that belongs to the frame of a capture time, such as a metadata object.
  ///
  /// In all other respects, this method is like `append(_:forKey:atFrame:)`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key, such as `com.example.speed`.
  ///   - captureTime: A time on the capture clock. The value belongs to the last frame at or before
  ///     this time, which may already be stored. If the file of that frame is finished, the value
  ///     is not stored, and a warning in the report counts it.
  /// - Returns: False if 65 536 values already wait for the writer. The value is then dropped.
  /// - Throws: `MediaError` with `.invalidMetadata` for a key or value that a movie cannot store.
  @discardableResult
  public func append(
    _ value: MetadataValue, forKey key: String, atCaptureTime captureTime: MediaTime
  ) throws(MediaError) -> Bool {
    try TimedMetadataItem.check(key, value)
    let microseconds = captureTime.wholeNanoseconds / 1_000
    return state.withLock { $0.inbox }
      .append(PendingValue(position: .frameTime(microseconds), key: key, value: value))
  }

  /// The metadata items of the file.
  ///
  /// Until this property is set, they are the items of `RecordingSettings.metadata`.
  ///
  /// May be changed before and during a take. A finished file contains the items set when it ended.
  /// An unfinished file contains the items set when it began.
  public var metadata: [MetadataItem] {
    get { changedMetadata.withLock { $0 } ?? settings.metadata }
    set { changedMetadata.withLock { $0 = newValue } }
  }
}
