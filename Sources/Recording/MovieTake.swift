// SPDX-License-Identifier: Apache-2.0
import Capture
import FormatDiscovery
import LibAV
import MediaTiming
import Synchronization

/// One take on its way from the queue into its file.
struct MovieTake {
  let input: DeviceInput
  let settings: RecordingSettings
  let plan: PicturePlan
  let control: CaptureControl
  /// Whether the stream was switched on for this take.
  let beginsWithStream: Bool

  /// Writes until the queue is closed and empty.
  ///
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `CaptureError` or `RecordingError` when there was nothing to store; there is no file
  ///   then.
  func write(
    from queue: FrameQueue, of sink: TakeSink, into file: consuming MovieFile,
    proof: FrameRateProof?, pressure: (Bool) -> Void = { _ in },
    progress: (MovieFileOutput.Progress) -> Void
  ) throws -> RecordingReport {
    let startOfWriting = CaptureCost.threadNanoseconds()
    var writer = makeWriter(path: file.writtenPath)
    var failure: LibAVError?
    // Whether the queue was full, until it is half empty again.
    var (isPressed, refusedCount) = (false, Int64(0))
    while let error = queue.withNextFrame({ frame -> LibAVError? in
      guard failure == nil else {
        writer.refuse(frame)
        return nil
      }
      do throws(LibAVError) {
        try writer.store(frame)
        return nil
      } catch { return error }
    }) {
      if let error, failure == nil {
        failure = error
        control.stop(error.isDiskFull ? .diskFull : .error)
      }
      if writer.storedCount > 0 { file.dropReplaced() }
      let refused = writer.account.ledger.lostQueue
      if !isPressed, refused > refusedCount {
        isPressed = true
        pressure(true)
      } else if isPressed, refused == refusedCount, queue.fillLevel < 0.5 {
        isPressed = false
        pressure(false)
      }
      refusedCount = refused
      progress(
        MovieFileOutput.Progress(
          stored: writer.storedCount, missing: writer.account.ledger.dropped,
          seconds: Double(writer.endMicroseconds) / 1_000_000, queueFill: queue.fillLevel,
          bytes: writer.byteCount))
    }
    if isPressed { pressure(false) }
    var end = sink.end ?? CaptureEnd()
    end.cost.writerThread = CaptureCost.threadNanoseconds() - startOfWriting
    writer.close(end)
    do throws(LibAVError) { try writer.finish() } catch { failure = failure ?? error }
    if writer.storedCount > 0 {
      let report = report(writer, end, failure, proof)
      if report.ledger.stored > 0 { return report }
    }
    file.discard()
    if let error = end.error { throw error }
    throw failure.map(RecordingError.init)
      ?? RecordingError(
        .nothingStored, "\(input.device.address) delivered no frame that could be stored",
        hint: "check the camera, or record for longer")
  }

  /// Two seconds of frames, within reason: a stalled writer loses nothing before that.
  var queueCapacity: Int {
    let frame = Double(input.maximumByteCount)
    let seconds = 2 * frame * input.negotiatedFrameRate.doubleValue
    // A frame of more than half the queue may never fit, so there is room for four.
    return Int(max(min(max(seconds, 32e6), 512e6), 4 * (frame + 4_096)))
  }

  private func makeWriter(path: String) -> TakeWriter {
    let (input, control) = (input, control)
    return TakeWriter(
      path: path, plan: plan, delivery: input.delivery,
      frameRate: input.negotiatedFrameRate,
      sound: settings.recordsSound ? input.sound : nil,
      soundCodec: settings.soundCodec ?? (plan.isLossless ? .pcm : .aac),
      account: FrameAccount(
        frameRate: input.negotiatedFrameRate, trustsCounter: input.driver.countsExactly,
        beginsWithStream: beginsWithStream
      ) { control.switchedOn.load(ordering: .relaxed) }
    ) { first in
      RecordingTags.metadata(
        frameRate: input.negotiatedFrameRate, recording: Self.tag(input, first, gaps: nil))
    }
  }

  static func tag(
    _ input: DeviceInput, _ first: FrameObservation, gaps: [FrameGap]?
  ) -> RecordingTags.Recording {
    RecordingTags.Recording(
      device: input.device.address, mode: input.modeName,
      firstCaptureNs: first.microseconds &* 1_000, firstSequence: Int64(first.stamp.sequence),
      gaps: gaps?.filter { $0.afterIndex >= 0 }.map {
        RecordingTags.Recording.Gap(afterIndex: $0.afterIndex, count: $0.count)
      })
  }
}
