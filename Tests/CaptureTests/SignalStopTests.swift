// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// Sessions that a signal stops.
@Suite(.serialized) struct SignalStopTests {
  /// The number of signals that the program's own handler has received.
  private static let received = Atomic<Int>(0)

  @Test func `A signal stops sessions and then acts`() async throws {
    // Nothing else in this process uses the signal.
    let number = SIGUSR2
    signal(number) { _ in SignalStopTests.received.wrappingAdd(1, ordering: .relaxed) }
    defer { signal(number, SIG_DFL) }
    var machines: [FakeVideoSystemCalls] = []
    var sessions: [CaptureSession] = []
    for _ in 0..<2 {
      let machine = try FakeVideoSystemCalls("sensor-module")
      machine.pace()
      let session = CaptureSession(try machine.input())
      try await session.addOutput(VideoDataOutput())
      try #require(session.connections.first).preferredVideoStabilizationMode = .standard
      try await session.startRunning()
      try session.stopRunning(onSignals: [number])
      machines.append(machine)
      sessions.append(session)
    }
    func stabilization() -> [Int64] {
      machines.map { $0.controlValue(ControlID.imageStabilization.rawValue) }
    }
    #expect(stabilization() == [1, 1] && sessions.allSatisfy(\.isRunning))
    #expect(Self.received.load(ordering: .relaxed) == 0)
    kill(getpid(), number)
    while Self.received.load(ordering: .relaxed) == 0 { await Task.yield() }
    #expect(stabilization() == [0, 0] && !sessions.contains(where: \.isRunning))
    // The next signal meets the program's own handler alone.
    kill(getpid(), number)
    while Self.received.load(ordering: .relaxed) < 2 { await Task.yield() }
    // A session may ask again.
    try await sessions[0].startRunning()
    try sessions[0].stopRunning(onSignals: [number])
    kill(getpid(), number)
    while Self.received.load(ordering: .relaxed) < 3 { await Task.yield() }
    #expect(!sessions[0].isRunning)
    // An ignored signal stops nothing.
    signal(number, SIG_IGN)
    try await sessions[0].startRunning()
    try sessions[0].stopRunning(onSignals: [number])
    kill(getpid(), number)
    let output = try #require(sessions[0].outputs.first as? VideoDataOutput)
    var frames = output.frames.makeAsyncIterator()
    for _ in 0..<20 { #expect(try await frames.next() != nil) }
    #expect(sessions[0].isRunning && Self.received.load(ordering: .relaxed) == 3)
    await sessions[0].stopRunning()
  }
}
