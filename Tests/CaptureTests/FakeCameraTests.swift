// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture

/// Opens the only camera of a fake machine, in a given mode.
private func input(_ machine: FakeVideoSystemCalls, _ mode: String) throws -> DeviceInput {
  try DeviceSystem.$calls.withValue(machine) {
    let camera = try CaptureDevice.named("/dev/fakevideo0")
    let format = try camera.format(matching: ModeRequest(parsing: mode))
    return try DeviceInput(device: camera, format: format)
  }
}

/// Captures without storing frames, and counts the frames and losses.
///
/// With `stopCount`, requests a stop after that many frames.
private func take(
  _ input: DeviceInput, on machine: FakeVideoSystemCalls, _ limit: CaptureLimit,
  stoppingAfter stopCount: Int? = nil
) throws -> (end: CaptureEnd, account: FrameAccount, times: [Int64]) {
  // A reader that stops the camera must not lag behind it, so the queue of that reader is small.
  let queue = try FrameQueue(capacity: stopCount == nil ? 64 << 20 : 1 << 20)
  machine.pace { queue.fillLevel < 0.5 }
  let control = CaptureControl()
  let capture = try CaptureThread.take(
    from: input, limit: limit, queue: queue, control: control)
  var account = FrameAccount(
    frameRate: input.negotiatedFrameRate, trustsCounter: input.driver.countsExactly
  ) { 0 }
  var times: [Int64] = []
  while queue.withNextFrame({ (frame: QueuedFrame) -> Void in
    let isWhole = frame.observation.outcome == .taken
    account.record(frame.observation)
    if isWhole { times.append(frame.observation.microseconds) }
    if times.count == stopCount { control.stop(.signal) }
  }) != nil {}
  let end = try #require(capture.end)
  account.close(end.frames)
  return (end, account, times)
}

struct FakeCameraTests {
  /// The controls that a rate lock may change.
  private static let controls: [ControlID] = [
    .automaticExposure, .exposureTime, .exposureMayLowerRate, .wideDynamicRange,
  ]

  /// The control values of the fake camera, read without a system call.
  private func values(_ machine: FakeVideoSystemCalls) -> [Int64] {
    Self.controls.map { machine.controlValue($0.rawValue) }
  }

  @Test func `A DMA-BUF export fails if the driver does not support it`() throws {
    let input = try input(FakeVideoSystemCalls("hfr-usb"), "640x360@240/mjpg")
    let error = #expect(throws: MediaError.self) { _ = try input.driver.export(0) != nil }
    #expect(error?.code == .deviceFailed && error?.recovery == nil)
    #expect(error?.message.contains("could not export a buffer of /dev/fakevideo0") == true)
  }

  @Test(arguments: [1, 2])
  func `A locked frame rate stays constant in low light`(
    darkness: Int
  ) throws {
    let machine = try FakeVideoSystemCalls("hfr-usb dark=\(darkness)")
    let before = values(machine)
    let input = try input(machine, "640x360@240/mjpg")
    let verification = try input.verifyFrameRate()
    #expect(verification.isLocked, "\(verification)")
    let (_, account, times) = try take(input, on: machine, CaptureLimit(frameCount: 10_000))
    let rate = try #require(account.measuredFrameRate).doubleValue
    #expect(abs(rate / 240 - 1) <= 0.001)
    let stretched = zip(times.dropFirst(), times).filter { $0 - $1 > 4_167 * 3 / 2 }
    #expect(stretched.isEmpty)
    #expect(account.ledger.isBalanced && account.ledger.dropped == 0)
    #expect(values(machine) == before)
  }

  @Test func `A frame rate that is not locked halves in low light`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb dark=2")
    let input = try input(machine, "640x360@240/mjpg")
    let measured = try input.measure(for: DeviceInput.verificationDuration)
    #expect(measured.frameRate.map { abs($0.doubleValue - 120) < 0.1 } == true)
    // The camera delivers half as many frames, but none of them is lost.
    #expect(measured.dropped == 0)
  }

  @Test(arguments: [5.0, 50, 120, 239, 1_000])
  func `Detects a falsely reported frame rate within a time limit`(
    rate: Double
  ) throws {
    let machine = try FakeVideoSystemCalls("hfr-usb lie=\(rate)")
    let input = try input(machine, "640x360@240/mjpg")
    let start = machine.nanoseconds()
    let verification = try input.verifyFrameRate()
    // A measurement lasts at most `frames` seconds. The limit is twice that, since a second attempt
    // uses manual exposure.
    let frames = max(0.5, 2 / rate) + 2 / rate
    #expect(Double(machine.nanoseconds() - start) / 1e9 <= 2 * (frames + 0.1))
    #expect(verification.negotiated.doubleValue == 240)
    let measured = try #require(verification.measurement.frameRate).doubleValue
    if rate == 239 {
      #expect(verification.isLocked)  // This difference is within the tolerance of camera clocks.
    } else {
      #expect(!verification.isLocked && verification.cause == .falseReport)
    }
    #expect(abs(measured / rate - 1) < 0.001)
  }

  @Test func `A failed or stopped take restores every camera control`()
    throws
  {
    var (failed, stopped) = (0, 0)
    for seed in 0..<1_000 {
      var random = SeededGenerator(seed: UInt64(seed))
      let call = Int.random(in: 1...900, using: &random)
      // Some takes are stopped early, as by Ctrl-C.
      let stopCount = seed % 4 == 0 ? Int.random(in: 1...90, using: &random) : nil
      let machine = try FakeVideoSystemCalls(
        "hfr-usb dark=\(seed % 3) mjpegbytes=4000"
          + (stopCount == nil ? " abortcall=\(call)" : ""))
      let before = values(machine)
      do {
        let input = try input(machine, "640x360@240/mjpg")
        _ = try input.verifyFrameRate()
        let limit = CaptureLimit(frameCount: stopCount == nil ? 100 : nil)
        let (end, _, _) = try take(input, on: machine, limit, stoppingAfter: stopCount)
        if end.error != nil { failed += 1 }
        if end.stopReason == .signal { stopped += 1 }
      } catch { failed += 1 }
      #expect(values(machine) == before, "seed \(seed), call \(call)")
    }
    #expect(failed > 100 && stopped > 100)
  }

  @Test(arguments: [
    ("hfr-usb busy=1", MediaError.Code.deviceBusy),
    ("hfr-usb nobandwidth=1", .modeRefused), ("hfr-usb streamon-fails=1", .deviceFailed),
    ("hfr-usb reqbufs-fails=1", .outOfMemory),
  ])
  func `A failed stream start reports its error code`(
    configuration: String, code: MediaError.Code
  ) throws {
    let machine = try FakeVideoSystemCalls(configuration)
    let error = #expect(throws: MediaError.self) {
      let (end, _, _) = try take(
        input(machine, "640x360@240/mjpg"), on: machine, CaptureLimit(frameCount: 10))
      if let error = end.error { throw error }
    }
    #expect(error?.code == code, "\(error?.description ?? "")")
    #expect(error?.recoverySuggestion.isEmpty == false)
  }

  @Test func `An unplugged camera ends the take and keeps its frames`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=300")
    let (end, account, _) = try take(
      input(machine, "640x360@240/mjpg"), on: machine, CaptureLimit())
    #expect(end.stopReason == .deviceLost)
    #expect(account.ledger.stored == 300)
    #expect(account.ledger.isBalanced && account.ledger.dropped == 0)
  }

  @Test func `A frame rate change by another program counts no lost frame`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb rateswap=500")
    let (_, account, _) = try take(
      input(machine, "640x360@240/mjpg"), on: machine, CaptureLimit(frameCount: 1_500))
    #expect(account.ledger.stored == 1_500)
    #expect(account.ledger.dropped == 0)
    let rate = try #require(account.measuredFrameRate).doubleValue
    #expect(rate > 130 && rate < 160)
  }

  @Test(arguments: ["tiny", "mono-hfr", "mplane-sensor", "fixed-rate", "odd-rates", "uvc-webcam"])
  func `Counts lost frames by their cause for every kind of camera`(
    description: String
  ) throws {
    let log = TruthLog()
    let machine = try FakeVideoSystemCalls("\(description) faults=0.01 jitter=0.2 start=3 seed=9")
    machine.onTruth(log)
    let input = try machine.input()
    let (_, account, _) = try take(input, on: machine, CaptureLimit(frameCount: 900))
    #expect(account.ledger.isBalanced)
    let expected = log.causes.prefix(Int(account.ledger.expected))
    #expect(account.ledger.expected <= log.causes.count)
    for cause in FrameGap.Cause.allCases {
      let found = account.gaps.filter { $0.cause == cause }.reduce(0) { $0 + $1.count }
      #expect(found == expected.count { $0 == cause }, "\(cause)")
    }
  }
}
