// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A V4L2 device in one mode, with its buffer queue.
final class V4L2Driver: FrameDriver {
  let bufferCount: Int
  let exposureGuard: ExposureGuard?
  let queue: BufferQueue
  let crop: DriverCrop
  /// The frame duration that the driver reports.
  private let frameDuration: MediaTime
  private let durationBefore: MediaTime?
  /// Whether the last stop restored the frame duration from before the capture.
  ///
  /// If the exposure was shortened, the stop restores the frame duration first, because some
  /// cameras accept the longer exposure only with a longer frame duration. The next start then sets
  /// `frameDuration` again.
  private let isDurationGivenBack = Atomic<Bool>(false)
  // State used only by the thread that starts the stream and dequeues.
  private nonisolated(unsafe) var exposure = ExposureInForce()
  private nonisolated(unsafe) var isSubscribedToExposure = false
  /// The numbers that the items of integer menus stand for, by control and item index.
  private nonisolated(unsafe) var menus: [ControlID: [Int64: Int64]] = [:]

  /// Takes ownership of a configured device and requests its buffers.
  ///
  /// - Parameters:
  ///   - device: The device, set to its mode.
  ///   - planes: The number of bytes to copy from each plane of a multi-planar frame. Empty for
  ///     contiguous frames.
  ///   - frameDuration: The frame duration that the driver reports, in seconds.
  ///   - durationBefore: The previous frame duration, or nil if unknown.
  /// - Throws: `CallFailure` with `.busy` if another program streams from the device.
  init(
    _ device: consuming VideoDevice, joining planes: [Int], frameDuration: MediaTime,
    durationBefore: MediaTime?
  ) throws(CallFailure) {
    queue = try BufferQueue(device, joining: planes)
    bufferCount = queue.count
    crop = DriverCrop(queue)
    self.frameDuration = frameDuration
    self.durationBefore = durationBefore
    exposureGuard = ExposureGuard(QueueControls(queue: queue), frameDuration: frameDuration)
  }

  func microseconds() -> Int64 { queue.nanoseconds() / 1_000 }

  func start(keeping held: [Int]) throws(MediaError) {
    do throws(CallFailure) {
      if isDurationGivenBack.exchange(false, ordering: .relaxed) {
        _ = try queue.setFrameDuration(frameDuration)
      }
      // The controls are adjusted at each start of the stream, because each stop restores them.
      exposureGuard?.apply()
      readExposure()
      crop.resume()
      try queue.start(keeping: held)
    } catch {
      giveBackControls()
      throw MediaError(error, at: .capturing)
    }
  }

  /// Reads the exposure settings and subscribes to their changes.
  ///
  /// If the camera reports no settings or the driver sends no control events, frames carry no
  /// exposure data.
  private func readExposure() {
    exposure = ExposureInForce()
    queue.discardChanges()
    for id in ExposureInForce.controls {
      // The unit of the iris control is defined only for USB cameras.
      if id == .iris, queue.driver != "uvcvideo" { continue }
      guard let value = try? queue.number(of: id) else { continue }
      if id == .isoSensitivity || id == .exposureBias, menus[id] == nil { readMenu(id) }
      note(id, value)
      if !isSubscribedToExposure { try? queue.subscribe(to: id) }
    }
    isSubscribedToExposure = true
  }

  /// Reads the numbers that the items of an integer menu stand for; does nothing for other
  /// controls.
  private func readMenu(_ id: ControlID) {
    guard let control = try? queue.control(id), control.kind == .integerMenu else { return }
    menus[id] = Dictionary(
      control.menu.compactMap { item in item.number.map { (item.index, $0) } },
      uniquingKeysWith: { first, _ in first })
  }

  private func note(_ id: ControlID, _ value: Int64?) {
    exposure.note(id, menus[id].map { menu in value.flatMap { menu[$0] } } ?? value)
  }

  /// Restores the controls that were changed for the stream.
  ///
  /// If the exposure was shortened, the previous frame duration is restored first, because some
  /// cameras accept the longer exposure only with a longer frame duration. The exposure guard lists
  /// the controls that could not be restored.
  private func giveBackControls() {
    crop.restore()
    queue.restoreChanges()
    if exposureGuard?.hasShortenedExposure == true, let durationBefore {
      isDurationGivenBack.store(true, ordering: .relaxed)
      Self.retry({ () throws(CallFailure) in _ = try queue.setFrameDuration(durationBefore) })
    }
    exposureGuard?.restore()
  }

  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    let dequeued: Dequeued?
    do throws(CallFailure) {
      dequeued = try queue.dequeue(timeoutMilliseconds: timeoutMilliseconds) { change in
        note(change.id, change.value)
      }
    } catch { throw MediaError(error, at: .capturing) }
    guard let dequeued else { return nil }
    if dequeued.isCancelled {
      try requeue(dequeued.index)
      return nil
    }
    // If the driver's timestamp is zero or not from the monotonic clock, the current time replaces
    // it.
    let isTimed = dequeued.clock == .monotonic && dequeued.microseconds != 0
    var frame = FrameObservation(
      sequence: dequeued.sequence,
      microseconds: isTimed ? dequeued.microseconds : microseconds())
    frame.isMarkedCorrupt = dequeued.isError
    return DequeuedBuffer(
      frame, exposure: exposure, bytes: dequeued.bytes, index: dequeued.index, driver: self)
  }

  func requeue(_ index: Int) throws(MediaError) {
    do throws(CallFailure) { try queue.giveBack(index) } catch {
      throw MediaError(error, at: .capturing)
    }
  }

  func export(_ index: Int) throws(MediaError) -> ExportedBuffer? {
    do throws(CallFailure) { return try queue.export(index) } catch {
      guard error.kind == .notSupported else { throw MediaError(error, at: .capturing) }
      // The recovery advice of this error is left out, because no other mode of the camera would
      // help.
      throw MediaError(.deviceFailed, error.description, cause: error.cause)
    }
  }

  func stop() {
    // Errors are ignored. They mean that the device is lost, and then no stream is left to stop.
    Self.retry({ () throws(CallFailure) in try queue.stop() })
    giveBackControls()
  }

  func release() { Self.retry({ () throws(CallFailure) in try queue.free() }) }

  func abandon() { queue.abandon() }

  /// Calls a closure up to three times until it succeeds, because bus errors may be temporary.
  private static func retry(_ body: () throws(CallFailure) -> Void) {
    for _ in 0..<3 where (try? body()) != nil { break }
  }
}

/// Access to the controls of a device through its buffer queue, which owns the device.
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

  func value(of id: ControlID) throws(CallFailure) -> Int64 {
    try queue.requireNumber(of: id)
  }

  func set(_ id: ControlID, to value: Int64) throws(CallFailure) {
    try queue.set(id, to: value)
  }
}

extension V4L2Driver {
  func zoom(to factor: Double) -> Double? { crop.zoom(to: factor) }

  func flip(_ flips: FrameRotation) -> Bool {
    var wanted: [(id: ControlID, value: Int64)] = []
    if flips.flipsX { wanted.append((.isMirrored, 1)) }
    if flips.flipsY { wanted.append((.isFlipped, 1)) }
    if toggle(wanted.map(\.id)) { return true }
    // A driver without flips may still rotate by 180 degrees with its rotation control.
    guard flips.flipsX, flips.flipsY, let control = try? queue.control(.rotation),
      control.minimum <= 180, control.maximum >= 180, control.nearestValue(to: 180) == 180,
      (try? queue.number(of: .rotation)) == 0
    else { return false }
    return (try? queue.setDuringCapture(control, to: 180)) == 180
  }

  /// Toggles on/off controls of the camera: all of them or, if one cannot be set, none.
  ///
  /// For example, a flip that the user had switched on before the stream is switched off during the
  /// stream.
  private func toggle(_ ids: [ControlID]) -> Bool {
    var changed: [(control: DeviceControl, before: Int64)] = []
    for id in ids {
      if let control = try? queue.control(id), control.isWritable,
        let before = (try? queue.number(of: id)) ?? nil,
        (try? queue.setDuringCapture(control, to: before == 0 ? 1 : 0)) != nil
      {
        changed.append((control, before))
        continue
      }
      for change in changed { _ = try? queue.setDuringCapture(change.control, to: change.before) }
      return false
    }
    return true
  }

  func stabilize(_ isOn: Bool) {
    guard let control = try? queue.control(.imageStabilization) else { return }
    // If the camera rejects the change, its setting stays. The connection reports the setting in
    // effect.
    _ = try? queue.setDuringCapture(control, to: isOn ? 1 : 0)
  }

  var isStabilizing: Bool? {
    guard let number = try? queue.number(of: .imageStabilization) else { return nil }
    return number != 0
  }
}
