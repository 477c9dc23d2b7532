// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// Hands captured frames to a program, one after the other, without a copy.
///
/// Frames are taken from ``frames`` by one task, or by a closure set with
/// ``setSampleBufferHandler(on:_:)``. Whoever is slow loses frames of this output alone, and each
/// is counted in ``ledger`` with its reason.
///
/// ```swift
/// let output = VideoDataOutput()
/// try session.addOutput(output)
/// try session.startRunning()
/// for await sample in output.frames { print(sample.presentationTimeStamp) }
/// ```
///
/// All calls may come from any thread, and none of them waits for the camera. The closure is called
/// on the executor it was set with, or on a thread of the output's own, one frame at a time.
public final class VideoDataOutput: FrameOutput {
  private let counters = DataOutputCounters()
  private let options = DataSink.Options()
  let delivery = SampleDeliverer<SampleBuffer>()
  private let dropEvents = EventHub<DroppedFrame>()
  private let sinks = Mutex<[ObjectIdentifier: DataSink]>([:])
  private struct Membership {
    weak var session: CaptureSession?
  }
  private let membership = Mutex(Membership())

  /// Makes an output that is to be added to a session.
  public init() {}

  deinit { delivery.stop() }

  /// Pictures.
  public var mediaTypes: [MediaType] { [.video] }

  /// Whether a frame that comes while another waits is dropped; true unless set otherwise.
  ///
  /// Otherwise frames wait until the buffers that may be held, half of the camera's, are out.
  public var alwaysDiscardsLateVideoFrames: Bool {
    get { options.discardsLate.load(ordering: .relaxed) }
    set { options.discardsLate.store(newValue, ordering: .relaxed) }
  }

  /// The shortest time from frame to frame; zero for every frame.
  ///
  /// In seconds, in whole microseconds rounded down. Frames that come sooner are left out.
  public var minFrameDuration: MediaTime {
    get { MediaTime(microseconds: options.minFrameDuration.load(ordering: .relaxed)) }
    set {
      let microseconds =
        (try? newValue.converted(to: 1_000_000, rounding: .towardNegativeInfinity).value) ?? 0
      options.minFrameDuration.store(max(0, microseconds), ordering: .relaxed)
    }
  }

  /// What the camera gives and samples carry for nothing; nil while there is no camera.
  public var nativeFormat: FormatDescription? {
    let session = membership.withLock { $0.session }
    let connection = session?.connections.first { $0.output === self }
    return connection?.camera.map { FormatDescription($0.delivery) }
  }

  /// The formats that ``SampleBuffer/pixelBuffer(as:)`` gives of what comes in, the one that takes
  /// the least work first; none while there is no camera, or its codec's frames need each other.
  ///
  /// The counterpart of `availableVideoPixelFormatTypes`. Nothing is cheaper than
  /// ``nativeFormat``.
  public var availablePixelFormats: [PixelFormat] {
    nativeFormat.map { PixelFormat.available(from: $0.mediaSubType) } ?? []
  }

  /// What became of the frames so far.
  public var ledger: DataOutputLedger { counters.ledger }

  /// Frames that wait or are kept by the program; each is a buffer that the camera lacks.
  public var keptCount: Int { options.kept.load(ordering: .relaxed) }

  /// The frames in order of capture, for one task at a time; it ends when the output leaves its
  /// session.
  public var frames: some AsyncSequence<SampleBuffer, Never> & Sendable {
    SampleSequence(delivery)
  }

  /// The frames that were dropped, from now on; of those that nobody takes, the newest 256.
  public var drops: some AsyncSequence<DroppedFrame, Never> & Sendable { dropEvents.events() }

  /// Has a closure called with each frame, one at a time and in order.
  ///
  /// - Parameters:
  ///   - executor: Where it is called; nil for a thread of the output's own.
  ///   - handler: The closure; while it works, frames are late.
  public func setSampleBufferHandler(
    on executor: (any SerialExecutor)? = nil, _ handler: @escaping @Sendable (SampleBuffer) -> Void
  ) {
    delivery.setHandler(on: executor, handler)
  }

  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video, let camera = connection.camera else { return nil }
    let result = sinks.withLock { sinks in
      Result { () throws(MediaError) -> DataSink in
        let pool = camera.pool
        // The device may have been opened anew since.
        if let sink = sinks[ObjectIdentifier(connection.gate)], sink.pool === pool { return sink }
        // Everything that can be held, and as many notes.
        let ring = try VideoSampleRing(capacity: max(64, 2 * pool.capacity))
        try delivery.begin(
          VideoSampleQueue(ring, from: camera, options, counters, drops: dropEvents))
        let sink = DataSink(
          connection.gate, pool: pool, ring: ring, counters: counters, options: options,
          wake: delivery.wake)
        sinks = [ObjectIdentifier(connection.gate): sink]
        return sink
      }
    }
    return try result.get()
  }

  package func didJoin(_ session: CaptureSession?) {
    membership.withLock { $0.session = session }
    guard session == nil else { return }
    sinks.withLock { $0 = [:] }
    delivery.finish()
  }
}

/// A frame that an output did not get.
public struct DroppedFrame: Hashable, Sendable {
  /// When it was captured, in the capture clock (CLOCK_MONOTONIC).
  public let presentationTimeStamp: MediaTime
  /// The driver's count of frames.
  public let sequence: UInt32
  /// Why it was not delivered.
  public let reason: FrameDropReason
}
