// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// Audio that begins a minute after its stream.
struct LateAudioTests {
  private final class LateDriver: AudioDriver {
    let format = AudioFormat(.float, sampleRate: 1_000, channelCount: 1)
    let reportsSilence: Bool
    private let seconds = Atomic<Int64>(0)

    init(reportsSilence: Bool) { self.reportsSilence = reportsSilence }

    func nanoseconds() -> Int64 { seconds.load(ordering: .relaxed) * 1_000_000_000 }
    func start() {}
    func stop() {}

    func read(
      into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
    ) throws(MediaError) -> AudioReading {
      let now = seconds.wrappingAdd(1, ordering: .relaxed).newValue
      guard now >= 60 else { return .none }
      guard now < 63 else { throw MediaError(.deviceLost, "gone") }
      return .samples(count: 10, SampleStamp(sample: 10, nanoseconds: nanoseconds()))
    }
  }

  private final class Counter: AudioBlockSink {
    let count = Atomic<Int>(0)

    func take(_ block: AudioBlock) { count.wrappingAdd(1, ordering: .relaxed) }
    func end() {}
  }

  @Test(arguments: [(false, MediaError.Code.deviceLost, 3), (true, .noFrames, 0)])
  func `Only a real microphone may not stay silent`(
    reportsSilence: Bool, code: MediaError.Code, blockCount: Int
  ) throws {
    let counter = Counter()
    let audio = try RunningAudio(
      LateDriver(reportsSilence: reportsSilence), AudioCounters(), into: [counter],
      control: CaptureControl())
    try audio.begin()
    #expect(audio.waitUntilEnded().error?.code == code)
    #expect(counter.count.load(ordering: .relaxed) == blockCount)
  }
}
