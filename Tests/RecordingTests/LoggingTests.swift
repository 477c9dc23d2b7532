// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

/// The log messages of a session and its recordings.
struct LoggingTests {
  /// Keeps each message with its level and its metadata.
  private struct Recorder: LogHandler {
    final class Lines: Sendable {
      let all = Mutex<[String]>([])
    }

    let lines = Lines()
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let values = (event.metadata ?? [:]).sorted { $0.key < $1.key }
        .filter { $0.key != "path" }.map { "\($0.key)=\($0.value)" }
      let line = ["\(event.level):", "\(event.message)"] + values
      lines.all.withLock { $0.append(line.joined(separator: " ")) }
    }
  }

  private func record(_ frames: Int64, logger: Logger?) throws {
    let scratch = try Scratch()
    let session = try CaptureSession(
      CaptureDevice.named("synthetic:128x96@240?pace=max&drop=5%&seed=3"))
    if let logger { session.logger = logger }
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.limit = CaptureLimit(frameCount: frames)
    _ = try MovieFileOutput(session: session, settings: settings).record()
  }

  @Test func `A take logs a start and an end and nothing per frame`() throws {
    for frames in [20, 400] as [Int64] {
      let recorder = Recorder()
      try record(frames, logger: Logger(label: "test") { _ in recorder })
      // The session logs its end on the capture thread, maybe after the recording has returned.
      while !recorder.lines.all.withLock({ $0.contains { $0.contains("the session stopped") } }) {
        usleep(100)
      }
      let lines = recorder.lines.all.withLock { $0 }
      #expect(lines.filter { $0.contains("the session runs") }.count == 1)
      #expect(lines.filter { $0.contains("the session stopped") }.count == 1)
      #expect(
        lines.contains { $0.hasPrefix("info: the recording began mode=128x96@240/") }, "\(lines)")
      #expect(
        lines.contains {
          $0.hasPrefix("info: the recording ended dropped=")
            && $0.hasSuffix("isPlayable=true stoppedBy=frames stored=\(frames)")
        }, "\(lines)")
      // No message is logged per frame or per dropped frame.
      #expect(lines.count == 4, "\(lines)")
    }
  }
}
