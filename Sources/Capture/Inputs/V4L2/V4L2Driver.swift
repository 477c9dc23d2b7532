// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
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
    (self.frameDuration, self.durationBefore) = (frameDuration, durationBefore)
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

  var zoomUpscaleThreshold: Double? { crop.upscaleThreshold }

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

/// Zoom by the driver, which crops the image and scales the crop to the size of the frames.
///
/// A driver without a scaler would deliver smaller frames instead, so such a driver counts as
/// unable to crop. All calls may come from any thread.
final class DriverCrop: Sendable {
  private struct State {
    /// The driver's crop rectangle before the first zoom.
    var original: PixelRect?
    var size: (width: UInt32, height: UInt32) = (0, 0)
    /// The most recently requested zoom factor.
    var factor = 1.0
    /// Whether the crop differs from the crop before the capture.
    var isCropped = false
    var isRefused = false
  }

  /// The smallest zoom factor at which a driver that still delivers the whole image counts as
  /// unable to crop.
  ///
  /// At a smaller factor, the driver's crop steps may only be too coarse.
  private static let certainFactor = 1.1

  private let queue: BufferQueue
  private let state = Mutex(State())

  init(_ queue: BufferQueue) { self.queue = queue }

  deinit { restore() }

  /// Crops the image around its center.
  ///
  /// - Returns: The factor in force, or nil if the driver cannot crop. The image is then whole.
  func zoom(to factor: Double) -> Double? {
    state.withLock { state in
      guard let original = original(&state) else { return nil }
      if let granted = set(original, factor, size: state.size) {
        (state.factor, state.isCropped) = (factor, factor != 1)
        return granted
      }
      // The driver may have applied the crop although it cannot scale, so the original crop is set
      // again.
      _ = try? queue.setCrop(original)
      (state.isCropped, state.isRefused) = (false, true)
      return nil
    }
  }

  /// The factor at which the crop has as many pixels as a frame; nil if the driver cannot crop.
  var upscaleThreshold: Double? {
    state.withLock { state in
      guard let original = original(&state), state.size.width > 0, state.size.height > 0 else {
        return nil
      }
      return max(
        1,
        min(
          Double(original.width) / Double(state.size.width),
          Double(original.height) / Double(state.size.height)))
    }
  }

  /// The driver's crop before the first zoom, or nil if the driver cannot crop.
  private func original(_ state: inout State) -> PixelRect? {
    guard !state.isRefused else { return nil }
    if state.original == nil {
      guard let original = try? queue.crop(), let format = try? queue.currentFormat() else {
        state.isRefused = true
        return nil
      }
      (state.original, state.size) = (original, (format.width, format.height))
    }
    return state.original
  }

  /// Restores the crop from before the capture.
  func restore() {
    state.withLock { state in
      // An error means that the device is lost, and then no crop is left to restore.
      guard state.isCropped, let original = state.original else { return }
      _ = try? queue.setCrop(original)
      state.isCropped = false
    }
  }

  /// Applies the last zoom factor again, for the next stream.
  func resume() {
    state.withLock { state in
      guard let original = state.original, state.factor != 1, !state.isRefused else { return }
      state.isCropped = set(original, state.factor, size: state.size) != nil
    }
  }

  /// Sets the crop for a zoom factor, and returns the factor that the driver granted.
  ///
  /// Nil if the driver rejects the crop, ignores it, or changes the frame size.
  private func set(
    _ original: PixelRect, _ factor: Double, size: (width: UInt32, height: UInt32)
  ) -> Double? {
    let wanted = original.middle(factor)
    guard let granted = try? queue.setCrop(wanted), granted.width > 0, granted.height > 0,
      let format = try? queue.currentFormat(), (format.width, format.height) == size,
      factor < Self.certainFactor || granted.width < original.width
    else { return nil }
    return Double(original.width) / Double(granted.width)
  }
}

extension PixelRect {
  /// The centered part of this rectangle that a zoom factor shows.
  fileprivate func middle(_ factor: Double) -> PixelRect {
    let (width, height) = (
      max(1, Int((Double(self.width) / factor).rounded())),
      max(1, Int((Double(self.height) / factor).rounded()))
    )
    return PixelRect(
      x: x + (self.width - min(width, self.width)) / 2,
      y: y + (self.height - min(height, self.height)) / 2, width: width, height: height)
  }
}
