// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// What became of the samples of an input, readable while it runs.
final class AudioCounters: Sendable {
  let samples = Atomic<Int64>(0)
  let overruns = Atomic<Int64>(0)
  let suspensions = Atomic<Int64>(0)
  let lostSamples = Atomic<Int64>(0)
}

/// The work of a sound's capture thread: read, give the samples their number and time, show them
/// to every sink; nothing else, and no waiting for anyone but the driver and, where that waits for its
/// takers, for them.
struct AudioCaptureLoop: CaptureWork {
  /// A device that is silent for so long, in nanoseconds, has failed.
  static let timeout: Int64 = 5_000_000_000

  /// Memory for one block.
  private final class Memory: Sendable {
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
    init(byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: 16) }
    deinit { bytes.deallocate() }
  }

  private let driver: any AudioDriver
  private let control: CaptureControl
  private let sinkList: SinkList<any AudioSink>
  private let counters: AudioCounters
  private let memory: Memory
  private let bytesPerSample: Int
  private var sinks: [any AudioSink] = []
  private var end = CaptureEnd()
  private var clock: SampleClock
  /// The number of the next sample.
  private var position: Int64 = 0
  /// Why samples are missing before the next, and when it would have been heard without.
  private var loss: (cause: AudioGap.Cause, expected: Int64?)?
  private var lastTime = Int64.min
  private var lastArrival: Int64

  init(
    driver: any AudioDriver, control: CaptureControl, counters: AudioCounters,
    sinkList: SinkList<any AudioSink>
  ) {
    self.driver = driver
    self.control = control
    self.sinkList = sinkList
    self.counters = counters
    bytesPerSample = driver.format.bytesPerSample
    memory = Memory(byteCount: Self.blockCapacity(driver.format) * bytesPerSample)
    clock = SampleClock(nominalRate: Int64(driver.format.sampleRate))
    lastArrival = driver.nanoseconds()
  }

  /// The most samples of a block: those of 20 ms.
  static func blockCapacity(_ format: AudioFormat) -> Int { max(1, format.sampleRate / 50) }

  mutating func start() throws(MediaError) {
    control.switchedOn.store(lastArrival / 1_000, ordering: .relaxed)
    do throws(MediaError) { try driver.start() } catch {
      fail(error)
      close()
      throw error
    }
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

  /// Waits until every sink has room; a reason to stop where there is one before that.
  private mutating func waitForSpace() -> StopReason? {
    while !sinks.allSatisfy({ $0.hasSpace }) {
      if let reason = control.requestedStop { return reason }
      MonotonicClock.pause()
      sinkList.update(&sinks)
    }
    return nil
  }

  /// Gives a device up that has been silent for too long.
  private func checkSilence() throws(MediaError) {
    guard driver.nanoseconds() &- lastArrival >= Self.timeout else { return }
    throw MediaError(
      .noFrames, "the microphone delivered no sound for \(Self.timeout / 1_000_000_000) s",
      recovery: "unplug it and plug it in again, or choose another format")
  }

  private mutating func note(_ cause: AudioGap.Cause) {
    switch cause {
    case .overrun: counters.overruns.wrappingAdd(1, ordering: .relaxed)
    case .suspended: counters.suspensions.wrappingAdd(1, ordering: .relaxed)
    case .outOfBuffers: break
    }
    // Of two losses with nothing in between the first tells why and from when on.
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
    // While the line still settles it may turn back; time does not.
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

  /// Counts what is missing by the time from where the samples would have gone on.
  private mutating func skip(
    _ loss: (cause: AudioGap.Cause, expected: Int64?), _ stamp: SampleStamp
  ) -> AudioGap {
    // The time from the sample that was due next to the one that the stamp is about, less those
    // that are here.
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
