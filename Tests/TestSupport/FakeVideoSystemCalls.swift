// SPDX-License-Identifier: Apache-2.0

package import FakeVideo4Linux
import Glibc
import OvercrankCapture
package import OvercrankFrameAccounting
import OvercrankV4L2
import Synchronization

/// The fake machine's driver at the seam where the kernel's would be: its own clock, its own
/// faults, and a log of what really became of each frame period.
///
/// ```swift
/// let machine = try FakeDeviceCalls("hfr-usb seed=7 drop=2%")
/// try DeviceSystem.$calls.withValue(machine) { … VideoDevice(opening: "/dev/fakevideo0") … }
/// ```
package final class FakeVideoSystemCalls: VideoSystemCalls {
  /// What became of a frame period, by the generator's own log.
  package typealias Truth = fakevideo_truth

  /// Boxed, because a mutex wraps a bare closure anew each time it lends it.
  private struct Gate {
    let isReady: @Sendable () -> Bool
  }
  private let gate = Mutex<Gate?>(nil)
  // Made in the initialiser; the library guards it with a lock of its own.
  private nonisolated(unsafe) let machine: OpaquePointer

  /// A configuration that the fake machine does not understand.
  package struct BadConfiguration: Error, CustomStringConvertible {
    package let description: String
  }

  /// Builds a machine of the devices that a configuration names, one a line.
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

  /// Makes no frames as long as this says no: on a clock of its own a camera is faster than
  /// whoever takes its frames.
  package func pace(_ isReady: @escaping @Sendable () -> Bool) {
    gate.withLock { $0 = Gate(isReady: isReady) }
  }

  /// Lets time pass while nobody asks for frames.
  package func advance(nanoseconds: Int64) { fakevideo_advance(machine, nanoseconds) }

  /// A control as the camera has it, whoever asks; -1 where it has none such.
  package func controlValue(_ id: UInt32, ofNode node: Int32 = 0) -> Int64 {
    fakevideo_control(machine, node, id, -1)
  }

  /// How often a request was made.
  package func callCount(_ request: UInt) -> Int64 {
    Int64(fakevideo_call_count(machine, request))
  }

  /// Hands each entry of a node's log over as it is made.
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
    if let gate = gate.withLock({ $0 }) { while !gate.isReady() { sched_yield() } }
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

  package func nodes() -> [String] {
    (0..<fakevideo_node_count(machine)).compactMap {
      fakevideo_node_path(machine, $0).map { String(cString: $0) }
    }
  }
}

extension FakeVideoSystemCalls {
  /// What the books must call a period; nil for a frame that arrived whole.
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

/// The generator's log of a take; filled by the thread that asks the fake for frames, and to be
/// read when it is done.
package final class TruthLog {
  /// What the books must call each period, from the first of the stream on.
  package private(set) var causes: [FrameGap.Cause?] = []
  /// Periods whose numbers were odd, by the bits of what was odd about them.
  package private(set) var anomalies: [UInt8: Int] = [:]

  /// Makes an empty log with room for so many periods.
  package init(reserving count: Int = 0) { causes.reserveCapacity(count) }

  func note(_ truth: FakeVideoSystemCalls.Truth) {
    causes.append(FakeVideoSystemCalls.cause(of: truth))
    if truth.anomaly != 0 { anomalies[truth.anomaly, default: 0] += 1 }
  }
}
