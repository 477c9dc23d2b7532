// SPDX-License-Identifier: Apache-2.0

package import FakeVideo4Linux
import Glibc
package import OvercrankCapture
import OvercrankDeviceDiscovery
package import OvercrankFrameAccounting
package import OvercrankV4L2
import Synchronization

/// The simulated driver, which replaces the system calls to the kernel.
///
/// The driver has its own clock and faults, and logs the true outcome of each frame period.
///
/// ```swift
/// let machine = try FakeVideoSystemCalls("hfr-usb seed=7 drop=2%")
/// try DeviceSystem.$calls.withValue(machine) { … VideoDevice(opening: "/dev/fakevideo0") … }
/// ```
package final class FakeVideoSystemCalls: VideoSystemCalls {
  /// The true outcome of a frame period, from the generator's log.
  package typealias Truth = fakevideo_truth

  package let handles = SharedHandles()

  /// A box for the closure, because `Mutex` would wrap a bare closure again on each access.
  private struct Gate {
    let isReady: @Sendable () -> Bool
  }
  private let gate = Mutex<Gate?>(nil)
  // This is written only in the initializer. The C library has its own lock.
  private nonisolated(unsafe) let machine: OpaquePointer

  /// The error for an invalid configuration.
  package struct BadConfiguration: Error, CustomStringConvertible {
    package let description: String
  }

  /// Makes a machine with the devices of a configuration, one device per line.
  ///
  /// - Throws: ``BadConfiguration``.
  package init(_ configuration: String) throws(BadConfiguration) {
    let (made, message) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
      text.initialize(repeating: 0)
      let made = fakevideo_create(configuration, true, text.baseAddress, text.count)
      return (made, text.baseAddress.map { String(cString: $0) } ?? "")
    }
    guard let made else { throw BadConfiguration(description: message) }
    machine = made
  }

  deinit { fakevideo_destroy(machine) }

  /// Delays each frame until the closure returns true.
  ///
  /// With a simulated clock, the camera would otherwise be faster than the thread that consumes its
  /// frames.
  package func pace(_ isReady: @escaping @Sendable () -> Bool) {
    gate.withLock { $0 = Gate(isReady: isReady) }
  }

  /// Delivers at most 2000 frames per second.
  package func pace() {
    pace {
      usleep(500)
      return true
    }
  }

  /// Opens the first camera in its fastest mode.
  package func input() throws -> DeviceInput {
    try DeviceSystem.$calls.withValue(self) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
  }

  /// Advances the clock without delivering frames.
  package func advance(nanoseconds: Int64) { fakevideo_advance(machine, nanoseconds) }

  /// The value of a control inside the camera; -1 if the camera lacks the control.
  package func controlValue(_ id: UInt32, ofNode node: Int32 = 0) -> Int64 {
    fakevideo_control(machine, node, id, -1)
  }

  /// The number of times that a request was made.
  package func callCount(_ request: UInt) -> Int64 {
    Int64(fakevideo_call_count(machine, request))
  }

  /// Passes each entry of a node's log to `log` when the entry is made.
  package func onTruth(ofNode node: Int32 = 0, _ log: TruthLog) {
    fakevideo_set_truth(
      machine, node,
      { context, truth in
        guard let context, let truth else { return }
        Unmanaged<TruthLog>.fromOpaque(context).takeUnretainedValue().note(truth.pointee)
      }, Unmanaged.passUnretained(log).toOpaque())
  }

  package func open(_ path: String) -> CInt { fakevideo_open(machine, path, 2) }

  package func close(_ descriptor: CInt) -> CInt { fakevideo_close(machine, descriptor) }

  package func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    fakevideo_ioctl(machine, descriptor, request, argument)
  }

  package func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt {
    if let gate = gate.withLock({ $0 }) { while !gate.isReady() { usleep(100) } }
    return fakevideo_poll(machine, descriptor, events, milliseconds)
  }

  package func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    fakevideo_map(machine, descriptor, length, offset, &error)
  }

  package func unmap(_ memory: UnsafeMutableRawBufferPointer) {
    _ = fakevideo_unmap(machine, memory.baseAddress, memory.count)
  }

  package func nanoseconds() -> Int64 { fakevideo_now(machine) }

  package func pause(milliseconds: Int64) { advance(nanoseconds: milliseconds * 1_000_000) }

  package func nodes() -> [String] {
    (0..<fakevideo_node_count(machine)).compactMap {
      fakevideo_node_path(machine, $0).map { String(cString: $0) }
    }
  }
}

extension FakeVideoSystemCalls {
  /// The loss cause that the ledger must record for a period; nil for an intact frame.
  package static func cause(of truth: Truth) -> FrameGap.Cause? {
    switch Int(truth.fate) {
    case FAKEVIDEO_DELIVERED: nil
    case FAKEVIDEO_LOST_START: .lostStart
    case FAKEVIDEO_LOST_DEVICE: .lostDevice
    case FAKEVIDEO_LOST_KERNEL: .lostKernel
    default: .corrupt
    }
  }
}

/// The true outcomes of a take, as the simulated driver logs them.
///
/// The thread that dequeues frames fills the log. Read it after that thread has finished.
package final class TruthLog {
  /// The cause that the ledger must record for each period, from the start of the stream.
  package private(set) var causes: [FrameGap.Cause?] = []
  /// The number of frame periods with counter or clock anomalies, by the bits of the anomaly.
  package private(set) var anomalies: [UInt8: Int] = [:]

  /// Makes an empty log with capacity for `count` frame periods.
  package init(reserving count: Int = 0) { causes.reserveCapacity(count) }

  func note(_ truth: FakeVideoSystemCalls.Truth) {
    causes.append(FakeVideoSystemCalls.cause(of: truth))
    if truth.anomaly != 0 { anomalies[truth.anomaly, default: 0] += 1 }
  }
}
