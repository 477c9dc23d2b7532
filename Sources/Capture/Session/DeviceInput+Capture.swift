// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankMediaCore
import Synchronization

extension DeviceInput: CapturingInput {
  /// A video port, and an audio port if the camera has audio.
  public var ports: [InputPort] {
    let images = InputPort(mediaType: .video)
    guard let driver = audioDriver else { return [images] }
    return [images, InputPort(mediaType: .audio, audioFormat: driver.format)]
  }

  private var audioDriver: SyntheticAudioDriver? {
    audio.map {
      SyntheticAudioDriver(
        $0.source, epoch: $0.runningEpochMicroseconds, frameClock: $0.frameClock)
    }
  }

  package func makeCapture(
    into connections: [CaptureConnection], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) -> any InputCapture {
    try DeviceCapture(
      self, into: connections,
      with: audioDriver.map { CameraAudio($0, frameClock: audio?.frameClock) },
      control: control, whenEnded: whenEnded)
  }

  /// The sinks for the frames of these connections.
  ///
  /// The driver's buffers that may be held are divided among the sinks.
  fileprivate func frameSinks(
    for connections: [CaptureConnection]
  ) throws(MediaError) -> [any FrameSink] {
    var sinks: [any FrameSink] = []
    for connection in connections {
      if let sink = try (connection.output as? any FrameOutput)?.sink(for: connection) {
        sinks.append(sink)
      }
    }
    sinks.share(pool.capacity)
    sinks.append(
      scene.makeSink(of: FormatDescription(delivery), maximumByteCount: maximumByteCount))
    if let zoom = geometry.zoomSink { sinks.append(zoom) }
    return sinks
  }
}

/// A running camera with its audio.
private final class DeviceCapture: InputCapture, GeometryCapture {
  private let input: DeviceInput
  private let thread: CaptureThread
  private let sinks: SinkList<any FrameSink>
  private let audio: CameraAudio?
  /// The connections that the capture currently serves.
  ///
  /// The lock is held while the sinks are replaced.
  private let connections: Mutex<[CaptureConnection]>
  private let control: CaptureControl

  init(
    _ input: DeviceInput, into connections: [CaptureConnection], with audio: CameraAudio?,
    control: CaptureControl, whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) {
    self.input = input
    self.connections = Mutex(connections)
    self.control = control
    self.audio = audio
    sinks = SinkList(try input.frameSinks(for: connections))
    thread = try CaptureThread(of: input, into: sinks, control: control) { end in
      audio?.end()
      whenEnded(end)
    }
  }

  func begin() throws(MediaError) {
    let connections = connections.withLock { $0 }
    try audio?.prepare(connections)
    input.prepareGeometry(for: connections)
    input.geometry.setCapture(self)
    try thread.begin()
    do throws(MediaError) { try audio?.connect(connections) } catch {
      control.stop(.error)
      thread.waitUntilEnded()
      throw error
    }
  }

  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool {
    let result = self.connections.withLock { current in
      Result { () throws(MediaError) in
        current = connections
        return try replaceSinks(for: connections)
      }
    }
    let goesOn = try result.get()
    stabilize()
    try audio?.connect(connections)
    return goesOn
  }

  func refresh() throws(MediaError) {
    let result = connections.withLock { connections in
      Result { () throws(MediaError) in _ = try replaceSinks(for: connections) }
    }
    try result.get()
  }

  func stabilize() {
    if let isOn = connections.withLock({ $0.wantsStabilization }) { input.driver.stabilize(isOn) }
  }

  private func replaceSinks(for connections: [CaptureConnection]) throws(MediaError) -> Bool {
    let new = try input.frameSinks(for: connections)
    return sinks.set(new) { before in
      for sink in before where !new.contains(where: { $0 === sink }) {
        sink.end(CaptureEnd(stopReason: .reconfigured))
      }
    }
  }

  func cancel() {
    thread.cancel()
    // The sinks are ended here, because no stream was started that could end them.
    var ended: [any FrameSink] = []
    sinks.close(&ended)
    for sink in ended { sink.end(CaptureEnd(stopReason: .stopped)) }
  }

  func waitUntilEnded() -> CaptureEnd { thread.waitUntilEnded() }
}
