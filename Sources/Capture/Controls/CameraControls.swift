// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The controls of a camera: focus, exposure, white balance, zoom and light.
///
/// Properties have the names and meaning of those of `AVCaptureDevice`. Controls can be changed
/// while a session captures. If this program has locked the device, calls use the handle that holds
/// the lock, so they still succeed. The camera keeps its settings after the program ends, unless a
/// property says otherwise.
///
/// A camera supports only some of these controls. Each control has a property or method that
/// reports whether it is supported. Setting an unsupported control throws. Files and the synthetic
/// camera have no controls.
///
/// ```swift
/// let controls = try CameraControls(device: camera)
/// if controls.isExposureModeSupported(.custom) {
///   try controls.setExposureModeCustom(
///     duration: MediaTime(microseconds: 4_000), gain: nil, rounding: .towardZero)
/// }
/// ```
///
/// All calls may come from any thread. A call blocks while the driver communicates with the camera.
/// Concurrent calls run one after the other.
public final class CameraControls: Sendable {
  /// The open device, or nil for a device without controls.
  let node: ControlledNode?
  /// The device's name in error messages.
  let deviceName: String
  let state = Mutex(State())
  /// The lock that lets one thread at a time change the torch.
  ///
  /// To avoid a deadlock, it must not be acquired while the lock of `state` is held.
  let torchWork = Mutex(())
  /// Waits between two readings of an automatic value.
  ///
  /// Replaced in tests.
  let waitForChoice: @Sendable () -> Void

  /// The mutable state of this object.
  struct State {
    var zoomRamp: Task<Double, any Error>?
    var torch = Torch()
    var flashMode = FlashMode.off
    /// The exposure that ``ExposureMode/locked`` set manually, because the camera has no exposure
    /// lock.
    ///
    /// Nil if exposure is not locked in this way.
    var lockedExposure: ExposureSetting?
    /// The LED's own node.
    ///
    /// The outer nil means that the node was not searched for yet, the inner nil that no such node
    /// exists.
    var led: ControlledNode??
  }

  /// Opens a device to control it.
  ///
  /// - Parameter device: The camera, which may be capturing.
  /// - Throws: `MediaError` with `.deviceLost`, `.noPermission`.
  public init(device: CaptureDevice) throws(MediaError) {
    deviceName = device.address
    waitForChoice = Self.pause
    if case .v4l2(let path) = device.source {
      node = try ControlledNode(path)
    } else {
      node = nil
    }
  }

  /// Opens a device node to control it.
  package init(
    path: String, waitForChoice: @escaping @Sendable () -> Void = CameraControls.pause
  ) throws(MediaError) {
    deviceName = path
    self.waitForChoice = waitForChoice
    node = try ControlledNode(path)
  }

  deinit {
    state.withLock { $0.zoomRamp?.cancel() }
    endTorch()
  }
}

/// An open device node, shared by the objects that control the device.
final class ControlledNode: Sendable {
  private let device: VideoDevice

  /// The path of the node.
  var path: String { device.path }
  /// The handles of device nodes that the parts of this program share.
  var handles: SharedHandles { device.handles }

  init(_ path: String) throws(MediaError) {
    do throws(DeviceError) {
      device = try VideoDevice(opening: path)
    } catch {
      throw MediaError(capturing: error)
    }
  }

  /// Opens the same node a second time, to get a handle with a separate queue of control events.
  init(reopening node: ControlledNode) throws(MediaError) {
    do throws(DeviceError) {
      device = try VideoDevice(reopening: node.device)
    } catch {
      throw MediaError(capturing: error)
    }
  }

  /// Opens the first LED of the device that this user may open, or returns nil if there is none.
  func led() -> ControlledNode? {
    for path in device.leds() {
      guard let part = try? VideoDevice(openingSubdevice: path, of: device),
        (try? part.control(.flashMode)) != nil
      else { continue }
      return ControlledNode(part)
    }
    return nil
  }

  private init(_ device: consuming VideoDevice) { self.device = device }

  /// Calls a closure with the device and converts its errors to `MediaError`.
  ///
  /// If this program has locked the device, the closure gets the handle that holds the lock.
  func use<Result>(
    _ body: (borrowing VideoDevice) throws(DeviceError) -> Result
  ) throws(MediaError) -> Result {
    do throws(DeviceError) {
      return try device.withSettings(body)
    } catch {
      throw MediaError(capturing: error)
    }
  }

  /// Sets a control.
  ///
  /// If this program captures from the device, the previous value is restored when the capture
  /// ends. Otherwise the new value stays set.
  func setDuringCapture(_ control: DeviceControl, to value: ControlValue) throws(MediaError) {
    _ = try use { device throws(DeviceError) in try device.setDuringCapture(control, to: value) }
  }

  /// Calls a closure with the handle that belongs to this object alone.
  ///
  /// No other object reads the events of this handle.
  func useOwn<Result>(
    _ body: (borrowing VideoDevice) throws(DeviceError) -> Result
  ) throws(MediaError) -> Result {
    do throws(DeviceError) {
      return try body(device)
    } catch {
      throw MediaError(capturing: error)
    }
  }
}

extension CameraControls {
  /// The node that has a control.
  ///
  /// An LED control belongs to the LED's separate node, if there is one. All other controls belong
  /// to the camera's node.
  func node(for id: ControlID) -> ControlledNode? { id.isOfLED ? led ?? node : node }

  /// The LED's own node, or nil if the camera's node has the LED controls or the camera has no LED.
  var led: ControlledNode? {
    state.withLock { state in
      if let led = state.led { return led }
      // If the camera cannot be queried now, nothing is stored, and the next call searches again.
      guard let node, let own = try? node.use(Self.ownLED) else { return nil }
      let led = own ? nil : node.led()
      state.led = .some(led)
      return led
    }
  }

  /// Whether the camera's own node has LED controls.
  private static func ownLED(_ device: borrowing VideoDevice) throws(DeviceError) -> Bool {
    try device.control(.flashMode) != nil
  }

  /// The description of a control, or nil if the device lacks it.
  func find(_ id: ControlID) throws(MediaError) -> DeviceControl? {
    guard let node = node(for: id) else { return nil }
    return try node.use { device throws(DeviceError) in try device.control(id) }
  }

  /// The description of a control.
  ///
  /// Throws if the device lacks the control.
  func require(_ id: ControlID) throws(MediaError) -> DeviceControl {
    guard let control = try find(id) else { throw missing(id.wellKnownName) }
    return control
  }

  /// Whether the device has a control.
  ///
  /// False if the device is lost.
  func has(_ id: ControlID) -> Bool { (try? find(id)) != nil }

  /// Whether the device has a menu control with an item of this index.
  func has(_ id: ControlID, item: Int64) -> Bool {
    guard let control = try? find(id) else { return false }
    return control.menu.contains { $0.index == item }
  }

  /// The value of a control as a number, or nil if the device lacks the control.
  func number(_ id: ControlID) throws(MediaError) -> Int64? {
    guard let control = try find(id) else { return nil }
    return try value(control).number
  }

  /// The value of a control, or zero for a control without a value.
  func value(_ control: DeviceControl) throws(MediaError) -> ControlValue {
    guard let node = node(for: control.id) else { return .number(0) }
    let value = try node.use { device throws(DeviceError) in try device.value(of: control) }
    return value ?? .number(0)
  }

  /// Sets a control and returns the value that the driver chose.
  ///
  /// Throws if the device lacks the control.
  @discardableResult
  func set(_ id: ControlID, _ number: Int64) throws(MediaError) -> Int64 {
    try set(require(id), number)
  }

  /// Sets a control and returns the value that the driver chose.
  @discardableResult
  func set(_ control: DeviceControl, _ number: Int64) throws(MediaError) -> Int64 {
    guard let node = node(for: control.id) else { throw missing(control.spelledName) }
    let granted = try node.use { device throws(DeviceError) in
      try device.set(control, to: .number(number))
    }
    return granted.number ?? number
  }

  /// Sets a control if the device has it.
  func setIfPresent(_ id: ControlID, _ number: Int64) throws(MediaError) {
    if let control = try find(id) { try set(control, number) }
  }

  /// The error for a control that the device lacks.
  func missing(_ what: String) -> MediaError {
    MediaError(
      .controlNotSupported, "\(deviceName) has no \(what)",
      recovery: Recovery("choose a control that it has", .listControls(device: deviceName)))
  }

  /// The error for a value outside the control's range.
  func outOfRange(_ what: String, _ value: String, takes range: String) -> MediaError {
    MediaError(
      .controlOutOfRange, "\(what) of \(deviceName) cannot be \(value)",
      recovery: "choose \(range)")
  }
}

extension DeviceControl {
  /// The control's value at a fraction of its range: 0 is the minimum, 1 the maximum.
  func value(at fraction: Double) -> Int64 {
    let span = Double(maximum) - Double(minimum)
    return nearestValue(to: Int64(saturating: (Double(minimum) + span * fraction).rounded()))
  }

  /// The fraction of the control's range at a value, from 0 to 1.
  ///
  /// Nil if the range is empty.
  func fraction(of value: Int64) -> Double? {
    guard minimum < maximum else { return nil }
    let span = Double(maximum) - Double(minimum)
    return min(max((Double(value) - Double(minimum)) / span, 0), 1)
  }
}
