// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// The frame rate of a camera, the requested rate, and the step between delivered frames.
struct FrameRateRequest: Sendable {
  let camera: Int64
  let requested: Int32
  let step: Int

  init(_ camera: Int64, _ requested: Int32, _ step: Int) {
    (self.camera, self.requested, self.step) = (camera, requested, step)
  }
}

// Serialized, since the threads of many cameras would use all processors.
@Suite(.serialized) struct MinimumFrameDurationTests {
  /// Ratios of the camera's rate to the requested rate: first ratios that are not whole numbers,
  /// then ratios that are.
  private static let requests = [
    FrameRateRequest(24, 15, 2), FrameRateRequest(25, 15, 2), FrameRateRequest(50, 30, 2),
    FrameRateRequest(30, 20, 2), FrameRateRequest(240, 100, 3), FrameRateRequest(120, 50, 3),
    FrameRateRequest(24, 30, 1), FrameRateRequest(240, 60, 4), FrameRateRequest(120, 60, 2),
    FrameRateRequest(30, 30, 1),
  ]

  /// The times of a camera's frames in microseconds.
  ///
  /// Each is early or late by at most `jitter` thousandths of a period.
  private func times(_ count: Int64, at rate: FrameRate, jitter: Int64) throws -> [Int64] {
    var random = SeededGenerator(seed: UInt64(jitter) + 5)
    let period = try SyntheticDriver.microseconds(ofFrame: 1, at: rate)
    return try (0..<count).map { number in
      let spread = Int64.random(in: -jitter...jitter, using: &random)
      return 5_000_000 + (try SyntheticDriver.microseconds(ofFrame: number, at: rate))
        + period * spread / 1_000
    }
  }

  /// The frames that an output delivers from a camera whose frames have these times.
  private func taken(
    of times: [Int64], at rate: Int64, minimum: MediaTime
  ) async throws -> [SampleBuffer.Attachments] {
    let output = VideoDataOutput()
    output.alwaysDiscardsLateVideoFrames = false
    output.minFrameDuration = minimum
    var steps: [ScriptedDriver.Step] = []
    for (number, time) in times.enumerated() {
      let observation = FrameObservation(sequence: UInt32(number), microseconds: time)
      // Waits until the frame is taken, so that no frame is dropped as late.
      steps += [
        .frame(observation, byteCount: 128 * 96),
        .action { while output.keptCount > 0 { usleep(100) } },
      ]
    }
    let scripted = try ScriptedSession(steps, rate: rate)
    try await scripted.session.addOutput(output)
    let taken = Mutex<[SampleBuffer.Attachments]>([])
    output.setSampleBufferHandler { sample in taken.withLock { $0.append(sample.attachments) } }
    try await scripted.playToEnd()
    return taken.withLock { $0 }
  }

  @Test(arguments: Self.requests, [0, 50, 100] as [Int64])
  func `Delivers the highest frame rate that minFrameDuration allows`(
    request: FrameRateRequest, jitter: Int64
  ) async throws {
    let rate = FrameRate(Int(request.camera))
    let times = try times(120, at: rate, jitter: jitter)
    let taken = try await taken(
      of: times, at: request.camera, minimum: MediaTime(1, over: request.requested))
    let numbers = taken.map { Int($0.sequence) }
    #expect(numbers == Array(stride(from: 0, to: 120, by: request.step)))
    let minimum = 1_000_000 / Int64(request.requested)
    // Jitter may make an interval shorter than the minimum, but only if the minimum is a whole
    // number of the camera's frame periods.
    let isWhole = request.camera % Int64(request.requested) == 0
    let allowed = isWhole ? jitter * 2 * 1_000 / request.camera + 2 : 0
    for (earlier, later) in zip(numbers, numbers.dropFirst()) {
      #expect(times[later] - times[earlier] >= minimum - allowed)
    }
  }

  @Test func `A frame rate limit keeps every nth frame across clock resets`() throws {
    func numbers(_ rate: FrameRate, minimum: Int64) throws -> [Int64] {
      var interval = MinimumFrameInterval(frameRate: rate)
      return try (0..<40).filter { number in
        let time = try SyntheticDriver.microseconds(ofFrame: number, at: rate)
        guard !interval.isTooSoon(time, minimum: minimum) else { return false }
        interval.choose(time)
        return true
      }
    }
    // 60 fps is every fourth frame of 239.76 fps. 59.94 fps is every fifth frame of 240 fps, since
    // four frames are 17 microseconds too short.
    #expect(
      try numbers(FrameRate(240_000, over: 1_001), minimum: 16_666)
        == Array(stride(from: 0, to: 40, by: 4)))
    #expect(try numbers(FrameRate(240), minimum: 16_683) == Array(stride(from: 0, to: 40, by: 5)))
    #expect(try numbers(FrameRate(240), minimum: 0) == Array(0..<40))
    var interval = MinimumFrameInterval(frameRate: FrameRate(240))
    interval.choose(9_000_000)
    #expect(!interval.isTooSoon(1_000_000, minimum: 16_666))
    #expect(interval.isTooSoon(9_004_000, minimum: .max))
  }
}
