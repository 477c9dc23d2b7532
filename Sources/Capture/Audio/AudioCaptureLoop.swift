// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// Counts of the samples that an audio input captured and of those it lost.
///
/// Other threads may read the counts during the capture.
final class AudioCounters: Sendable {
  let samples = Atomic<Int64>(0)
  let overruns = Atomic<Int64>(0)
  let suspensions = Atomic<Int64>(0)
  let lostSamples = Atomic<Int64>(0)
}

/// The loop of the audio capture thread: read samples, compute their index and time, pass them to
/// every sink.
///
/// A sound card sets the pace itself, so the loop waits only for the driver. A driver without
/// real-time pacing (`waitsForTakers`) could overrun the sinks, so the loop then also waits until
/// every sink has space.
struct AudioCaptureLoop: CaptureWork {
  /// The time without samples after which the device has failed, in nanoseconds.
  static let timeout: Int64 = 5_000_000_000

  /// The memory that the driver writes each block of samples to.
  private final class Memory: Sendable {
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
    init(byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: 16) }
    deinit { bytes.deallocate() }
  }

  private let driver: any AudioDriver
  private let control: CaptureControl
  private let sinkList: SinkList<any AudioBlockSink>
  private let counters: AudioCounters
  private let memory: Memory
  private let bytesPerSample: Int
  private var sinks: [any AudioBlockSink] = []
  private var end = CaptureEnd()
  private var clock: SampleClock
  /// The index of the next sample to read, counted from the start of the stream and including lost
  /// samples.
  private var position: Int64 = 0
  /// The loss before the next sample, or nil: the reason, and the time that the next sample would
  /// have without the loss.
  private var loss: (cause: AudioGap.Cause, expected: Int64?)?
  private var lastTime = Int64.min
  private var lastArrival: Int64

  init(
    driver: any AudioDriver, control: CaptureControl, counters: AudioCounters,
    sinkList: SinkList<any AudioBlockSink>
  ) {
    (self.driver, self.control, self.sinkList) = (driver, control, sinkList)
    self.counters = counters
    bytesPerSample = driver.format.bytesPerSample
    memory = Memory(byteCount: Self.blockCapacity(driver.format) * bytesPerSample)
    clock = SampleClock(nominalRate: Int64(driver.format.sampleRate))
    lastArrival = driver.nanoseconds()
  }

  /// The greatest number of samples per channel in a block, which is 20 ms of audio.
  static func blockCapacity(_ format: AudioFormat) -> Int { max(1, format.sampleRate / 50) }

  mutating func start() throws(MediaError) {
    control.switchedOn.store(lastArrival / 1_000, ordering: .relaxed)
    try driver.start()
  }

  mutating func run() -> CaptureEnd {
    do throws(MediaError) { end.stopReason = try captureAudio() } catch { fail(error) }
    driver.stop()
    close()
    return end
  }

  private mutating func fail(_ error: MediaError) {
    end.error = error
    end.stopReason = error.code == .deviceLost ? .deviceLost : .error
  }

  private mutating func close() {
    sinkList.close(&sinks)
    for sink in sinks { sink.end() }
  }

  private mutating func captureAudio() throws(MediaError) -> StopReason {
    while true {
      sinkList.update(&sinks)
      if let reason = control.requestedStop { return reason }
      switch try driver.read(into: memory.bytes, timeoutMilliseconds: 100) {
      case .none: try checkSilence()
      case .lost(let cause): note(cause)
      case .samples(let count, let stamp):
        if driver.waitsForTakers, let reason = waitForSpace() { return reason }
        show(count, stamp)
      }
    }
  }

  /// Waits until every sink has space.
  ///
  /// Returns the reason of a stop that was requested meanwhile, or nil.
  private mutating func waitForSpace() -> StopReason? {
    while !sinks.allSatisfy({ $0.hasSpace }) {
      if let reason = control.requestedStop { return reason }
      MonotonicClock.pause()
      sinkList.update(&sinks)
    }
    return nil
  }

  /// Throws if the device has delivered no samples for longer than ``timeout``.
  private func checkSilence() throws(MediaError) {
    guard driver.reportsSilence, driver.nanoseconds() &- lastArrival >= Self.timeout else {
      return
    }
    throw MediaError(
      .noFrames, "the microphone delivered no audio for \(Self.timeout / 1_000_000_000) s",
      recovery: "unplug it and plug it in again, or choose another format")
  }

  private mutating func note(_ cause: AudioGap.Cause) {
    switch cause {
    case .overrun: counters.overruns.wrappingAdd(1, ordering: .relaxed)
    case .suspended: counters.suspensions.wrappingAdd(1, ordering: .relaxed)
    case .outOfBuffers: break
    }
    // Several losses without samples between them form one gap, so only the first one is stored. It
    // defines the reason and the start of the gap.
    if loss == nil {
      loss = (cause, clock.nanoseconds(ofSample: position, rounding: .halfAwayFromZero))
    }
    clock.restart()
  }

  private mutating func show(_ count: Int, _ stamp: SampleStamp) {
    lastArrival = driver.nanoseconds()
    var gap: AudioGap?
    if let loss { gap = skip(loss, stamp) }
    loss = nil
    clock.observe(sample: position + Int64(stamp.sample), nanoseconds: stamp.nanoseconds)
    let fitted = clock.nanoseconds(ofSample: position, rounding: .halfAwayFromZero)
    // While a new fit of the sample clock converges, the fitted line may give a block an earlier
    // time than the block before it. Block times must increase, so each is at least 1 ns after the
    // previous one.
    let time = max(fitted ?? stamp.nanoseconds, lastTime &+ 1)
    lastTime = time
    let block = AudioBlock(
      position: position, sampleCount: count, nanoseconds: time, gap: gap,
      bytes: UnsafeRawBufferPointer(
        start: memory.bytes.baseAddress, count: count * bytesPerSample))
    for sink in sinks { sink.take(block) }
    position += Int64(count)
    counters.samples.wrappingAdd(Int64(count), ordering: .relaxed)
  }

  /// Computes the number of lost samples.
  ///
  /// The number follows from the time between the sample that was expected next and the sample that
  /// arrived.
  private mutating func skip(
    _ loss: (cause: AudioGap.Cause, expected: Int64?), _ stamp: SampleStamp
  ) -> AudioGap {
    // The elapsed time also covers the samples of this block up to the timestamp. They are not
    // lost, so they are subtracted.
    let passed = loss.expected.map {
      clock.samples(inNanoseconds: stamp.nanoseconds &- $0) - Int64(stamp.sample)
    }
    let missing = max(0, passed ?? 0)
    let gap = AudioGap(cause: loss.cause, position: position, sampleCount: missing)
    position += missing
    counters.lostSamples.wrappingAdd(missing, ordering: .relaxed)
    return gap
  }
}
