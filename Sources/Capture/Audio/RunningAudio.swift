// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankSimulatedCameras
import Synchronization

/// A running audio capture.
final class RunningAudio: InputCapture {
  private let thread: CaptureThread
  private let sinkList: SinkList<any AudioBlockSink>

  /// Creates the capture thread, which waits until ``begin()`` is called.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  init(
    _ driver: any AudioDriver, _ counters: AudioCounters, into sinks: [any AudioBlockSink],
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

  func cancel(_ error: MediaError?) {
    thread.cancel()
    var ended: [any AudioBlockSink] = []
    sinkList.close(&ended)
    for sink in ended { sink.end() }
  }

  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool {
    sinkList.set(try connections.audioSinks)
  }

  @discardableResult
  func waitUntilEnded() -> CaptureEnd { thread.waitUntilEnded() }
}

/// The audio capture of a camera.
///
/// The audio capture starts when a connection first requests audio, and ends when the camera's
/// video ends.
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

  /// Creates the audio of a camera without starting it.
  ///
  /// - Parameters:
  ///   - driver: The audio driver.
  ///   - frameClock: The clock of a camera that delivers frames as fast as they are consumed. Nil
  ///     for frames in real time.
  init(_ driver: any AudioDriver, frameClock: FrameClock?) {
    (self.driver, self.frameClock) = (driver, frameClock)
  }

  /// Decides, before the first frame, whether video frames must wait for the audio.
  ///
  /// Frames must wait if one of the connections requests audio.
  ///
  /// - Throws: `MediaError` as ``connect(_:)`` does.
  func prepare(_ connections: [CaptureConnection]) throws(MediaError) {
    let isHeard = try !connections.audioSinks.isEmpty
    // A camera without real-time pacing would run far ahead of its audio if its frames did not wait
    // for the audio.
    frameClock?.didHear(untilMicroseconds: isHeard ? 0 : .max)
  }

  /// Sends the audio to the outputs of exactly these connections.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  func connect(_ connections: [CaptureConnection]) throws(MediaError) {
    let sinks = try connections.audioSinks
    let running = try stage.withLock { (stage) throws(MediaError) -> RunningAudio? in
      switch stage {
      case .running(let audio): return audio
      case .over: return nil
      case .waiting:
        guard !sinks.isEmpty else { return nil }
        // The sinks are passed to the new capture before it starts, so that they receive the
        // capture's first sample.
        let audio = try RunningAudio(driver, AudioCounters(), into: sinks, control: control)
        try audio.begin()
        stage = .running(audio)
        return nil
      }
    }
    _ = try running?.connect(connections)
  }

  /// Ends the audio capture when the camera's video ends.
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
  /// The sinks for the audio of these connections.
  ///
  /// - Throws: `MediaError` from an output.
  var audioSinks: [any AudioBlockSink] {
    get throws(MediaError) {
      var sinks: [any AudioBlockSink] = []
      for connection in self {
        if let sink = try (connection.output as? any FrameOutput)?.audioSink(for: connection) {
          sinks.append(sink)
        }
      }
      return sinks
    }
  }
}
