// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// One take on its way from the queue into its file.
struct MovieTake {
  let input: DeviceInput
  let settings: RecordingSettings
  let plan: VideoPipelinePlan
  let control: CaptureControl
  /// Where its sound comes from; nil for a take without.
  let audio: TakeAudio?
  /// Whether the stream was switched on for this take.
  let beginsWithStream: Bool
  /// What the camera's settings held when the stream was on.
  var controls: [String: String] = [:]
  /// What the take is made for; nil where it was simply begun.
  var trigger: CaptureTrigger?

  /// Writes until the queue is closed and empty.
  ///
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `MediaError` when there was nothing to store; there is no file
  ///   then.
  func write(
    from queue: FrameQueue, of sink: TakeSink, into file: consuming MovieFile,
    proof: FrameRateVerification?, pressure: (Bool) -> Void = { _ in },
    paused: (Bool) -> Void = { _ in },
    progress: (MovieFileOutput.Progress) -> Void
  ) throws(MediaError) -> RecordingReport {
    let mostUnsettled = mostUnsettled
    var movie = TakeRecorder(self, into: file, unsettledFrames: mostUnsettled)
    var gauge = PressureGauge()
    if settings.isBurst { waitForBurst(in: queue, progress) }
    var isPaused = false
    var unsettledCount = 0
    while let outcome = queue.withNextFrame({ movie.enter($0) }) {
      if let outcome, (outcome == .paused) != isPaused {
        isPaused.toggle()
        paused(isPaused)
      }
      if let reason = movie.limit?.reason { control.stop(reason) }
      if queue.isClosed { audio?.end(behind: queue) }
      unsettledCount += 1
      // What waits is stored first: to tell of it costs as much for all of it as for a single frame.
      guard queue.isEmpty || unsettledCount >= mostUnsettled else { continue }
      unsettledCount = 0
      movie.settle()
      if let change = gauge.change(refused: movie.account.ledger.lostQueue, queue) {
        pressure(change)
      }
      progress(movie.progress(queueFill: queue.fillLevel))
    }
    if gauge.isPressed { pressure(false) }
    return try movie.finish(sink.end ?? CaptureEnd(), proof)
  }

  /// Frames of a fiftieth of a second, of which a kill would leave no trace; eight at most.
  private var mostUnsettled: Int {
    max(1, min(8, Int(input.negotiatedFrameRate.doubleValue / 50)))
  }

  /// Waits until all frames of a burst are in memory.
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

  /// The queue to the writer; that of a burst holds all of it.
  func makeQueue() throws(MediaError) -> FrameQueue {
    if settings.isBurst {
      let memory = BurstMemory(input)
      let capacity = memory.capacity(for: settings.limit)
      // Frames may be much smaller than a driver says; a record takes less than a tiny frame.
      return try FrameQueue(
        capacity: capacity, largestFrame: input.maximumByteCount,
        recordCount: max(memory.frameCount, min(capacity / 4_096, 1 << 22)))
    }
    return try FrameQueue(
      capacity: RecordingMemory.queueBytes(
        largestFrame: input.maximumByteCount, frameRate: input.negotiatedFrameRate),
      largestFrame: input.maximumByteCount, pool: input.pool)
  }

  /// How the sound is stored, where there is any.
  var audioCodec: AudioCodec {
    audio?.codec(wanted: settings.audioCodec, besideLossless: plan.isLossless) ?? .aac
  }

  func makeWriter(into file: OpenFile, unsettledFrames: Int = 0) -> TakeWriter {
    let (input, control, tags) = (input, control, tags(_:leadIn:frameRate:gaps:))
    return TakeWriter(
      into: file, plan: plan, delivery: input.delivery,
      frameRate: input.negotiatedFrameRate,
      audio: audio, audioCodec: audioCodec,
      // Room that is reserved is room that is not free.
      reservesSpace: settings.minFreeDiskSpaceLimit == nil,
      unsettledFrames: unsettledFrames,
      account: FrameAccount(
        frameRate: input.negotiatedFrameRate, trustsCounter: input.driver.countsExactly,
        beginsWithStream: beginsWithStream
      ) { control.switchedOn.load(ordering: .relaxed) }
    ) { first, leadIn in
      tags(first, leadIn, input.negotiatedFrameRate, nil)
    }
  }
}
