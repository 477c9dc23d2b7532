// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankSimulatedCameras
import Synchronization

/// An output that delivers captured frames to a program without a copy.
///
/// One task receives the frames from ``frames``, or a handler set with
/// ``setSampleBufferHandler(on:_:)`` receives them. If the consumer is slow, only this output loses
/// frames. ``ledger`` counts the lost frames by reason.
///
/// ```swift
/// let output = VideoDataOutput()
/// try session.addOutput(output)
/// try session.startRunning()
/// for await sample in output.frames { print(sample.presentationTimeStamp) }
/// ```
///
/// All calls may come from any thread. Only ``withNextFrame(_:)`` blocks. The handler is called on
/// the given executor or, by default, on a thread of the output, one frame at a time.
public final class VideoDataOutput: FrameOutput {
  private let counters = DataOutputCounters()
  private let options = DataSink.Options()
  let delivery = SampleDeliverer<SampleBuffer>()
  private let dropEvents = EventHub<DroppedFrame>()
  private let sinks = Mutex<[ObjectIdentifier: DataSink]>([:])
  private let core = Mutex<SessionCore?>(nil)
  let settings = SettingsBox()

  /// The settings of the output, which its queues read for each frame.
  final class SettingsBox: Sendable {
    private let settings = Mutex<VideoDataSettings?>(nil)
    private let isSet = Atomic<Bool>(false)

    /// The settings, or nil to deliver the camera's own bytes.
    ///
    /// If no settings are set, the access takes no lock.
    var value: VideoDataSettings? {
      get { isSet.load(ordering: .acquiring) ? settings.withLock { $0 } : nil }
      set {
        settings.withLock { $0 = newValue }
        isSet.store(newValue != nil, ordering: .releasing)
      }
    }
  }

  /// Creates an output, to be added to a session.
  public init() {}

  deinit { delivery.stop() }

  /// The session to which the output was added, or nil.
  ///
  /// The output keeps the inputs of its session alive. It keeps the session object alive only while
  /// the session runs. If the program has released a stopped session, this property returns a new
  /// object for the same session.
  public var session: CaptureSession? { core.withLock { $0 }?.session }

  /// Video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// Whether a frame is dropped if a previous one still waits.
  ///
  /// Default: true.
  ///
  /// If false, frames wait in the queue until the output holds its share of the camera's buffers.
  /// All outputs together hold at most half of the camera's buffers.
  public var alwaysDiscardsLateVideoFrames: Bool {
    get { options.discardsLate.load(ordering: .relaxed) }
    set { options.discardsLate.store(newValue, ordering: .relaxed) }
  }

  /// The shortest interval between delivered frames, or zero to deliver every frame.
  ///
  /// The interval is rounded down to whole microseconds. Frames that arrive too early are dropped
  /// with ``FrameDropReason/tooSoon``. For example, an interval of 1/15 s and a camera with 24
  /// frames per second give every second frame, 1/12 s apart.
  ///
  /// If the interval is a whole number of the camera's frame periods, the driver's timestamps may
  /// jitter around it. A frame may then be early, but by no more than a quarter of the interval,
  /// and no more than half a frame period.
  public var minFrameDuration: MediaTime {
    get { MediaTime(microseconds: options.minFrameDuration.load(ordering: .relaxed)) }
    set {
      let microseconds =
        (try? newValue.converted(to: 1_000_000, rounding: .towardNegativeInfinity).value) ?? 0
      options.minFrameDuration.store(max(0, microseconds), ordering: .relaxed)
    }
  }

  /// The camera's own format, in which samples arrive.
  ///
  /// Nil without a camera.
  public var nativeFormat: FormatDescription? {
    camera.map { FormatDescription($0.delivery) }
  }

  /// The connected camera, or nil.
  private var camera: DeviceInput? {
    session?.connections.first { $0.output === self }?.camera
  }

  /// The pixel format and size of the samples, or nil if they are the camera's own bytes.
  public var videoSettings: VideoDataSettings? { settings.value }

  /// Sets the pixel format and size of the samples.
  ///
  /// Samples then arrive converted, in memory that is reused for later samples. The output's own
  /// thread converts them, and drops frames that it cannot decode with ``FrameDropReason/corrupt``.
  /// The camera's buffer is free as soon as the sample is converted. Takes effect with the next
  /// frame.
  ///
  /// The frames of H.264 depend on others. With settings, all of them are decoded, on a thread beside
  /// the camera's stream. In a running session, the first call of this method for such a camera blocks
  /// until the decoder runs, for at most 0.1 s.
  ///
  /// - Parameter settings: The settings. Nil delivers the camera's own bytes.
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale cannot write, a side
  ///   that is not from 1 to 32767 pixels, or a camera whose codec cannot be decoded.
  public func setVideoSettings(_ settings: VideoDataSettings?) throws(MediaError) {
    guard let settings else { return try change(to: nil) }
    try settings.check()
    if let camera { try check(settings, camera) }
    try change(to: settings)
  }

  /// Sets the settings, and connects the output to decoded frames or to the camera's own.
  private func change(to settings: VideoDataSettings?) throws(MediaError) {
    let before = decodesFrames
    self.settings.value = settings
    guard decodesFrames != before, let session, let camera,
      camera.imageDelivery.isCompressed != camera.delivery.isCompressed
    else { return }
    _ = try session.refresh(self)
  }

  private func check(
    _ settings: VideoDataSettings?, _ camera: DeviceInput
  ) throws(MediaError) {
    let format = FormatDescription(camera.imageDelivery)
    guard settings != nil, !format.isConvertible else { return }
    throw MediaError(
      .notConvertible,
      "frames of \(camera.device.address) depend on others and cannot be converted alone",
      recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
  }

  package func canTransform(_ format: FormatDescription) -> Bool { format.isConvertible }

  package var decodesFrames: Bool { settings.value != nil }

  /// The pixel formats that ``SampleBuffer/pixelBuffer(as:)`` can produce, in ascending order of
  /// cost.
  ///
  /// Only ``nativeFormat`` needs no conversion. Empty without a camera, and for the camera's own frames
  /// of a codec with inter-frame prediction. With ``videoSettings``, those of H.264 are decoded.
  /// Corresponds to `availableVideoPixelFormatTypes` in AVFoundation.
  public var availablePixelFormats: [PixelFormat] {
    guard let camera else { return [] }
    let delivery = decodesFrames ? camera.imageDelivery : camera.delivery
    return PixelFormat.available(from: FormatDescription(delivery).mediaSubType)
  }

  /// The counts of frames by outcome so far.
  public var ledger: DataOutputLedger { counters.ledger }

  /// The number of frames that are queued or held by the program.
  ///
  /// Each of them occupies one of the camera's buffers.
  public var keptCount: Int { options.kept.load(ordering: .relaxed) }

  /// The frames in capture order, for one task at a time.
  ///
  /// The sequence ends when the output leaves its session.
  public var frames: some AsyncSequence<SampleBuffer, Never> & Sendable {
    SampleSequence(delivery)
  }

  /// The frames that are dropped after this call.
  ///
  /// The sequence buffers the newest 256 of them.
  public var drops: some AsyncSequence<DroppedFrame, Never> & Sendable { dropEvents.events() }

  /// Sets a handler that is called with each frame, one at a time and in order.
  ///
  /// - Parameters:
  ///   - executor: The executor of the handler. Nil selects a thread of the output.
  ///   - handler: The handler. Frames that arrive during a call may be dropped.
  public func setSampleBufferHandler(
    on executor: (any SerialExecutor)? = nil, _ handler: @escaping @Sendable (SampleBuffer) -> Void
  ) {
    delivery.setHandler(on: executor, handler)
  }

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    if let own = connection.camera { try check(settings.value, own) }
    return try sinks.withLock { (sinks) throws(MediaError) -> DataSink in
      let pool = camera.pool
      // If the device was reopened after the sink was created, the camera has a new buffer pool.
      // The sink belongs to the old pool and is not reused.
      if let sink = sinks[ObjectIdentifier(connection.gate)], sink.pool === pool { return sink }
      // The ring has space for all frames that can be held and for as many notes of dropped
      // frames.
      let ring = try VideoSampleRing(capacity: max(64, 2 * pool.capacity))
      let feed = try delivery.begin(
        VideoSampleQueue(
          ring, from: camera, connection.geometry, settings, options, counters,
          drops: dropEvents))
      let sink = DataSink(
        connection.gate, pool: pool, frameRate: camera.negotiatedFrameRate, ring: ring,
        counters: counters, options: options, feed: feed)
      sinks = [ObjectIdentifier(connection.gate): sink]
      return sink
    }
  }

  package func didJoin(_ session: CaptureSession?) {
    core.withLock { $0 = session?.core }
    guard session == nil else { return }
    sinks.withLock { $0 = [:] }
    delivery.finish()
  }
}

/// A frame that an output dropped.
public struct DroppedFrame: Hashable, Sendable {
  /// The capture time, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The driver's frame counter, which wraps at 2^32.
  public let sequence: UInt32
  /// The reason for the drop.
  public let reason: FrameDropReason
}

/// The time that the conversion of one frame takes.
public struct PixelFormatCost: Hashable, Sendable {
  /// The pixel format of the result.
  public let pixelFormat: PixelFormat
  /// The processor time of one conversion on one thread.
  ///
  /// Several conversions are measured, and this is the shortest.
  public let duration: Duration
}

extension VideoDataOutput {
  /// Measures the conversion of the camera's frames to each available pixel format.
  ///
  /// A test image in the camera's format is converted to the size of ``videoSettings``. Blocks for
  /// six conversions to each format. No frame of the camera is needed.
  ///
  /// - Returns: The formats of ``availablePixelFormats``, the cheapest first.
  /// - Throws: `MediaError` with `.notConvertible` without a camera, or if its frames cannot be
  ///   converted.
  public func measuredPixelFormatCosts() throws(MediaError) -> [PixelFormatCost] {
    try measuredPixelFormatCosts { _ in CaptureStatistics.threadTime() }
  }

  /// Measures the conversions with the clock that a closure reads.
  ///
  /// The closure is called before and after each conversion, and returns the current time of that
  /// clock.
  package func measuredPixelFormatCosts(
    _ time: (PixelFormat) -> Duration
  ) throws(MediaError) -> [PixelFormatCost] {
    guard let format = nativeFormat, format.isConvertible else {
      throw MediaError(
        .notConvertible, "the output has no frames that can be converted",
        recovery: "connect it to a camera with MJPEG or uncompressed images")
    }
    do {
      let frame = try format.testFrame()
      let costs = try availablePixelFormats.map { pixelFormat in
        let converter = SampleConverter()
        var work = SampleConverter.Work()
        work.settings = videoSettings ?? VideoDataSettings()
        work.settings?.pixelFormat = pixelFormat
        let durations = try (0..<6).map { _ in
          let begin = time(pixelFormat)
          let (image, pool) = try frame.withUnsafeBytes {
            try converter.convert($0, format, work)
          }
          pool.recycle(image)
          return time(pixelFormat) - begin
        }
        return PixelFormatCost(pixelFormat: pixelFormat, duration: durations.min() ?? .zero)
      }
      return costs.sorted { $0.duration < $1.duration }
    } catch {
      throw MediaError(
        .notConvertible, "could not convert a test image: \(error)",
        recovery: "choose another format of the camera")
    }
  }
}

extension FormatDescription {
  /// The bytes of a test image in this format.
  fileprivate func testFrame() throws -> [UInt8] {
    switch mediaSubType {
    case .codec:
      var generator = try JPEGTestPatternGenerator(
        pattern: TestPattern(width: width, height: height))
      var bytes = [UInt8](repeating: 0, count: generator.maximumByteCount)
      let count = try bytes.withUnsafeMutableBytes {
        try generator.make(number: 1, isFlash: false, into: $0)
      }
      return Array(bytes.prefix(count))
    case .pixels(let format):
      let count = try MediaFrame.byteCount(
        width: width, height: height, pixelFormat: LibAVPixelFormat(finding: format),
        bytesPerRow: bytesPerRow)
      return (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
    }
  }
}

/// The pixel format and size of the samples of a data output.
public struct VideoDataSettings: Hashable, Sendable {
  /// The pixel format.
  ///
  /// Nil keeps the camera's format. If compressed frames must be decoded, for example to rotate
  /// them, nil selects ``PixelFormat/yuv420p``.
  public var pixelFormat: PixelFormat?
  /// The width in pixels, after the rotation of the connection.
  ///
  /// Nil keeps the camera's width or, if a height is set, the camera's aspect ratio.
  public var width: Int?
  /// The height in pixels, after the rotation of the connection.
  ///
  /// Nil keeps the camera's height or, if a width is set, the camera's aspect ratio.
  public var height: Int?

  /// Creates settings.
  ///
  /// A value that is nil stays as the camera delivers it.
  public init(pixelFormat: PixelFormat? = nil, width: Int? = nil, height: Int? = nil) {
    (self.pixelFormat, self.width, self.height) = (pixelFormat, width, height)
  }

  /// Throws an error unless images can have these settings.
  ///
  /// - Throws: `MediaError` with `.notConvertible`.
  package func check() throws(MediaError) {
    if let pixelFormat, LibAVPixelFormat(pixelFormat)?.isConversionTarget != true {
      throw MediaError(
        .notConvertible, "samples cannot have the pixel format \(pixelFormat.rawValue)",
        recovery: "choose one of the output's available formats, such as nv12")
    }
    for side in [width, height].compactMap(\.self) where !(1...32_767).contains(side) {
      throw MediaError(
        .notConvertible, "samples cannot be \(side) pixels wide or high",
        recovery: "choose a size from 1 to 32767 pixels")
    }
  }

  /// The width and height to which a frame of the given size is converted.
  func size(ofFrame width: Int, _ height: Int) -> (width: Int, height: Int) {
    func part(_ length: Int, _ numerator: Int, _ denominator: Int) -> Int {
      max(1, Int((Double(length) * Double(numerator) / Double(denominator)).rounded()))
    }
    switch (self.width, self.height) {
    case (let wide?, let high?): return (wide, high)
    case (let wide?, nil): return (wide, part(wide, height, width))
    case (nil, let high?): return (part(high, width, height), high)
    case (nil, nil): return (width, height)
    }
  }
}
