// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankSimulatedCameras
import Synchronization

/// Decodes the stream of a camera whose frames depend on others, and acts as a driver of the decoded
/// frames.
///
/// ```
///   capture thread ─ DecodingFeed ─▶ packets ─▶ this driver ─▶ capture thread of the images ─▶ outputs
/// ```
///
/// The feed only copies packets and their exposure settings, and the thread of the images decodes them
/// when it dequeues frames. If decoding is too slow, frames are skipped up to the newest key frame, so
/// other outputs of the camera lose nothing. Skipped frames are delivered without bytes, so that
/// outputs can count them.
///
/// After a lost or damaged frame, images may show errors until the next key frame. A packet that gives
/// no image is delivered as a damaged frame. When the camera stops, the packets that wait are decoded
/// first.
final class DecodingDriver: FrameDriver {
  /// A stream from its first packet to its end.
  fileprivate final class Stream: Sendable {
    let packets: FrameQueue
    /// The end of the camera's stream.
    let end = Mutex<CaptureEnd?>(nil)
    /// The control that stops the camera.
    let control: CaptureControl
    /// Whether the decoder has failed, so that nothing takes packets any more.
    let hasFailed = Atomic<Bool>(false)
    /// The exposure settings of the packets that wait, each with the number of the first packet that has
    /// them, oldest first.
    ///
    /// Settings change rarely, so they are not kept for each packet. If even this many changes wait, later
    /// packets show older settings until the decoder has caught up.
    private let exposures: SPSCRing<(number: Int, exposure: ExposureInForce)>
    /// The exposure settings that were recorded last.
    ///
    /// Used only by the camera's thread.
    private nonisolated(unsafe) var noted: ExposureInForce?

    /// Records the exposure settings of the packet that is pushed next.
    ///
    /// Call this on the camera's thread.
    func note(_ exposure: ExposureInForce) {
      guard noted != exposure, exposures.push((packets.endNumber, exposure)) else { return }
      noted = exposure
    }

    /// The exposure settings of a packet.
    ///
    /// Call this on the decoder's thread, with the numbers of packets in order.
    func exposure(of number: Int) -> ExposureInForce {
      // A packet that did not fit has given its number to the next one, so the last entry counts.
      while let next = exposures[exposures.startNumber + 1], next.number <= number {
        exposures.pop()
      }
      return exposures[exposures.startNumber]?.exposure ?? ExposureInForce()
    }

    init(largestFrame: Int, control: CaptureControl) throws(MediaError) {
      self.control = control
      exposures = try CallStage.resources.converting { () throws(CallFailure) in
        try SPSCRing(capacity: 256)
      }
      packets = try FrameQueue(
        capacity: max(16 << 20, 4 * largestFrame), largestFrame: largestFrame)
    }
  }

  /// The number of packets that are decoded after a stop, because the caller waits for the end.
  private static let longestRest = 32
  private static let count = 8
  var bufferCount: Int { Self.count }
  /// The size of a decoded frame in bytes.
  var maximumByteCount: Int { frameByteCount }
  private let frameByteCount: Int
  var countsExactly: Bool { source.countsExactly }
  /// After a stop, the last frames do not wait for consumers, because the caller waits for the end.
  var waitsForTakers: Bool {
    source.waitsForTakers && stream.withLock { $0 }?.control.requestedStop == nil
  }
  var derivesFrames: Bool { true }
  private let source: any FrameDriver
  private let delivery: FrameDelivery
  private let codec: VideoCodec
  private let largestPacket: Int
  private let buffers: SoftwareBufferQueue
  private let stream = Mutex<Stream?>(nil)
  /// The decoder of the running stream.
  ///
  /// Used only by the capture thread.
  private nonisolated(unsafe) var decoding: StreamDecoder?
  private let ended = Atomic<Bool>(false)

  /// Creates a driver for the decoded frames of a camera.
  ///
  /// - Parameters:
  ///   - source: The driver of the camera.
  ///   - codec: The codec of its frames.
  ///   - largestPacket: The greatest size of its frames in bytes.
  ///   - delivery: The format of the decoded frames.
  /// - Throws: `MediaError` with `.outOfMemory` if the buffers cannot be reserved.
  init(
    _ source: any FrameDriver, codec: VideoCodec, largestPacket: Int, to delivery: FrameDelivery
  ) throws(MediaError) {
    (self.source, self.codec, self.delivery) = (source, codec, delivery)
    self.largestPacket = largestPacket
    frameByteCount = try CallStage.capturing.converting { () throws(CallFailure) in
      try MediaFrame.byteCount(
        width: delivery.width, height: delivery.height, pixelFormat: .yuv420p, bytesPerRow: 0)
    }
    buffers = try SoftwareBufferQueue(count: Self.count, bytesPerBuffer: frameByteCount)
  }

  /// Creates the sink of the camera's packets for the next stream.
  ///
  /// Call this before ``start(keeping:)``.
  ///
  /// - Parameter control: The control that stops the camera.
  /// - Returns: The sink.
  /// - Throws: `MediaError` with `.outOfMemory` if the memory for packets cannot be reserved.
  func makeFeed(_ control: CaptureControl) throws(MediaError) -> DecodingFeed {
    let new = try Stream(largestFrame: largestPacket, control: control)
    stream.withLock { $0 = new }
    return DecodingFeed(new)
  }

  func start(keeping held: [Int]) throws(MediaError) {
    buffers.restart(keeping: held)
    ended.store(false, ordering: .releasing)
    decoding = try CallStage.capturing.converting { () throws(CallFailure) in
      try StreamDecoder(codec, width: delivery.width, height: delivery.height)
    }
  }

  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    guard let stream = stream.withLock({ $0 }), let decoding else {
      ended.store(true, ordering: .releasing)
      return nil
    }
    let next = try buffer(from: stream, decoding)
    if next == nil, hasEnded, let error = stream.end.withLock({ $0?.error }) { throw error }
    return next
  }

  var endReason: StopReason { stream.withLock { $0 }?.end.withLock { $0?.stopReason } ?? .stopped }

  /// Whether the stream ended because its frames could not be decoded, and not with the camera's.
  var hasFailed: Bool { stream.withLock { $0?.hasFailed.load(ordering: .acquiring) } ?? false }

  /// Returns the next frame, or nil if none arrived for a while or the stream has ended.
  private func buffer(
    from stream: Stream, _ decoding: StreamDecoder
  ) throws(MediaError) -> DequeuedBuffer? {
    do throws(CallFailure) {
      if let result = try decoding.next() { return try buffer(of: result) }
      let number = stream.packets.startNumber
      guard let packet = stream.packets[number] else { return try waitForPacket(in: stream) }
      defer { stream.packets.release(before: number + 1) }
      let arrival = Arrival(packet.observation, stream.exposure(of: number))
      guard packet.observation.outcome == .taken else {
        let isSkipped = packet.observation.outcome == .refused
        if isSkipped { decoding.waitForKeyFrame() }
        return empty(arrival, isSkipped: isSkipped)
      }
      let catchesUp =
        !waitsForTakers
        && (decoding.isBehindKeyFrame(number, in: stream.packets)
          || stream.packets.endNumber - number > Self.longestRest
            && stream.control.requestedStop != nil)
      guard !catchesUp, try decoding.decode(packet.bytes, number, arrival) else {
        return empty(arrival, isSkipped: true)
      }
      return try decoding.next().map { (result) throws(CallFailure) in try buffer(of: result) }
    } catch {
      stream.hasFailed.store(true, ordering: .releasing)
      throw MediaError(
        error, at: CallStage(other: .init(.invalidData)),
        message: "could not decode the frames of a camera: \(error)")
    }
  }

  /// Waits briefly for a packet, or ends the stream.
  private func waitForPacket(in stream: Stream) throws(CallFailure) -> DequeuedBuffer? {
    let number = stream.packets.startNumber
    guard stream.packets.isClosed, stream.packets[number] == nil else {
      stream.packets.pause(at: number)
      return nil
    }
    if let result = try decoding?.last() { return try buffer(of: result) }
    ended.store(true, ordering: .releasing)
    return nil
  }

  var hasEnded: Bool { ended.load(ordering: .acquiring) }

  func microseconds() -> Int64 { source.microseconds() }

  func requeue(_ index: Int) { if index >= 0 { buffers.giveBack(index) } }

  func stop() { decoding = nil }

  /// Copies a decoded frame to a free buffer, or skips it if there is none.
  private func buffer(of result: StreamDecoder.Result) throws(CallFailure) -> DequeuedBuffer {
    let frame: StreamDecoder.Frame
    switch result {
    case .frame(let decoded): frame = decoded
    case .undecodable(let arrival): return empty(arrival, isSkipped: false)
    }
    guard frame.image.width == delivery.width, frame.image.height == delivery.height else {
      return empty(frame.arrival, isSkipped: false)
    }
    guard let index = buffers.takeFree() else { return empty(frame.arrival, isSkipped: true) }
    let memory = buffers.memory(of: index)
    let count = try frame.image.copyPlanes(into: memory)
    return DequeuedBuffer(
      frame.arrival.observation, exposure: frame.arrival.exposure,
      bytes: UnsafeRawBufferPointer(rebasing: memory[..<count]), index: index, driver: self)
  }

  /// A frame without bytes, which was skipped or is damaged.
  private func empty(_ arrival: Arrival, isSkipped: Bool) -> DequeuedBuffer {
    DequeuedBuffer(
      arrival.observation, exposure: arrival.exposure,
      bytes: UnsafeRawBufferPointer(start: nil, count: 0), index: -1, isSkipped: isSkipped,
      driver: self)
  }
}

/// The values of a packet of the camera, without its bytes.
private struct Arrival {
  let observation: FrameObservation
  let exposure: ExposureInForce

  init(_ observation: FrameObservation, _ exposure: ExposureInForce) {
    (self.observation, self.exposure) = (observation, exposure)
  }
}

/// The decoder of one stream of packets.
///
/// Used by one thread only.
private final class StreamDecoder {
  typealias Frame = (image: MediaFrame, arrival: Arrival)

  enum Result {
    case frame(Frame)
    /// A packet that gives no image.
    case undecodable(Arrival)
  }

  private var decoder: Decoder
  private var converter = FrameConverter(to: .yuv420p, isFullRange: false)
  /// The frames that the decoder has not returned yet, by the numbers of their packets.
  private var waiting: [Int64: Arrival] = [:]
  /// The results to return next.
  private var results: [Result] = []
  private var needsKeyFrame = true
  /// The number of the newest key frame that was found in the queue, and the number up to which the
  /// queue was searched.
  private var (newestKeyFrame, searchedCount) = (0, 0)
  private var isFlushed = false

  init(_ codec: VideoCodec, width: Int, height: Int) throws(CallFailure) {
    // Several threads would delay each frame by as many frames.
    decoder = try Decoder(
      parameters: CodecParameters(videoCodec: codec.rawValue, width: width, height: height),
      subject: "the camera's \(codec)", threadCount: 1)
  }

  /// Skips frames up to the next key frame, because a frame is missing.
  func waitForKeyFrame() { needsKeyFrame = true }

  /// Whether a newer key frame waits in the queue, from which decoding can go on.
  func isBehindKeyFrame(_ number: Int, in packets: FrameQueue) -> Bool {
    let end = packets.endNumber
    for later in max(searchedCount, number)..<max(searchedCount, end) {
      guard let packet = packets[later], packet.observation.outcome == .taken else { continue }
      if AnnexB.holdsKeyFrame(packet.bytes) { newestKeyFrame = later }
    }
    searchedCount = max(searchedCount, end)
    return number < newestKeyFrame
  }

  /// Decodes a packet, whose image ``next()`` returns.
  ///
  /// - Returns: False if the packet was left out, because a key frame must come first.
  func decode(
    _ bytes: UnsafeRawBufferPointer, _ number: Int, _ arrival: Arrival
  ) throws(CallFailure) -> Bool {
    if needsKeyFrame {
      guard AnnexB.holdsKeyFrame(bytes) else { return false }
      decoder.flush()
      giveUp(before: .max)
      needsKeyFrame = false
    }
    waiting[Int64(number)] = arrival
    try tolerating { () throws(CallFailure) in
      try decoder.send(
        Packet(
          copying: bytes, pts: Int64(number), dts: Int64(number), duration: 1,
          isKeyFrame: true))
    }
    return true
  }

  /// The next decoded frame or undecodable packet, or nil if another packet is needed.
  func next() throws(CallFailure) -> Result? {
    if results.isEmpty { try readFrame() }
    return results.isEmpty ? nil : results.removeFirst()
  }

  /// The next frame or undecodable packet after the last packet.
  func last() throws(CallFailure) -> Result? {
    if !isFlushed { try tolerating { () throws(CallFailure) in try decoder.send(nil) } }
    isFlushed = true
    if let result = try next() { return result }
    giveUp(before: .max)
    return results.isEmpty ? nil : results.removeFirst()
  }

  private func readFrame() throws(CallFailure) {
    var found: MediaFrame?
    try tolerating { () throws(CallFailure) in found = try decoder.nextFrame() }
    guard let found, let number = found.pts, let arrival = waiting[number] else { return }
    // The decoder returns frames in order, so an older frame will not come any more.
    giveUp(before: number)
    waiting[number] = nil
    results.append(.frame((try converter.convert(found), arrival)))
  }

  /// Reports the packets before a number whose images are missing.
  private func giveUp(before number: Int64) {
    let missing = waiting.filter { $0.key < number }
    for (number, arrival) in missing.sorted(by: { $0.key < $1.key }) {
      waiting[number] = nil
      results.append(.undecodable(arrival))
    }
  }

  /// Ignores the error of damaged data.
  private func tolerating(_ body: () throws(CallFailure) -> Void) throws(CallFailure) {
    do throws(CallFailure) { try body() } catch { if error.kind != .invalidData { throw error } }
  }
}

/// The sink that copies a camera's packets for a ``DecodingDriver``.
final class DecodingFeed: FrameSink {
  private let stream: DecodingDriver.Stream

  fileprivate init(_ stream: DecodingDriver.Stream) { self.stream = stream }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard !stream.hasFailed.load(ordering: .acquiring) else { return nil }
    stream.note(frame.exposure)
    var observation = frame.observation
    if frame.isWhole {
      let packet = QueuedFrame(observation: observation, bytes: frame.bytes)
      if stream.packets.push(packet) {
        // A view shows each frame as soon as possible.
        stream.packets.wakeTaker()
        return nil
      }
      observation.outcome = .refused
    } else {
      observation.outcome = .corrupt
    }
    // If even the note does not fit, the frame is missing like one that the camera lost.
    _ = stream.packets.push(.note(observation))
    return nil
  }

  /// The number of packets by which a camera that waits for its consumers may be ahead of the decoder.
  ///
  /// Other outputs of the camera, such as a movie with a motion trigger, depend on the images.
  private static let longestQueue = 4

  func hasSpace(for byteCount: Int) -> Bool {
    let packets = stream.packets
    if stream.hasFailed.load(ordering: .acquiring) { return true }
    return packets.endNumber - packets.startNumber < Self.longestQueue
      && packets.hasSpace(for: byteCount)
  }

  func end(_ end: CaptureEnd) {
    stream.end.withLock { $0 = end }
    stream.packets.close()
  }
}
