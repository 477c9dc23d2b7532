// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
package import OvercrankV4L2
import Synchronization

/// The settings of a camera: focus, exposure, white balance, zoom, light.
///
/// The counterpart of those properties of `AVCaptureDevice`, with their meaning. It holds a handle
/// of its own on the device until it goes, so that settings may be read and changed while a
/// session captures. What is set stays with the camera, also after the program has ended.
///
/// A camera has some of these settings and not others: each has a question that tells, and using
/// one that is not there throws. The synthetic camera and files have none.
///
/// ```swift
/// let controls = try CameraControls(device: camera)
/// if controls.isExposureModeSupported(.custom) {
///   try controls.setExposureModeCustom(
///     duration: MediaTime(microseconds: 4_000), gain: nil, rounding: .towardZero)
/// }
/// ```
///
/// All calls may come from any thread. A call that reads or sets waits for the driver, which may ask
/// the camera over its bus; two calls at once are made one after the other.
public final class CameraControls: Sendable {
  /// The handle, or nil for a device that has no settings.
  let node: ControlledNode?
  /// How messages name the device.
  let deviceName: String
  let state = Mutex(State())

  /// What is remembered between calls.
  struct State {
    var zoomRamp: Task<Double, any Error>?
    var lastExposure: Int64?
    var lastTemperature: Int64?
    /// The LED's own node, once it was looked for; nil where the camera has none.
    var led: ControlledNode??
  }

  /// Opens a device for its settings.
  ///
  /// - Parameter device: The camera, which may be capturing.
  /// - Throws: `MediaError` with `.deviceLost`, `.noPermission`.
  public init(device: CaptureDevice) throws(MediaError) {
    deviceName = device.address
    if case .v4l2(let path) = device.source {
      node = try ControlledNode(path)
    } else {
      node = nil
    }
  }

  /// Opens a node for its settings.
  package init(path: String) throws(MediaError) {
    deviceName = path
    node = try ControlledNode(path)
  }

  deinit { state.withLock { $0.zoomRamp?.cancel() } }

  /// Calls a closure with the open device, for what this type does not cover.
  ///
  /// - Returns: What `body` returns; nil where there is no device.
  package func withDevice<Result>(
    _ body: (borrowing VideoDevice) throws(DeviceError) -> Result
  ) throws(MediaError) -> Result? {
    try node?.use(body)
  }

  /// The highest priority that any program has on the device, or nil where it keeps none.
  package func priority() throws(MediaError) -> DevicePriority? {
    let answer = try withDevice { device throws(DeviceError) in try device.priority() }
    return answer ?? nil
  }

  /// Sets the priority of this handle: `.record` keeps others from changing the device.
  package func setPriority(_ priority: DevicePriority) throws(MediaError) {
    guard let node else { throw missing("priorities") }
    try node.use { device throws(DeviceError) in try device.setPriority(priority) }
  }
}

/// An open device that several owners of settings share.
final class ControlledNode: Sendable {
  private let device: VideoDevice

  init(_ path: String) throws(MediaError) {
    do throws(DeviceError) {
      device = try VideoDevice(opening: path)
    } catch {
      throw MediaError(capturing: error)
    }
  }

  /// Opens the same node again.
  init(reopening node: ControlledNode) throws(MediaError) {
    do throws(DeviceError) {
      device = try VideoDevice(reopening: node.device)
    } catch {
      throw MediaError(capturing: error)
    }
  }

  /// Opens the first LED among the device's parts; nil where it has none that this user may open.
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

  /// Calls a closure with the device; its errors become those of a capture.
  func use<Result>(
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
  /// Where a control is to be found: an LED may have a node of its own beside the camera's.
  func node(for id: ControlID) -> ControlledNode? { id.isOfLED ? led ?? node : node }

  /// The LED's own node; nil where the camera's node has its controls, or nobody does.
  var led: ControlledNode? {
    state.withLock { state in
      if let led = state.led { return led }
      // A camera that cannot be asked now is asked again.
      guard let node, let own = try? node.use(Self.ownLED) else { return nil }
      let led = own ? nil : node.led()
      state.led = .some(led)
      return led
    }
  }

  /// Whether the camera's own node has the controls of an LED.
  private static func ownLED(_ device: borrowing VideoDevice) throws(DeviceError) -> Bool {
    try device.control(.flashMode) != nil
  }

  /// The control of that number, or nil where the device has none.
  func find(_ id: ControlID) throws(MediaError) -> DeviceControl? {
    guard let node = node(for: id) else { return nil }
    return try node.use { device throws(DeviceError) in try device.control(id) }
  }

  /// The control of that number, or the error that there is none.
  func require(_ id: ControlID) throws(MediaError) -> DeviceControl {
    guard let control = try find(id) else { throw missing(id.wellKnownName) }
    return control
  }

  /// Whether the device has the control; of a device that is gone, false.
  func has(_ id: ControlID) -> Bool { (try? find(id)) != nil }

  /// Whether the device has the control, with an item of that number in its menu.
  func has(_ id: ControlID, item: Int64) -> Bool {
    guard let control = try? find(id) else { return false }
    return control.menu.contains { $0.index == item }
  }

  /// The number that the control holds, or nil where the device has no such control.
  func number(_ id: ControlID) throws(MediaError) -> Int64? {
    guard let control = try find(id) else { return nil }
    return try value(control).number
  }

  /// What a control holds; of one that holds nothing, the number zero.
  func value(_ control: DeviceControl) throws(MediaError) -> ControlValue {
    guard let node = node(for: control.id) else { return .number(0) }
    let value = try node.use { device throws(DeviceError) in try device.value(of: control) }
    return value ?? .number(0)
  }

  /// Sets a control that must be there; returns what the driver took.
  @discardableResult
  func set(_ id: ControlID, _ number: Int64) throws(MediaError) -> Int64 {
    try set(require(id), number)
  }

  /// Sets a control; returns what the driver took.
  @discardableResult
  func set(_ control: DeviceControl, _ number: Int64) throws(MediaError) -> Int64 {
    guard let node = node(for: control.id) else { throw missing(control.spelledName) }
    let granted = try node.use { device throws(DeviceError) in
      try device.set(control, to: .number(number))
    }
    return granted.number ?? number
  }

  /// Sets a control where the device has it.
  func setIfPresent(_ id: ControlID, _ number: Int64) throws(MediaError) {
    if let control = try find(id) { try set(control, number) }
  }

  /// The error that the device has no such setting.
  func missing(_ what: String) -> MediaError {
    MediaError(
      .controlNotSupported, "\(deviceName) has no \(what)",
      recovery: Recovery("choose a control that it has", .listControls(device: deviceName)))
  }

  /// The error that a setting does not take a value.
  func outOfRange(_ what: String, _ value: String, takes range: String) -> MediaError {
    MediaError(
      .controlOutOfRange, "\(what) of \(deviceName) cannot be \(value)",
      recovery: "it takes \(range)")
  }
}

extension DeviceControl {
  /// The value at a place of the range, where 0 is the minimum and 1 the maximum.
  func value(at fraction: Double) -> Int64 {
    let span = Double(maximum) - Double(minimum)
    return nearestValue(to: Int64(saturating: (Double(minimum) + span * fraction).rounded()))
  }

  /// The place of a value in the range, from 0 to 1; nil where the range is none.
  func fraction(of value: Int64) -> Double? {
    guard minimum < maximum else { return nil }
    let span = Double(maximum) - Double(minimum)
    return min(max((Double(value) - Double(minimum)) / span, 0), 1)
  }
}
