// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

extension MovieFileOutput {
  /// The report of a take, and whether the end of the take's last file was already sent as an
  /// event.
  struct Written {
    var report: SegmentedReport
    var isReported = false
  }

  /// Writes the files of a take.
  func write(
    _ settings: RecordingSettings, _ segments: SegmentSettings?,
    _ events: (SegmentEvent) -> Void
  ) throws(MediaError) -> Written {
    let (input, session) = try source()
    let (control, inbox) = state.withLock { ($0.control, $0.inbox) }
    let audio = try listen(to: session)
    defer { state.withLock { $0.audio = nil } }
    let begins = !session.isRunning
    var take = MovieTake(
      input: input, settings: settings, plan: try settings.plan(for: input.delivery),
      control: control, audio: audio, beginsWithStream: begins)
    take.metadata = { [weak self] in self?.metadata ?? settings.metadata }
    take.geometry = geometry(in: session)
    let queue = try take.makeQueue()
    let file: MovieFile
    do throws(MovieFile.CreationError) {
      file = try MovieFile(creating: settings.path, overwrites: settings.overwrites)
    } catch { throw MediaError(error) }
    let timeout = segments?.reconnectTimeout
    let template = take
    let begun: (sink: TakeSink, verification: FrameRateVerification?)
    do throws(MediaError) {
      begun = try begin(
        queue, of: input, in: session, alone: begins, control, reconnects: timeout != nil
      ) { sink in
        let stream = Reconnection.Stream(sink: sink, queue: queue)
        state.withLock { state in
          state.takesPaths = true
          if timeout != nil { state.reconnection = Reconnection(template, stream) }
        }
      }
    } catch {
      file.discard()
      throw error
    }
    defer { detach(of: session, stops: begins) }
    // Reading the controls takes time. The queue keeps the frames that arrive meanwhile.
    take.controls = input.controlValues()
    events(.didStart(path: settings.path))
    session.logger.info(
      "the recording began", metadata: ["path": "\(settings.path)", "mode": "\(input.modeName)"])
    let files = TakeFiles(segments, of: take, inbox: inbox, verification: begun.verification)
    return try write(
      take, from: Reconnection.Stream(sink: begun.sink, queue: queue), into: file, files,
      for: settings.path, timeout, session, events)
  }

  /// Writes the files of the camera's stream, and of the new streams that begin when a lost camera
  /// returns.
  private func write(
    _ first: MovieTake, from firstStream: Reconnection.Stream, into firstFile: consuming MovieFile,
    _ files: TakeFiles, for path: String, _ timeout: MediaTime?, _ session: CaptureSession,
    _ events: (SegmentEvent) -> Void
  ) throws(MediaError) -> Written {
    var (take, stream) = (first, firstStream)
    var file = firstFile
    var remainder: TakeRecorder.Remainder?
    while true {
      let current = take.settings.path
      var report: RecordingReport?
      do throws(MediaError) {
        let written = try take.write(
          from: stream.queue, of: stream.sink, into: file, files, after: remainder,
          queueIsFull: { reportQueue(isFull: $0, path: current, to: session.logger) },
          paused: { hub.send($0 ? .didPause(path: current) : .didResume(path: current)) },
          events)
        written.report.log(to: session.logger)
        (report, remainder) = (written.report, written.remainder)
      } catch {
        guard !files.reports.isEmpty else { throw error }
        files.failed(current, error, events)
      }
      let end = stream.sink.end ?? CaptureEnd()
      guard let timeout, [.deviceLost, .reconfigured].contains(end.stopReason),
        take.control.requestedStop == nil,
        let reconnection = state.withLock({ $0.reconnection })
      else {
        if let report { files.ended(report) }
        return try files.report(end, path: path, remainder?.values)
      }
      if let report { files.finished(report, events) }
      events(.waitingForDevice)
      guard let new = reconnection.next(after: stream, timeout: timeout) else {
        return try files.report(
          end, path: path, remainder?.values, isReported: true,
          stoppedBy: take.control.requestedStop)
      }
      stream = new
      let next: TakeFiles.Next
      do throws(MediaError) { next = try files.next(of: take, events) } catch {
        take.control.stop(.error)
        return try files.report(
          end, path: path, remainder?.values, isReported: true, problem: error)
      }
      take = next.take
      file = next.file
      take.controls = take.input.controlValues()
      // The time without a camera is in no file, so the audio is aligned anew at the start of the
      // next file.
      remainder?.audio = nil
    }
  }
}
