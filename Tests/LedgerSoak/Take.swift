// SPDX-License-Identifier: Apache-2.0
import Capture
import FormatDiscovery
import Glibc
import MediaTiming
import Synchronization
import TestSupport
import V4L2

/// A take of the fake camera: the real capture loop on one thread, the books on another.
struct Take {
  /// What a run of this loop must not outrun: the books are kept on another thread.
  private static let fullQueue = 0.5

  let seed: UInt64
  let frames: Int64

  /// Faults of every class, more or less of them by the seed.
  private var configuration: String {
    let share = [0.002, 0.01, 0.03][Int(seed % 3)]
    let jitter = [0, 0.1, 0.3][Int(seed / 3 % 3)]
    let wrap = seed % 4 == 0 ? " sequence0=4294960000" : " start=\(seed % 7)"
    return "tiny seed=\(seed) faults=\(share) apart=14 jitter=\(jitter)\(wrap)"
  }

  /// Records, and compares the books with the generator's log.
  func compare() throws -> Comparison {
    let machine = try FakeDeviceCalls(configuration)
    let log = TruthLog(reserving: Int(frames) * 5 / 4)
    machine.onTruth(log)
    let queue = try FrameQueue(capacity: 8 << 20)
    let patient = PatientCalls(machine, until: { queue.fillLevel < Self.fullQueue })
    let session = try DeviceSystem.$calls.withValue(patient) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try CaptureSession(device: camera, format: try camera.fastestFormat())
    }
    let control = CaptureControl()
    let capture = try RunningCapture(
      session: session, limit: CaptureLimit(frameCount: frames), queue: queue, control: control)
    var account = FrameAccount(frameRate: session.negotiatedFrameRate, trustsCounter: false) {
      control.switchedOn.load(ordering: .relaxed)
    }
    while queue.withNextFrame({ frame in
      switch frame.observation.fate {
      case .queued: account.enter(frame.observation, .taken)
      case .corrupt: account.enter(frame.observation, .corrupt)
      case .refused: account.enter(frame.observation, .refused)
      }
    }) != nil {}
    account.close(capture.end())
    return Comparison(account, log.causes)
  }
}

/// A driver that makes no frames while the books are behind.
private struct PatientCalls: DeviceCalls {
  private let calls: FakeDeviceCalls
  private let isReady: @Sendable () -> Bool

  init(_ calls: FakeDeviceCalls, until isReady: @escaping @Sendable () -> Bool) {
    self.calls = calls
    self.isReady = isReady
  }

  func open(_ path: String) -> CInt { calls.open(path) }
  func close(_ descriptor: CInt) -> CInt { calls.close(descriptor) }
  func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    calls.control(descriptor, request, argument)
  }
  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt {
    while !isReady() { sched_yield() }
    return calls.poll(descriptor, events: events, milliseconds: milliseconds)
  }
  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    calls.map(descriptor, length: length, offset: offset, error: &error)
  }
  func unmap(_ memory: UnsafeMutableRawBufferPointer) { calls.unmap(memory) }
  func nanoseconds() -> Int64 { calls.nanoseconds() }
  func nodes() -> [String] { calls.nodes() }
}
