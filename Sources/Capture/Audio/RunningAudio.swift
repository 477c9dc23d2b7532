// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Synchronization

/// The capture thread of a sound while it runs.
final class RunningAudio: InputCapture {
  private let thread: CaptureThread
  private let sinkList: SinkList<any AudioSink>

  /// Makes the thread, which waits for ``begin()``.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  init(
    _ driver: any AudioDriver, _ counters: AudioCounters, into sinks: [any AudioSink],
    control: CaptureControl, whenEnded: @escaping @Sendable (CaptureEnd) -> Void = { _ in }
  ) throws(MediaError) {
    let sinkList = SinkList(sinks)
    self.sinkList = sinkList
    thread = try CaptureThread(
      waits: driver.waitsForTakers,
      {
        AudioCaptureLoop(
          driver: driver, control: control, counters: counters, sinkList: sinkList)
      }, whenEnded: whenEnded)
  }

  func begin() throws(MediaError) { try thread.begin() }

  func cancel() { thread.cancel() }

  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool {
    sinkList.set(try connections.audioSinks)
  }

  @discardableResult
  func waitUntilEnded() -> CaptureEnd { thread.waitUntilEnded() }
}

/// The sound beside the pictures of a camera that hears; it begins when somebody listens, and
/// ends with the pictures.
final class CameraAudio: Sendable {
  private enum Stage {
    case waiting
    case running(RunningAudio)
    case over
  }

  private let driver: any AudioDriver
  private let frameClock: FrameClock?
  private let control = CaptureControl()
  private let stage = Mutex(Stage.waiting)

  /// - Parameters:
  ///   - driver: What hears.
  ///   - frameClock: The clock of the frames where they do not wait for their time.
  init(_ driver: any AudioDriver, frameClock: FrameClock?) {
    self.driver = driver
    self.frameClock = frameClock
  }

  /// Says that sound is to go to these outputs from the first frame on, before there is one.
  ///
  /// - Throws: `MediaError` as ``connect(_:)``.
  func prepare(_ connections: [CaptureConnection]) throws(MediaError) {
    let isHeard = try !connections.audioSinks.isEmpty
    // Frames that do not wait for their time would be far ahead before anyone listens.
    frameClock?.didHear(untilMicroseconds: isHeard ? 0 : .max)
  }

  /// Sends sound to just these outputs from now on.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  func connect(_ connections: [CaptureConnection]) throws(MediaError) {
    let sinks = try connections.audioSinks
    let result = stage.withLock { stage in
      Result { () throws(MediaError) -> RunningAudio? in
        switch stage {
        case .running(let audio): return audio
        case .over: return nil
        case .waiting:
          guard !sinks.isEmpty else { return nil }
          // With these sinks from its first sample on.
          let audio = try RunningAudio(driver, AudioCounters(), into: sinks, control: control)
          try audio.begin()
          stage = .running(audio)
          return nil
        }
      }
    }
    _ = try result.get()?.connect(connections)
  }

  /// Ends the sound; the pictures have ended.
  func end() {
    control.stop(.signal)
    let before = stage.withLock { stage in
      defer { stage = .over }
      return stage
    }
    if case .running(let audio) = before { audio.waitUntilEnded() }
  }
}

extension [CaptureConnection] {
  /// Where the sound of these connections goes.
  ///
  /// - Throws: `MediaError` as the outputs say.
  var audioSinks: [any AudioSink] {
    get throws(MediaError) {
      var sinks: [any AudioSink] = []
      for connection in self {
        if let sink = try (connection.output as? any FrameOutput)?.audioSink(for: connection) {
          sinks.append(sink)
        }
      }
      return sinks
    }
  }
}
