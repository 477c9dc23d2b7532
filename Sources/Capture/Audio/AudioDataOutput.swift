// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// An output that delivers captured audio to a program in blocks, and measures levels.
///
/// One task receives blocks of about 10 ms from ``blocks``, or a handler set with
/// ``setSampleBufferHandler(on:_:)`` receives them. The queue holds two seconds. While it is full,
/// this output drops blocks. ``ledger`` counts the dropped blocks, and
/// ``AudioSampleBuffer/gapBefore`` of the next delivered block reports the gap.
///
/// ```swift
/// let output = AudioDataOutput()
/// try session.addOutput(output)
/// try session.startRunning()
/// for await block in output.blocks { print(block.presentationTimeStamp, output.levels) }
/// ```
///
/// All calls may come from any thread, and none blocks. The handler is called on the given executor
/// or, by default, on a thread of the output, one block at a time.
public final class AudioDataOutput: FrameOutput {
  /// The capacity of the output's queue, in seconds of audio.
  static let longestWait = 2

  private let counters = DataOutputCounters()
  private let delivery = SampleDeliverer<AudioSampleBuffer>()
  private let current = Mutex<AudioBufferSink?>(nil)
  private let core = Mutex<SessionCore?>(nil)

  /// Creates an output, to be added to a session.
  public init() {}

  deinit { delivery.stop() }

  /// The session to which the output was added, or nil.
  ///
  /// The output keeps the inputs of its session alive. It keeps the session object alive only while
  /// the session runs. If the program has released a stopped session, this property returns a new
  /// object for the same session.
  public var session: CaptureSession? { core.withLock { $0 }?.session }

  /// Audio only.
  public var mediaTypes: [MediaType] { [.audio] }

  package var takesAudioBlocks: Bool { true }

  /// The counts of blocks by outcome so far.
  public var ledger: DataOutputLedger { counters.ledger }

  /// The level of each channel over the last 300 ms.
  ///
  /// Blocks are measured on arrival, even if nothing receives them. The array is empty before the
  /// first block. After the stream has stopped, all levels are silence.
  public var levels: [AudioLevel] { current.withLock { $0?.meter }?.levels ?? [] }

  /// The blocks in order, for one task at a time.
  ///
  /// The sequence ends when the output leaves its session.
  public var blocks: some AsyncSequence<AudioSampleBuffer, Never> & Sendable {
    SampleSequence(delivery)
  }

  /// Sets a handler that is called with each block, one at a time and in order.
  ///
  /// - Parameters:
  ///   - executor: The executor of the handler. Nil selects a thread of the output.
  ///   - handler: The handler. Blocks that arrive during a call of the handler wait in the queue.
  public func setSampleBufferHandler(
    on executor: (any SerialExecutor)? = nil,
    _ handler: @escaping @Sendable (AudioSampleBuffer) -> Void
  ) {
    delivery.setHandler(on: executor, handler)
  }

  package func audioSink(for connection: CaptureConnection) throws(MediaError)
    -> (any AudioBlockSink)?
  {
    guard connection.mediaType == .audio, let format = connection.audioFormat else { return nil }
    return try current.withLock { (current) throws(MediaError) -> AudioBufferSink in
      if let current, current.gate === connection.gate { return current }
      let ring = try AudioRing(
        capacity: 100 * Self.longestWait,
        blockSize: AudioCaptureLoop.blockCapacity(format) * format.bytesPerSample)
      let feed = try delivery.begin(AudioQueue(ring, format, counters))
      let sink = AudioBufferSink(
        connection.gate, ring, counters, LevelMeter(format), delivery, feed)
      current = sink
      return sink
    }
  }

  package func didJoin(_ session: CaptureSession?) {
    core.withLock { $0 = session?.core }
    guard session == nil else { return }
    current.withLock { $0 = nil }
    delivery.finish()
  }
}

/// The blocks of one connection that wait for a consumer.
private final class AudioQueue: DeliveryQueue {
  private let ring: AudioRing
  private let format: AudioFormat
  private let counters: DataOutputCounters

  init(_ ring: AudioRing, _ format: AudioFormat, _ counters: DataOutputCounters) {
    (self.ring, self.format, self.counters) = (ring, format, counters)
  }

  var count: Int { ring.count }
  func passNoteOn() -> Bool { false }
  func drain() { while ring.pop() != nil {} }

  func take() -> AudioSampleBuffer? {
    guard let (entry, bytes) = ring.pop() else { return nil }
    counters.delivered.wrappingAdd(1, ordering: .releasing)
    return AudioSampleBuffer(format: format, entry, bytes: bytes)
  }
}

/// The sink of an audio output.
///
/// On the capture thread it measures each block, then copies or drops it.
private final class AudioBufferSink: AudioBlockSink {
  let meter: LevelMeter
  let gate: ConnectionGate
  private let ring: AudioRing
  private let counters: DataOutputCounters
  private let delivery: SampleDeliverer<AudioSampleBuffer>
  private let feed: SampleDeliverer<AudioSampleBuffer>.Feed
  // Used only by the capture thread.
  private nonisolated(unsafe) var missing = AudioGapTracker()

  init(
    _ gate: ConnectionGate, _ ring: AudioRing, _ counters: DataOutputCounters,
    _ meter: LevelMeter, _ delivery: SampleDeliverer<AudioSampleBuffer>,
    _ feed: SampleDeliverer<AudioSampleBuffer>.Feed
  ) {
    (self.gate, self.ring, self.counters, self.meter) = (gate, ring, counters, meter)
    (self.delivery, self.feed) = (delivery, feed)
  }

  func take(_ block: AudioBlock) {
    guard gate.isOpen.load(ordering: .relaxed) else { return missing.reset() }
    meter.measure(block.bytes, sampleCount: block.sampleCount)
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    guard ring.push(block, gap: missing.gap(before: block)) else {
      counters.note(.outOfBuffers)
      return missing.didRefuse(block)
    }
    missing.didPass(block)
    feed.wake()
  }

  /// Whether another block can be accepted without waiting.
  ///
  /// Always true without a consumer, because a full queue then drops blocks. A program that only
  /// reads levels therefore does not hold up the capture.
  var hasSpace: Bool { ring.count == 0 || !delivery.hasTaker.load(ordering: .acquiring) }

  func end() {
    missing.reset()
    meter.reset()
  }
}
