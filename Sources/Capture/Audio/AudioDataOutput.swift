// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// Hands captured sound to a program, block by block, and tells how loud it is.
///
/// Blocks of some 10 ms are taken from ``blocks`` by one task, or by a closure set with
/// ``setSampleBufferHandler(on:_:)``. Two seconds may wait; what comes while that is full is lost
/// to this output alone, counted in ``ledger``, and named by the next block's
/// ``AudioSampleBuffer/gapBefore``.
///
/// ```swift
/// let output = AudioDataOutput()
/// try session.addOutput(output)
/// try session.startRunning()
/// for await block in output.blocks { print(block.presentationTimeStamp, output.levels) }
/// ```
///
/// All calls may come from any thread, and none of them waits for the microphone. The closure is
/// called on the executor it was set with, or on a thread of the output's own, one block at a time.
public final class AudioDataOutput: FrameOutput {
  /// The most seconds of sound that wait.
  static let longestWait = 2

  private let counters = DataOutputCounters()
  private let delivery = SampleDeliverer<AudioSampleBuffer>()
  private let current = Mutex<AudioBufferSink?>(nil)

  /// Makes an output that is to be added to a session.
  public init() {}

  deinit { delivery.stop() }

  /// Sound.
  public var mediaTypes: [MediaType] { [.audio] }

  package var takesAudioBlocks: Bool { true }

  /// What became of the blocks so far.
  public var ledger: DataOutputLedger { counters.ledger }

  /// How loud each channel is now, over the last 300 ms; none before sound has come, and silence
  /// once the stream is off.
  ///
  /// Blocks are measured as they arrive, whether somebody takes them or not.
  public var levels: [AudioLevel] { current.withLock { $0?.meter }?.levels ?? [] }

  /// The blocks in order, for one task at a time; they end when the output leaves its session.
  public var blocks: some AsyncSequence<AudioSampleBuffer, Never> & Sendable {
    SampleSequence(delivery)
  }

  /// Has a closure called with each block, one at a time and in order.
  ///
  /// - Parameters:
  ///   - executor: Where it is called; nil for a thread of the output's own.
  ///   - handler: The closure; while it works, blocks wait.
  public func setSampleBufferHandler(
    on executor: (any SerialExecutor)? = nil,
    _ handler: @escaping @Sendable (AudioSampleBuffer) -> Void
  ) {
    delivery.setHandler(on: executor, handler)
  }

  package func audioSink(for connection: CaptureConnection) throws(MediaError)
    -> (any AudioSink)?
  {
    guard connection.mediaType == .audio, let format = connection.audioFormat else { return nil }
    let result = current.withLock { current in
      Result { () throws(MediaError) -> AudioBufferSink in
        if let current, current.gate === connection.gate { return current }
        let ring = try AudioRing(
          capacity: 100 * Self.longestWait,
          blockSize: AudioCaptureLoop.blockCapacity(format) * format.bytesPerSample)
        try delivery.begin(AudioQueue(ring, format, counters))
        let sink = AudioBufferSink(
          connection.gate, ring, counters, LevelMeter(format), delivery)
        current = sink
        return sink
      }
    }
    return try result.get()
  }

  package func didJoin(_ session: CaptureSession?) {
    guard session == nil else { return }
    current.withLock { $0 = nil }
    delivery.finish()
  }
}

/// The blocks of one source that wait for whoever takes them.
private final class AudioQueue: SampleQueue {
  private let ring: AudioRing
  private let format: AudioFormat
  private let counters: DataOutputCounters

  init(_ ring: AudioRing, _ format: AudioFormat, _ counters: DataOutputCounters) {
    self.ring = ring
    self.format = format
    self.counters = counters
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

/// The capture thread's end of an output of sound: measures each block and copies it, or counts
/// why not.
private final class AudioBufferSink: AudioSink {
  let meter: LevelMeter
  let gate: ConnectionGate
  private let ring: AudioRing
  private let counters: DataOutputCounters
  private let delivery: SampleDeliverer<AudioSampleBuffer>
  // The capture thread's own.
  private nonisolated(unsafe) var missing = AudioGapTracker()

  init(
    _ gate: ConnectionGate, _ ring: AudioRing, _ counters: DataOutputCounters,
    _ meter: LevelMeter, _ delivery: SampleDeliverer<AudioSampleBuffer>
  ) {
    self.gate = gate
    self.ring = ring
    self.counters = counters
    self.meter = meter
    self.delivery = delivery
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
    delivery.wake.signal()
  }

  /// Who only looks at the levels is not waited for.
  var hasSpace: Bool { ring.count == 0 || !delivery.hasTaker.load(ordering: .acquiring) }

  func end() {
    missing.reset()
    meter.reset()
  }
}
