// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// Writes one take: reads frames from the queue, stores them in the file, and creates the report.
struct MovieTake {
  let input: DeviceInput
  var settings: RecordingSettings
  let plan: VideoPipelinePlan
  let control: CaptureControl
  /// The source of the take's audio.
  ///
  /// Nil for a take without audio.
  let audio: TakeAudio?
  /// Whether the camera's stream was started for this take.
  var beginsWithStream: Bool
  /// The values of the camera's controls during the stream.
  var controls: [String: String] = [:]
  /// The rotation, mirroring and zoom of the connection to the camera, or nil without a connection.
  var geometry: ConnectionGeometry?
  /// The trigger of a clip, or nil for a take without a trigger.
  var trigger: CaptureTrigger?
  /// The triggers that the file marks with chapters.
  var markedTriggers: [CaptureTrigger] = []
  /// Returns the current items of the file's metadata, or is nil if the items cannot change during
  /// the take.
  var metadata: (@Sendable () -> [MetadataItem])?

  /// Writes frames until the queue is closed and empty.
  ///
  /// Blocks.
  ///
  /// - Parameters:
  ///   - queue: The frames.
  ///   - sink: The sink that queues the frames.
  ///   - file: The empty file for the first frames.
  ///   - files: The files of the take.
  ///   - earlier: The remainder of the take's previous file. Nil for the first file.
  ///   - queueIsFull: Called with true when the queue becomes full, and with false when it has free
  ///     space again.
  ///   - paused: Called when a pause begins and ends.
  ///   - events: Called with the progress whenever the queued frames have been stored, and at the
  ///     start and end of each file.
  /// - Returns: The report of the last file, and the audio and metadata values that continue in the
  ///   next file. The report's `problem` is an error that occurred after the start of the take.
  /// - Throws: `MediaError` if no frame was stored in the last file. The file is then removed.
  func write(
    from queue: FrameQueue, of sink: TakeSink, into file: consuming MovieFile, _ files: TakeFiles,
    after earlier: TakeRecorder.Remainder? = nil,
    queueIsFull: (Bool) -> Void = { _ in }, paused: (Bool) -> Void = { _ in },
    _ events: (SegmentEvent) -> Void
  ) throws(MediaError) -> (report: RecordingReport, remainder: TakeRecorder.Remainder) {
    let maximumUnflushedFrames = maximumUnflushedFrames
    var movie = TakeRecorder(
      self, into: file, unflushedFrames: maximumUnflushedFrames, after: earlier)
    var gauge = QueueGauge()
    if settings.isBurst { waitForBurst(in: queue) { events(.progress($0)) } }
    var isPaused = false
    var unflushedCount = 0
    var path = settings.path
    while queue.waitForFrame(at: queue.startNumber), let frame = queue[queue.startNumber] {
      if files.mayDivide, let next = files.next(before: frame, movie, of: self, events) {
        files.close(&movie, before: frame.observation, next.reason)
        let remainder = movie.remainder
        do throws(MediaError) {
          files.finished(try movie.finish(CaptureEnd(), files.verification), events)
        } catch { files.failed(path, error, events) }
        path = next.path
        movie = TakeRecorder(
          next.take, into: next.file, unflushedFrames: maximumUnflushedFrames, after: remainder)
      }
      let outcome = movie.store(frame)
      files.note(frame.observation, outcome)
      queue.release(before: queue.startNumber + 1)
      if let outcome, (outcome == .paused) != isPaused {
        isPaused.toggle()
        paused(isPaused)
      }
      if let reason = movie.limit?.reason { control.stop(reason) }
      if queue.isClosed, !files.mayContinue { audio?.end(behind: queue) }
      unflushedCount += 1
      // Each update of the progress, and each write of journal records, has a fixed cost. Frames
      // that are queued together therefore share one update.
      guard queue.isEmpty || unflushedCount >= maximumUnflushedFrames else { continue }
      unflushedCount = 0
      if files.inbox.hasValues { movie.add(files.inbox.takeValues()) }
      movie.flush()
      if let change = gauge.change(refused: movie.account.ledger.lostQueue, queue) {
        queueIsFull(change)
      }
      events(.progress(files.progress(movie.progress(queueFill: queue.fillLevel))))
    }
    if gauge.isFull { queueIsFull(false) }
    if files.inbox.hasValues { movie.add(files.inbox.takeValues()) }
    movie.close(files.end(of: sink))
    let remainder = movie.remainder
    return (try movie.finish(CaptureEnd(), files.verification), remainder)
  }

  /// The number of frames after which their journal records are written: the frames of 20 ms, but
  /// at most 8.
  ///
  /// The number is rounded up, so that records are written only once each time the queue wakes the
  /// writer. If the process is killed, at most this many stored frames are lost.
  private var maximumUnflushedFrames: Int {
    max(1, min(8, Int((input.negotiatedFrameRate.doubleValue / 50).rounded(.up))))
  }

  /// Waits until all frames of a burst are in the queue, because they are written only after the
  /// end of the burst.
  private func waitForBurst(in queue: FrameQueue, _ progress: (MovieFileOutput.Progress) -> Void) {
    while !queue.isClosed {
      queue.pause(at: queue.endNumber)
      let count = Int64(queue.endNumber)
      progress(
        MovieFileOutput.Progress(
          stored: count, missing: 0,
          duration: MediaTime(exactly: input.negotiatedFrameRate.frameDuration * Rational(count))
            ?? .zero,
          queueFill: queue.fillLevel, bytes: 0, levels: audio?.feed.levels ?? []))
    }
  }

  /// Creates the queue from the sink to the writer.
  ///
  /// The queue of a burst holds the whole take.
  func makeQueue() throws(MediaError) -> FrameQueue {
    if settings.isBurst {
      let memory = BurstMemory(input)
      let capacity = memory.capacity(for: settings.limit)
      // Compressed frames may be much smaller than the driver's maximum size, so more of them fit
      // in the queue. The queue therefore has one frame record for every 4 KiB of its memory, up to
      // 2^22 records.
      return try FrameQueue(
        capacity: capacity, largestFrame: input.maximumByteCount,
        recordCount: max(memory.frameCount, min(capacity / 4_096, 1 << 22)))
    }
    return try FrameQueue(
      capacity: FrameQueue.byteCount(
        largestFrame: input.maximumByteCount, frameRate: input.negotiatedFrameRate),
      largestFrame: input.maximumByteCount, pool: input.pool)
  }

  /// The codec of the audio, if the take has audio.
  var audioCodec: AudioCodec {
    audio?.codec(wanted: settings.audioCodec, besideLossless: plan.isLossless) ?? .aac
  }

  func makeWriter(
    into file: OpenFile, unflushedFrames: Int = 0, after earlier: TakeRecorder.Remainder? = nil
  ) -> TakeWriter {
    let (input, control, tags) = (input, control, tags(_:leadIn:frameRate:gaps:))
    return TakeWriter(
      into: file, plan: plan, delivery: input.delivery,
      frameRate: input.negotiatedFrameRate,
      audio: audio, audioCodec: audioCodec,
      // Reserved disk space would count as used, so the free space limit would be reached too
      // early.
      reservesSpace: settings.minFreeDiskSpaceLimit == nil,
      unflushedFrames: unflushedFrames,
      geometry: geometry,
      account: FrameAccount(
        frameRate: input.negotiatedFrameRate, trustsCounter: input.driver.countsExactly,
        beginsWithStream: beginsWithStream
      ) { control.switchedOn.load(ordering: .relaxed) },
      values: earlier?.values ?? PendingValues(), after: earlier?.audio
    ) { first, leadIn in
      tags(first, leadIn, input.negotiatedFrameRate, nil)
    }
  }
}
