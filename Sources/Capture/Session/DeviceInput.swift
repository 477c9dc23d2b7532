// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
public import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
package import OvercrankSimulatedCameras
import OvercrankV4L2
import Synchronization

/// A capture device opened in one mode with a locked frame duration.
///
/// When a lost device returns, the session reopens it in the same mode. A session preset reopens
/// the device in another mode.
///
/// All calls may come from any thread. Opening blocks until the driver answers. Measuring blocks
/// until frames arrive and needs the device exclusively: no session may use the input meanwhile.
public final class DeviceInput: Sendable {
  /// The audio of a simulated camera and its timing.
  package typealias Audio = SimulatedAudio

  /// The device as it was last opened.
  private let opened: Mutex<OpenedDevice>
  package let reach: DeviceEnvironment
  /// Whether other programs may change the device's settings while this input exists.
  ///
  /// The same choice applies when the input reopens the device. Nil if the device cannot be
  /// reopened.
  private let sharesSettings: Bool?
  private var current: OpenedDevice { opened.withLock { $0 } }
  /// The input of decoded frames, and the buffer pool of the camera that it belongs to.
  private let images = Mutex<(pool: BufferPool, input: DeviceInput)?>(nil)
  /// Observes the brightness of frames, for the torch and for subject area changes.
  let scene = SceneMonitor()
  /// The camera's zoom, and the flips that its driver applies.
  let geometry = CameraGeometry()
  /// The mode that was set explicitly, as opposed to by a preset.
  private let chosen: Mutex<CameraMode>
  private struct Membership {
    weak var core: SessionCore?
  }
  /// The sessions that the input has joined, the last one at the end.
  private let memberships = Mutex<[Membership]>([])
  package var canReopen: Bool { sharesSettings != nil }

  /// The open device.
  public var device: CaptureDevice { current.device }
  /// The mode that was requested.
  public var format: CaptureFormat { current.format }
  /// The frame rate that was requested.
  public var requestedFrameRate: FrameRate { current.requestedFrameRate }
  /// The frame rate that the driver reports after the request.
  public var negotiatedFrameRate: FrameRate { current.negotiatedFrameRate }
  package var delivery: FrameDelivery { current.delivery }
  /// The driver and its buffer pool.
  package var pool: BufferPool { current.pool }
  /// The maximum size of a frame, in bytes.
  package var maximumByteCount: Int { current.maximumByteCount }
  package var audio: Audio? { current.audio }

  package var driver: any FrameDriver { pool.driver }
  /// The name of the mode, as in ``CaptureFormat/id``.
  package var modeName: String { format.id }

  /// Opens a device in a mode and locks the mode's shortest frame duration.
  ///
  /// Blocks.
  ///
  /// - Throws: `MediaError` if the device is busy, lost or not permitted, or if its driver selects
  ///   another mode than requested.
  public convenience init(device: CaptureDevice, format: CaptureFormat) throws(MediaError) {
    let mode = CameraMode(format, format.maxFrameRate)
    self.init(
      try OpenedDevice(device, in: mode, sharesSettings: true), DeviceEnvironment(),
      sharesSettings: true)
  }

  /// Opens a device as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public convenience init(device: CaptureDevice, format: CaptureFormat) async throws(MediaError) {
    let (reach, mode) = (DeviceEnvironment(), CameraMode(format, format.maxFrameRate))
    let first = try await BlockingThread.run { _ throws(MediaError) in
      try reach.perform { () throws(MediaError) in
        try OpenedDevice(device, in: mode, sharesSettings: true)
      }
    }
    self.init(first, reach, sharesSettings: true)
  }

  /// Takes ownership of a configured device.
  convenience init(
    _ locked: consuming DeviceConfiguration, sharesSettings: Bool
  ) throws(MediaError) {
    self.init(try OpenedDevice(locked), DeviceEnvironment(), sharesSettings: sharesSettings)
  }

  private init(_ first: OpenedDevice, _ reach: DeviceEnvironment, sharesSettings: Bool) {
    self.reach = reach
    self.sharesSettings = sharesSettings
    chosen = Mutex(CameraMode(first.format, first.requestedFrameRate))
    opened = Mutex(first)
    showScene(of: first.device)
  }

  /// Creates an input from a custom driver and the mode that it simulates.
  ///
  /// No device is opened.
  package init(
    device: CaptureDevice, format: CaptureFormat, driver: any FrameDriver,
    delivery: FrameDelivery, negotiatedFrameRate: FrameRate, maximumByteCount: Int,
    audio: Audio? = nil
  ) {
    reach = DeviceEnvironment()
    sharesSettings = nil
    chosen = Mutex(CameraMode(format, format.maxFrameRate))
    opened = Mutex(
      OpenedDevice(
        device: device, format: format, driver: driver, delivery: delivery,
        negotiatedFrameRate: negotiatedFrameRate, maximumByteCount: maximumByteCount,
        audio: audio))
  }

  deinit {
    scene.end()
    geometry.end()
  }

  /// Registers the scene monitor with the device, so that ``CameraControls`` of this device can
  /// observe the brightness of frames.
  private func showScene(of device: CaptureDevice) {
    guard case .v4l2(let path) = device.source else { return }
    DeviceSystem.calls.handles.setCompanion(scene, of: path)
  }

  /// The mode in effect.
  var mode: CameraMode { CameraMode(format, requestedFrameRate) }

  /// The mode that was set explicitly, at first or later.
  var chosenMode: CameraMode {
    get { chosen.withLock { $0 } }
    set { chosen.withLock { $0 = newValue } }
  }

  /// The session that has the input, or nil.
  ///
  /// If several sessions have it, the one that it has joined last.
  var session: CaptureSession? {
    memberships.withLock { $0.last { $0.core != nil }?.core }?.session
  }

  /// Called when the input joins a session.
  func didJoin(_ session: CaptureSession) {
    memberships.withLock { $0.append(Membership(core: session.core)) }
  }

  /// Called when the input was removed from a session.
  func didLeave(_ session: CaptureSession) {
    memberships.withLock { $0.removeAll { $0.core == nil || $0.core === session.core } }
  }

  /// Whether each frame can be decoded without other frames.
  private var isDecodedAlone: Bool { delivery.layout != .compressed(.h264) }

  /// The format of the frames of ``imageInput()``.
  package var imageDelivery: FrameDelivery {
    let delivery = delivery
    guard !isDecodedAlone else { return delivery }
    let images = try? FrameDelivery(
      layout: .raw(.yuv420p, bytesPerRow: 0), width: delivery.width, height: delivery.height,
      matrix: delivery.matrix)
    return images ?? delivery
  }

  /// The source of frames that can be decoded one by one.
  ///
  /// This input, or one that decodes the frames of a codec in which they depend on others. The other
  /// input has the same device, and its frames are uncompressed.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if memory for decoded frames is unavailable.
  package func imageInput() throws(MediaError) -> DeviceInput {
    let (current, delivery) = (current, imageDelivery)
    guard case .compressed(let codec) = current.delivery.layout, !delivery.isCompressed else {
      return self
    }
    return try images.withLock { (images) throws(MediaError) -> DeviceInput in
      if let images, images.pool === current.pool { return images.input }
      let driver = try DecodingDriver(
        current.pool.driver, codec: codec, largestPacket: current.maximumByteCount, to: delivery)
      let format = CaptureFormat(
        fourcc: .yu12, width: delivery.width, height: delivery.height, isCompressed: false,
        frameRateRange: current.format.frameRateRange, driverOrder: 0)
      let input = DeviceInput(
        device: current.device, format: format, driver: driver, delivery: delivery,
        negotiatedFrameRate: current.negotiatedFrameRate,
        maximumByteCount: driver.maximumByteCount)
      images = (current.pool, input)
      return input
    }
  }

  /// Makes ``imageInput()`` create another input, because the decoder of this one has failed.
  fileprivate func discardImageInput() { images.withLock { $0 = nil } }

  /// The modes that the device supports.
  func knownFormats() throws(MediaError) -> [CaptureFormat] {
    let device = device
    return try reach.perform { () throws(MediaError) in try device.formats() }
  }

  package func close() { pool.close() }

  package func openIfClosed() throws(MediaError) { if pool.isClosed { try open() } }

  package func reopen(at device: CaptureDevice) throws(MediaError) { try open(at: device) }

  /// Reopens the device, which must not be streaming.
  ///
  /// Buffers that are still held stay readable.
  ///
  /// - Parameters:
  ///   - newDevice: The same device at its current location. Nil keeps the location.
  ///   - format: Another mode. Nil keeps the mode.
  ///   - frameRate: The frame rate. Nil keeps that of the mode, or selects the highest of another
  ///     mode.
  /// - Throws: `MediaError` as `init(device:format:)` does. The input is then closed, and cannot
  ///   start until a call of this method succeeds.
  func open(
    at newDevice: CaptureDevice? = nil, as format: CaptureFormat? = nil,
    frameRate: FrameRate? = nil
  ) throws(MediaError) {
    guard let sharesSettings else {
      throw MediaError(
        .badConfiguration, "\(device.address) cannot be reopened",
        recovery: "create another input")
    }
    let before = current
    // The previous buffers are released first. While they are allocated, the driver rejects a new
    // mode.
    before.pool.close()
    try reach.perform { () throws(MediaError) in
      let rate = frameRate ?? format?.maxFrameRate ?? before.requestedFrameRate
      let new = try OpenedDevice(
        newDevice ?? before.device, in: CameraMode(format ?? before.format, rate),
        sharesSettings: sharesSettings)
      opened.withLock { $0 = new }
      showScene(of: new.device)
    }
  }
}

/// A camera's mode with a frame rate.
struct CameraMode: Equatable {
  let format: CaptureFormat
  let frameRate: FrameRate

  init(_ format: CaptureFormat, _ frameRate: FrameRate) {
    (self.format, self.frameRate) = (format, frameRate)
  }

  static func == (left: Self, right: Self) -> Bool {
    left.format.id == right.format.id && left.frameRate == right.frameRate
  }
}

/// Another mode for an input that exists.
///
/// If a session has the input, its preset becomes ``SessionPreset/inputPriority``, and all its other
/// cameras keep their modes. A running camera stops and starts again; ``CaptureSession/events`` then
/// report `activeFormatDidChange`. A movie that is being recorded continues in the same file if codec and
/// size stay, and the codec is not H.264. Otherwise it ends with the stop reason `reconfigured`. If its
/// segments have a time to reconnect, it waits so long for the camera to return to its mode. Between
/// ``CaptureSession/beginConfiguration()`` and `commitConfiguration()`, the change is deferred, and
/// `commitConfiguration()` throws the errors of the driver.
extension DeviceInput {
  /// Sets the camera to another mode.
  ///
  /// Blocks.
  ///
  /// - Parameters:
  ///   - format: One of `CaptureDevice.formats()`.
  ///   - frameRate: The frame rate to lock. Nil keeps the rate if the mode supports it, and selects
  ///     the highest otherwise.
  /// - Throws: `MediaError` with `.modeRefused` if the camera does not have the mode or the rate; the
  ///   stream is then not interrupted. If the driver refuses later, the camera is back in its
  ///   previous mode.
  public func setActiveFormat(
    _ format: CaptureFormat, frameRate: FrameRate? = nil
  ) throws(MediaError) {
    guard try knownFormats().contains(where: { $0.id == format.id }) else {
      throw refused("does not have the mode \(format.id)")
    }
    let kept = latestMode.frameRate
    let rate = frameRate ?? (format.frameRateRange.contains(kept) ? kept : format.maxFrameRate)
    try set(CameraMode(format, rate))
  }

  /// Sets the minimum and maximum frame duration to one value.
  ///
  /// Blocks.
  ///
  /// - Parameter duration: The duration in seconds, above zero.
  /// - Returns: The duration that the driver then reports, or the requested one if the change is
  ///   deferred. Drivers may round it.
  /// - Throws: `MediaError` as `setActiveFormat(_:frameRate:)` does.
  @discardableResult
  public func setActiveVideoFrameDuration(_ duration: MediaTime) throws(MediaError) -> MediaTime {
    guard let rate = try? FrameRate(frameDuration: duration) else {
      throw refused("does not support frames of \(duration.displayText) s")
    }
    try set(CameraMode(latestMode.format, rate))
    return requestedFrameRate == rate ? negotiatedFrameRate.frameDuration : duration
  }

  /// Sets the camera to another mode as the blocking form does, but suspends the task meanwhile.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func setActiveFormat(
    _ format: CaptureFormat, frameRate: FrameRate? = nil
  ) async throws(MediaError) {
    try await BlockingThread.run { _ throws(MediaError) in
      try self.setActiveFormat(format, frameRate: frameRate)
    }
  }

  /// The mode to which the camera is set in a configuration that is not committed yet or, if there is
  /// none, the mode in effect.
  private var latestMode: CameraMode { session?.latestGraph.explicitMode(of: self) ?? mode }

  private func set(_ mode: CameraMode) throws(MediaError) {
    guard mode.format.frameRateRange.contains(mode.frameRate) else {
      throw refused("does not support \(mode.frameRate) in \(mode.format.id)")
    }
    if let session { return try session.setMode(mode, of: self) }
    let before = self.mode
    do throws(MediaError) { try open(as: mode.format, frameRate: mode.frameRate) } catch {
      // If the previous mode fails too, the input stays closed until the next start.
      try? open(as: before.format, frameRate: before.frameRate)
      throw error
    }
    chosenMode = mode
  }

  private func refused(_ what: String) -> MediaError {
    MediaError(
      .modeRefused, "\(device.address) \(what)",
      recovery: Recovery("choose another format", .listFormats(device: device.address)))
  }
}

extension DeviceInput: CapturingInput {
  /// A video port, and an audio port if the camera has audio.
  public var ports: [InputPort] {
    let images = InputPort(of: self, mediaType: .video)
    guard let driver = audioDriver else { return [images] }
    return [images, InputPort(of: self, mediaType: .audio, audioFormat: driver.format)]
  }

  private var audioDriver: KnownAudioDriver? {
    audio.map {
      KnownAudioDriver(
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

  /// The sinks for the camera's own frames of these connections, and those for decoded frames.
  ///
  /// The drivers' buffers that may be held are divided among the sinks.
  fileprivate func frameSinks(
    for connections: [CaptureConnection]
  ) throws(MediaError) -> (own: [any FrameSink], images: [any FrameSink]) {
    var (own, images): ([any FrameSink], [any FrameSink]) = ([], [])
    for connection in connections where connection.mediaType == .video {
      guard let output = connection.output as? any FrameOutput else { continue }
      // The output may change its mind at any time, so it is asked once.
      let camera = output.decodesFrames ? try imageInput() : self
      guard let sink = try output.sink(for: connection, from: camera) else { continue }
      if camera === self { own.append(sink) } else { images.append(sink) }
    }
    own.share(pool.capacity)
    if !images.isEmpty { images.share(try imageInput().pool.capacity) }
    own.append(
      scene.makeSink(of: FormatDescription(delivery), maximumByteCount: maximumByteCount))
    if let zoom = geometry.zoomSink { own.append(zoom) }
    return (own, images)
  }
}

/// The capture of decoded frames beside the stream of a camera.
private final class DecodingCapture: Sendable {
  /// The sink that receives the camera's packets.
  let feed: DecodingFeed
  private let thread: CaptureThread
  private let sinks: SinkList<any FrameSink>
  private let control = CaptureControl()

  /// Creates a capture that ends with the camera's stream.
  ///
  /// - Parameters:
  ///   - camera: The camera.
  ///   - sinks: The sinks of the decoded frames.
  ///   - camerasControl: The control that stops the camera.
  ///   - whenFailed: Called on the thread of the capture if frames cannot be decoded any more.
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread is unavailable.
  init(
    of camera: DeviceInput, into sinks: [any FrameSink], stoppedBy camerasControl: CaptureControl,
    whenFailed: @escaping @Sendable (MediaError) -> Void
  ) throws(MediaError) {
    let images = try camera.imageInput()
    guard let driver = images.driver as? DecodingDriver else {
      preconditionFailure("The frames of this camera are decoded alone.")
    }
    feed = try driver.makeFeed(camerasControl)
    self.sinks = SinkList(sinks)
    thread = try CaptureThread(of: images, into: self.sinks, control: control) { end in
      if let error = end.error, driver.hasFailed { whenFailed(error) }
    }
  }

  func begin() throws(MediaError) { try thread.begin() }

  func cancel(_ end: CaptureEnd) {
    thread.cancel()
    sinks.end(end)
  }

  func replaceSinks(_ new: [any FrameSink]) { sinks.replace(with: new) }

  func waitUntilEnded() { thread.waitUntilEnded() }

  /// Ends the capture before the camera's stream.
  func stop() {
    control.stop(.reconfigured)
    waitUntilEnded()
  }
}

/// The current capture of decoded frames, which a change of the connections may replace.
private final class DecodingSlot: Sendable {
  private let state = Mutex<DecodingCapture?>(nil)

  /// Creates a capture that leaves the slot if it fails.
  ///
  /// The next change of the connections then starts another one.
  func makeCapture(
    of camera: DeviceInput, into sinks: [any FrameSink], stoppedBy control: CaptureControl
  ) throws(MediaError) -> DecodingCapture {
    // The slot owns the capture, and the thread of the capture this closure.
    try DecodingCapture(of: camera, into: sinks, stoppedBy: control) {
      [weak self, weak camera] error in
      self?.capture = nil
      camera?.discardImageInput()
      camera?.session?.report(.runtimeError(error))
    }
  }

  var capture: DecodingCapture? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

extension SinkList<any FrameSink> {
  /// Closes the list and ends its sinks, because no stream was started that could end them.
  fileprivate func end(_ end: CaptureEnd) {
    var ended: [any FrameSink] = []
    close(&ended)
    for sink in ended { sink.end(end) }
  }

  /// Replaces the sinks, and ends those that are no longer used.
  ///
  /// - Returns: False if the capture has ended.
  @discardableResult
  fileprivate func replace(with new: [any FrameSink]) -> Bool {
    set(new) { before in
      for sink in before where !new.contains(where: { $0 === sink }) {
        sink.end(CaptureEnd(stopReason: .reconfigured))
      }
    }
  }
}

/// A running camera with its audio.
private final class DeviceCapture: InputCapture, GeometryCapture {
  private let input: DeviceInput
  private let thread: CaptureThread
  private let sinks: SinkList<any FrameSink>
  private let audio: CameraAudio?
  /// The running capture of decoded frames, or nil while no output needs them.
  private let decoding: DecodingSlot
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
    (self.control, self.audio) = (control, audio)
    let (own, images) = try input.frameSinks(for: connections)
    let decoding = DecodingSlot()
    self.decoding = decoding
    let capture =
      images.isEmpty ? nil : try decoding.makeCapture(of: input, into: images, stoppedBy: control)
    decoding.capture = capture
    sinks = SinkList(own + (capture.map { [$0.feed] } ?? []))
    thread = try CaptureThread(of: input, into: sinks, control: control) { end in
      // The last packets are decoded before others see the end of the camera.
      decoding.capture?.waitUntilEnded()
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
    do throws(MediaError) {
      try decoding.capture?.begin()
      try audio?.connect(connections)
    } catch {
      decoding.capture?.cancel(CaptureEnd(error: error))
      control.stop(.error)
      thread.waitUntilEnded()
      throw error
    }
  }

  func connect(_ connections: [CaptureConnection]) throws(MediaError) -> Bool {
    let goesOn = try self.connections.withLock { (current) throws(MediaError) in
      current = connections
      return try replaceSinks(for: connections)
    }
    stabilize()
    try audio?.connect(connections)
    return goesOn
  }

  func refresh() throws(MediaError) {
    try connections.withLock { (connections) throws(MediaError) in
      _ = try replaceSinks(for: connections)
    }
  }

  func stabilize() {
    if let isOn = connections.withLock({ $0.wantsStabilization }) { input.driver.stabilize(isOn) }
  }

  private func replaceSinks(for connections: [CaptureConnection]) throws(MediaError) -> Bool {
    let (own, images) = try input.frameSinks(for: connections)
    let running = decoding.capture
    guard !images.isEmpty else {
      decoding.capture = nil
      let goesOn = sinks.replace(with: own)
      running?.stop()
      return goesOn
    }
    if let running {
      running.replaceSinks(images)
      return sinks.replace(with: own + [running.feed])
    }
    let capture = try decoding.makeCapture(of: input, into: images, stoppedBy: control)
    try capture.begin()
    decoding.capture = capture
    let goesOn = sinks.replace(with: own + [capture.feed])
    // The camera's stream has ended, so the end of the packets will not reach the capture.
    if !goesOn { capture.stop() }
    return goesOn
  }

  func cancel(_ error: MediaError?) {
    thread.cancel()
    let end = error.map { CaptureEnd(error: $0) } ?? CaptureEnd(stopReason: .stopped)
    sinks.end(end)
    decoding.capture?.cancel(end)
  }

  func waitUntilEnded() -> CaptureEnd { thread.waitUntilEnded() }
}

/// Zoom by cropping, for every camera.
///
/// The driver crops if it can (`VIDIOC_S_SELECTION`). Otherwise the outputs crop and scale what
/// they deliver, encode or store. Packets that are copied to a movie keep the whole image, and the
/// movie gets a clean aperture (`clap`) instead. The zoom of the camera's lens or firmware is
/// separate, in ``CameraControls``, and multiplies with this zoom.
extension DeviceInput {
  /// The zoom factor of a frame that is captured now.
  public var videoZoomFactor: Double { geometry.zoom.factor(at: driver.microseconds()) }

  /// The greatest zoom factor, as `CaptureFormat.videoMaxZoomFactor` of the mode.
  public var videoMaxZoomFactor: Double { format.videoMaxZoomFactor }

  /// The zoom factor above which a frame has more pixels than the part of the sensor that it shows.
  ///
  /// Above 1 only if the driver can crop, and its sensor has more pixels than a frame of this mode. 1
  /// if the driver does not report the size of the sensor image. The call blocks while the driver
  /// answers.
  public var videoZoomFactorUpscaleThreshold: Double { driver.zoomUpscaleThreshold ?? 1 }

  /// Whether the driver crops, as opposed to the outputs.
  ///
  /// The driver is first asked to crop when a zoom factor is set, so the value is false before
  /// that.
  public var isVideoZoomedByDriver: Bool { geometry.zoom.last?.isByDriver ?? false }

  /// Sets the zoom at once and cancels a running ramp.
  ///
  /// If the outputs crop, the factor applies to every frame that is captured after the call. If the
  /// driver crops, a few frames with a capture time after the call may still show the previous
  /// factor.
  ///
  /// - Parameter factor: From 1 to ``videoMaxZoomFactor``.
  /// - Returns: The factor in effect. It differs from `factor` if the driver crops only in steps.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  @discardableResult
  public func setVideoZoomFactor(_ factor: Double) throws(MediaError) -> Double {
    try check(factor)
    geometry.cancelRamp()
    return set(factor)
  }

  /// Zooms smoothly at a constant rate in powers of two per second.
  ///
  /// At rate 1 the factor doubles, or halves, each second of the capture clock. A ramp that is
  /// already running stops at its current factor. The call returns at once;
  /// ``videoZoomFactors()`` reports each frame of the ramp.
  ///
  /// - Parameters:
  ///   - factor: The target, from 1 to ``videoMaxZoomFactor``.
  ///   - rate: Powers of two per second, above zero.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func ramp(toVideoZoomFactor factor: Double, withRate rate: Double) throws(MediaError) {
    try ramp(toVideoZoomFactor: factor, withRate: rate, clock: ContinuousClock())
  }

  /// Zooms smoothly, and measures the pauses between the driver's crop steps with a given clock.
  package func ramp<RampClock: Clock>(
    toVideoZoomFactor factor: Double, withRate rate: Double, clock: RampClock
  ) throws(MediaError) where RampClock.Duration == Duration {
    try check(factor)
    guard rate > 0, rate.isFinite else {
      throw .zoomOutOfRange("the zoom rate", rate, takes: "numbers above 0")
    }
    geometry.cancelRamp()
    let now = driver.microseconds()
    let start = geometry.zoom.factor(at: now)
    let ramp = VideoZoomTimeline.Piece(from: now, start: start, target: factor, rate: rate)
    guard driver.zoom(to: start) != nil else { return geometry.zoom.append(ramp) }
    let (geometry, driver) = (geometry, driver)
    geometry.beginRamp { number in
      Task {
        while !Task.isCancelled {
          let time = driver.microseconds()
          let next = ramp.factor(at: time)
          guard let granted = driver.zoom(to: next) else { break }
          geometry.zoom.append(
            VideoZoomTimeline.Piece(from: time, start: next, target: granted, isByDriver: true))
          if next == factor { break }
          try? await clock.sleep(
            until: clock.now.advanced(by: .milliseconds(15)), tolerance: .milliseconds(2))
        }
        geometry.endRamp(number)
      }
    }
  }

  /// Stops a running ramp at its current factor.
  ///
  /// Does nothing if no ramp is running.
  public func cancelVideoZoomRamp() {
    guard isRampingVideoZoom else { return }
    geometry.cancelRamp()
    set(videoZoomFactor)
  }

  /// Whether a zoom ramp is running.
  public var isRampingVideoZoom: Bool {
    if geometry.isRampingByDriver { return true }
    guard let last = geometry.zoom.last, last.rate > 0 else { return false }
    return driver.microseconds() < last.end
  }

  /// The zoom factor of each frame that is captured after this call.
  ///
  /// Each iteration of the sequence buffers the factors of the newest 4096 frames. If the driver
  /// crops, the factor of a frame is the one set at its capture time. The image may show that
  /// factor a few frames later.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  public func videoZoomFactors() throws(MediaError)
    -> some AsyncSequence<VideoZoomFrame, Never> & Sendable
  {
    try geometry.observeZoom().hub.events()
  }

  private func check(_ factor: Double) throws(MediaError) {
    guard factor >= 1, factor <= videoMaxZoomFactor else {
      throw .zoomOutOfRange(
        "the zoom factor of \(device.address)", factor, takes: "1 to \(videoMaxZoomFactor)")
    }
  }

  /// If the driver crops, sets the last zoom factor in the driver again, before a new stream.
  func restoreZoom() {
    guard let last = geometry.zoom.last, last.isByDriver else { return }
    set(last.target)
  }

  /// Sets a zoom factor in the driver or, if the driver cannot crop, for the outputs.
  @discardableResult
  private func set(_ factor: Double) -> Double {
    let granted = driver.zoom(to: factor)
    // The time from which the new factor applies is read after the driver's answer, which may take
    // a while.
    let piece = VideoZoomTimeline.Piece(
      from: driver.microseconds(), start: factor, target: granted ?? factor,
      isByDriver: granted != nil)
    geometry.zoom.append(piece)
    return piece.target
  }

  /// Prepares the driver for a stream: flips, stabilization and zoom.
  ///
  /// Call this while the stream is off.
  ///
  /// - Parameter connections: The connections that the stream starts with.
  func prepareGeometry(for connections: [CaptureConnection]) {
    let wanted = connections.filter { $0.mediaType == .video }.map(\.geometry.wanted)
    let flips =
      wanted.first.map { first in
        wanted.allSatisfy { $0 == first } ? first.flips(forDriverOf: delivery) : .none
      } ?? .none
    let isFlipped = flips != .none && driver.flip(flips)
    geometry.driverFlips.store(isFlipped ? flips.bits : 0, ordering: .releasing)
    if let isOn = connections.wantsStabilization { driver.stabilize(isOn) }
    restoreZoom()
  }
}

extension FrameRotation {
  /// The flips to request from the driver.
  ///
  /// None for a rotation by 90 or 270 degrees, because drivers then change the frame size or crop
  /// the image. None for a Bayer mosaic, because a flip would exchange the colors of its pixels.
  fileprivate func flips(forDriverOf delivery: FrameDelivery) -> FrameRotation {
    if case .raw(let format, _) = delivery.layout, format.isBayer { return .none }
    return isTransposed ? .none : self
  }
}
