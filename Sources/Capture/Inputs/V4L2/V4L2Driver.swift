// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A V4L2 device that was set to a mode: its driver's buffers as everyone else sees them.
final class V4L2Driver: FrameDriver {
  let bufferCount: Int
  let exposureGuard: ExposureGuard?
  private let queue: BufferQueue
  /// The frame duration that was granted, and the one that was in force before.
  private let frameDuration: MediaTime
  private let durationBefore: MediaTime?
  /// Whether the device is at the duration before, since a control could not go back otherwise.
  private let isDurationGivenBack = Atomic<Bool>(false)
  // Of the thread that starts the stream and dequeues.
  private nonisolated(unsafe) var exposure = ExposureInForce()
  private nonisolated(unsafe) var isToldOfExposure = false

  /// Takes the device over, whose frame duration was set, and asks for its buffers.
  ///
  /// - Parameters:
  ///   - device: The device, set to its mode.
  ///   - planes: Where a frame lies in several planes of memory, the bytes to take of each.
  ///   - frameDuration: The frame duration that was granted, in seconds.
  ///   - durationBefore: The one that was in force before; nil where it is not known.
  /// - Throws: `DeviceError` with `.busy` when another program streams from it.
  init(
    _ device: consuming VideoDevice, joining planes: [Int], frameDuration: MediaTime,
    durationBefore: MediaTime?
  ) throws(DeviceError) {
    queue = try BufferQueue(device, joining: planes)
    bufferCount = queue.count
    self.frameDuration = frameDuration
    self.durationBefore = durationBefore
    exposureGuard = ExposureGuard(QueueControls(queue: queue), frameDuration: frameDuration)
  }

  func microseconds() -> Int64 { queue.nanoseconds() / 1_000 }

  func start(keeping held: [Int]) throws(MediaError) {
    do throws(DeviceError) {
      if isDurationGivenBack.exchange(false, ordering: .relaxed) {
        _ = try queue.setFrameDuration(frameDuration)
      }
      // The controls are the user's again whenever the stream is off.
      exposureGuard?.apply()
      readExposure()
      try queue.start(keeping: held)
    } catch {
      giveBackControls()
      throw MediaError(capturing: error)
    }
  }

  /// Learns how the camera exposes, and asks to be told when somebody changes that.
  ///
  /// A camera that does not say, or whose driver has no events, has frames without the answer.
  private func readExposure() {
    exposure = ExposureInForce()
    for control in ExposureInForce.controls {
      guard let value = try? queue.number(of: control) else { continue }
      exposure.note(control, value)
      if !isToldOfExposure { try? queue.subscribe(to: control) }
    }
    isToldOfExposure = true
  }

  /// Gives the controls back, at the frame duration that they were set for where they need it;
  /// what the camera does not take is in the report, by name.
  private func giveBackControls() {
    if exposureGuard?.hasShortenedExposure == true, let durationBefore {
      isDurationGivenBack.store(true, ordering: .relaxed)
      Self.insist(on: { () throws(DeviceError) in _ = try queue.setFrameDuration(durationBefore) })
    }
    exposureGuard?.restore()
  }

  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    let dequeued: Dequeued?
    do throws(DeviceError) {
      dequeued = try queue.dequeue(timeoutMilliseconds: timeoutMilliseconds) { change in
        exposure.note(change.id, change.value)
      }
    } catch { throw MediaError(capturing: error) }
    guard let dequeued else { return nil }
    // A clock the driver does not name cannot be compared with ours, and none is no time at all:
    // then ours is the time.
    let isTimed = dequeued.clock == .monotonic && dequeued.microseconds != 0
    var frame = FrameObservation(
      sequence: dequeued.sequence,
      microseconds: isTimed ? dequeued.microseconds : microseconds())
    frame.isMarkedCorrupt = dequeued.isError
    return DequeuedBuffer(
      frame, exposure: exposure, bytes: dequeued.bytes, index: dequeued.index, driver: self)
  }

  func requeue(_ index: Int) throws(MediaError) {
    do throws(DeviceError) { try queue.giveBack(index) } catch {
      throw MediaError(capturing: error)
    }
  }

  func stop() {
    // Of a device that is gone there is nothing to stop.
    Self.insist(on: { () throws(DeviceError) in try queue.stop() })
    giveBackControls()
  }

  func release() { Self.insist(on: { () throws(DeviceError) in try queue.free() }) }

  func abandon() { queue.abandon() }

  /// Tries what must not fail a few times: what a bus error spoils now may succeed a moment later.
  private static func insist(on body: () throws(DeviceError) -> Void) {
    for _ in 0..<3 where (try? body()) != nil { break }
  }
}

/// The controls of a device whose buffers run.
private struct QueueControls: ControlPort {
  let queue: BufferQueue

  func range(of id: ControlID) -> ControlRange? {
    guard let control = try? queue.control(id), control.isWritable, control.holdsNumber,
      control.kind != .bitmask
    else { return nil }
    return ControlRange(
      minimum: control.minimum, maximum: control.maximum, step: control.step,
      items: control.kind.isMenu ? Set(control.menu.map(\.index)) : nil)
  }

  func value(of id: ControlID) throws(DeviceError) -> Int64 {
    try queue.requireNumber(of: id)
  }

  func set(_ id: ControlID, to value: Int64) throws(DeviceError) {
    try queue.set(id, to: value)
  }
}
