// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Glibc
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankRaster
import Synchronization

/// An open Video4Linux node, such as `/dev/video0`.
///
/// The value is not copyable. Its descriptor is closed when the last reference to its
/// ``DeviceHandle`` is released. A ``BufferQueue`` consumes the value for streaming, so that the
/// format cannot change while buffers are in use.
package struct VideoDevice: ~Copyable, Sendable {
  /// The handle that owns the open descriptor.
  let handle: DeviceHandle

  /// The path of the node, used in every error.
  package var path: String { handle.path }
  /// The driver's identity and capabilities.
  package var capabilities: Capabilities { handle.capabilities }
  /// The system calls that reach the driver.
  var calls: any VideoSystemCalls { handle.calls }

  init(_ handle: DeviceHandle) { self.handle = handle }

  /// Opens a node without configuring the device or starting a stream.
  ///
  /// libv4l2 is attached with conversion disabled. The system calls are open(2), v4l2_fd_open(3)
  /// and `VIDIOC_QUERYCAP`. If the kernel could not wake a suspended camera, and resets it, the call
  /// waits for the camera, at most two seconds.
  ///
  /// - Parameter path: A device node. Symbolic links are followed.
  /// - Throws: ``CallFailure`` with the operation `.open`. The reason is for example `.notFound`,
  ///   `.noPermission` or `.unplugged`, or `.notAVideoDevice` for another kind of file.
  package init(opening path: String) throws(CallFailure) {
    try self.init(opening: path, DeviceSystem.calls)
  }

  /// Opens the same node again.
  ///
  /// The new handle has its own events and priority.
  ///
  /// - Throws: ``CallFailure`` as ``init(opening:)`` does.
  package init(reopening device: borrowing VideoDevice) throws(CallFailure) {
    try self.init(opening: device.path, device.calls)
  }

  /// Opens a subdevice node, which supports only controls.
  ///
  /// - Throws: ``CallFailure`` with the operation `.open`. The reason is for example `.notFound` or
  ///   `.noPermission`.
  package init(
    openingSubdevice path: String, of device: borrowing VideoDevice
  ) throws(CallFailure) {
    let descriptor = device.calls.openSubdevice(path)
    try CallFailure.check(descriptor, .open, path)
    handle = DeviceHandle(path, Capabilities(v4l2_capability()), device.calls, descriptor)
  }

  /// The subdevice nodes `/dev/v4l-subdev…` of the device's flash LEDs.
  package borrowing func leds() -> [String] { calls.leds(of: path) }

  private init(opening path: String, _ calls: any VideoSystemCalls) throws(CallFailure) {
    let descriptor = Self.open(path, calls)
    try CallFailure.check(descriptor, .open, path)
    // A plugin of libv4l2 may change the capabilities, so the capabilities are queried through
    // libv4l2.
    var answer = v4l2_capability()
    let result = withUnsafeMutablePointer(to: &answer) {
      calls.control(descriptor, CVideo4Linux_VIDIOC_QUERYCAP, $0)
    }
    guard result >= 0 else {
      _ = calls.close(descriptor)
      throw CallFailure(failing: .open, path, code: -result)
    }
    handle = DeviceHandle(path, Capabilities(answer), calls, descriptor)
  }

  /// The longest wait for a camera that is being reset, in nanoseconds.
  private static let longestReset: Int64 = 2_000_000_000

  /// Opens a node, and waits for a camera that is being reset.
  ///
  /// The kernel suspends an idle USB camera, and wakes it when it is opened. If the camera does not
  /// wake, open(2) fails with `EBUSY`, and the kernel resets the camera: its node disappears, and
  /// reappears some tenths of a second later. This happens to any camera with faulty power management,
  /// and on a virtual bus if two of its cameras are woken at once.
  ///
  /// Returns a descriptor or a negative errno.
  private static func open(_ path: String, _ calls: any VideoSystemCalls) -> CInt {
    var result = calls.open(path)
    // `EBUSY` also comes from a driver that only one program may open, and no wait helps then.
    guard result == -EBUSY, DeviceHolder.find(of: path, limit: 1).isEmpty else { return result }
    let deadline = calls.nanoseconds() + longestReset
    // A new node first belongs to root, until udev has set its group.
    while [-EBUSY, -ENOENT, -ENODEV, -ENXIO, -EACCES].contains(result),
      calls.nanoseconds() < deadline
    {
      calls.pause(milliseconds: 20)
      result = calls.open(path)
    }
    return result
  }

  /// The `V4L2_BUF_TYPE_VIDEO_CAPTURE…` value for requests to this node.
  var bufferType: UInt32 { capabilities.bufferKind.type }

  /// Makes an ioctl request.
  ///
  /// Returns its value, or a negative errno on failure.
  package borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    handle.control(request, &argument)
  }

  /// Waits for a frame.
  ///
  /// Returns poll(2) events, 0 after the timeout, or a negative errno.
  borrowing func poll(milliseconds: Int32) -> CInt {
    poll(events: CShort(POLLIN), milliseconds: milliseconds)
  }

  /// Waits for the given poll(2) events.
  ///
  /// Returns events, 0 after the timeout, or a negative errno.
  borrowing func poll(events: CShort, milliseconds: Int32) -> CInt {
    calls.poll(handle.descriptor, events: events, milliseconds: milliseconds)
  }

  /// Detaches from an unplugged device and unmaps its memory.
  ///
  /// Later requests fail.
  borrowing func abandon(_ memory: [UnsafeMutableRawBufferPointer]) {
    calls.abandon(handle.descriptor, memory)
  }

  /// Maps a driver buffer.
  ///
  /// Throws ``CallFailure`` with the operation `.mapBuffer`.
  borrowing func map(
    length: Int, offset: Int64
  ) throws(CallFailure) -> UnsafeMutableRawBufferPointer {
    var error: CInt = 0
    guard let start = calls.map(handle.descriptor, length: length, offset: offset, error: &error)
    else {
      throw CallFailure(failing: .mapBuffer, path, code: -error)
    }
    return UnsafeMutableRawBufferPointer(start: start, count: length)
  }

  /// The number in a node's name, such as 3 for `/dev/video3`, or nil for other names.
  ///
  /// The kernel numbers nodes in the order in which they appear.
  package static func number(ofNode path: String) -> UInt32? {
    let name = path.lastPathComponent
    guard name.hasPrefix("video") else { return nil }
    let digits = name.dropFirst("video".count)
    guard digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else {
      return nil
    }
    return UInt32(digits)
  }

  /// A driver's identity and capabilities: `VIDIOC_QUERYCAP`.
  package struct Capabilities: Hashable, Sendable {
    /// The driver's name, such as `uvcvideo`.
    package let driver: String
    /// The device's display name, such as `HD Pro Webcam C920`.
    package let card: String
    /// The bus location, such as `usb-0000:00:14.0-1`.
    package let bus: String
    /// The `V4L2_CAP_…` flags of this node, without the flags of the device's other nodes.
    package let flags: UInt32

    init(_ answer: v4l2_capability) {
      driver = withUnsafeBytes(of: answer.driver) { SystemFiles.text($0) }
      card = withUnsafeBytes(of: answer.card) { SystemFiles.text($0) }
      bus = withUnsafeBytes(of: answer.bus_info) { SystemFiles.text($0) }
      // `capabilities` covers all nodes of the device. Even a webcam's metadata node reports
      // capture there, so `device_caps` is preferred.
      let isPerNode = answer.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0
      flags = isPerNode ? answer.device_caps : answer.capabilities
    }

    /// Whether the node captures video into mapped buffers.
    ///
    /// Touch devices and memory-to-memory codecs also report capture, but are excluded. Metadata
    /// and output nodes do not report capture.
    package var isVideoCapture: Bool {
      has(V4L2_CAP_STREAMING)
        && (has(V4L2_CAP_VIDEO_CAPTURE) || has(V4L2_CAP_VIDEO_CAPTURE_MPLANE))
        && !has(V4L2_CAP_TOUCH) && !has(V4L2_CAP_VIDEO_M2M) && !has(V4L2_CAP_VIDEO_M2M_MPLANE)
    }

    /// The buffer API of the node.
    ///
    /// If the node supports both APIs, this is the single-planar one.
    package var bufferKind: BufferKind {
      has(V4L2_CAP_VIDEO_CAPTURE_MPLANE) && !has(V4L2_CAP_VIDEO_CAPTURE)
        ? .multiPlanar : .singlePlanar
    }

    private func has(_ flag: some BinaryInteger) -> Bool {
      flags & UInt32(truncatingIfNeeded: flag) != 0
    }
  }
}

/// A pixel format from the driver's list.
package struct V4L2PixelFormat: Hashable, Sendable {
  /// The index in the driver's list, from 0.
  ///
  /// The list is in the driver's order of preference.
  package let index: UInt32
  /// The code of four characters, the first in the lowest byte.
  ///
  /// Bit 31 marks a big-endian format.
  package let fourcc: UInt32
  /// Whether frames are compressed and vary in size.
  package let isCompressed: Bool
  /// Whether libv4l2 emulates the format by conversion.
  package let isEmulated: Bool
  /// The driver's description of the pixel format.
  package let description: String

  package init(
    index: UInt32, fourcc: UInt32, isCompressed: Bool, isEmulated: Bool, description: String
  ) {
    (self.index, self.fourcc, self.isCompressed) = (index, fourcc, isCompressed)
    (self.isEmulated, self.description) = (isEmulated, description)
  }
}

extension VideoSize {
  /// Creates a size from the numbers of a driver.
  package init(_ width: UInt32, _ height: UInt32) {
    self.init(width: Int(width), height: Int(height))
  }
}

/// A fraction as reported by the driver.
///
/// Numerator and denominator may be zero.
package struct DriverFraction: Hashable, Sendable, CustomStringConvertible {
  package let numerator: UInt32
  package let denominator: UInt32

  package init(_ numerator: UInt32, _ denominator: UInt32) {
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  init(_ fraction: v4l2_fract) { self.init(fraction.numerator, fraction.denominator) }

  package var description: String { "\(numerator)/\(denominator)" }
}

/// The frame sizes of a format: `VIDIOC_ENUM_FRAMESIZES`.
package enum DriverSizes: Hashable, Sendable {
  /// A list of sizes. Empty if the driver reports none.
  case discrete([VideoSize])
  /// All sizes from the smallest to the largest in fixed steps.
  case stepwise(smallest: VideoSize, largest: VideoSize, step: VideoSize)
  /// Every size from the smallest to the largest.
  case continuous(smallest: VideoSize, largest: VideoSize)
}

/// The frame durations of a format and size, in seconds: `VIDIOC_ENUM_FRAMEINTERVALS`.
///
/// The shortest duration is the highest frame rate.
package enum DriverIntervals: Hashable, Sendable {
  /// A list of durations. Empty if the driver reports none.
  case discrete([DriverFraction])
  /// All durations from the shortest to the longest in fixed steps.
  case stepwise(shortest: DriverFraction, longest: DriverFraction, step: DriverFraction)
  /// Every duration from the shortest to the longest.
  case continuous(shortest: DriverFraction, longest: DriverFraction)
}

extension VideoDevice {
  /// The greatest number of entries that are read from one of the driver's lists, such as the list
  /// of formats.
  ///
  /// The enumeration of some drivers never ends.
  static let listLimit: UInt32 = 4096

  /// Lists the pixel formats in the driver's order: `VIDIOC_ENUM_FMT`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.listFormats`.
  package borrowing func formats() throws(CallFailure) -> [V4L2PixelFormat] {
    var formats: [V4L2PixelFormat] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_fmtdesc()
      entry.index = index
      entry.type = bufferType
      guard try has(CVideo4Linux_VIDIOC_ENUM_FMT, &entry, .listFormats) else { break }
      formats.append(
        V4L2PixelFormat(
          index: index, fourcc: entry.pixelformat,
          isCompressed: entry.flags & UInt32(V4L2_FMT_FLAG_COMPRESSED) != 0,
          isEmulated: entry.flags & UInt32(V4L2_FMT_FLAG_EMULATED) != 0,
          description: withUnsafeBytes(of: entry.description) { SystemFiles.text($0) }))
    }
    return formats
  }

  /// Lists the sizes of a format: `VIDIOC_ENUM_FRAMESIZES`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.listSizes`. A driver without this list is not
  ///   an error.
  package borrowing func sizes(of fourcc: UInt32) throws(CallFailure) -> DriverSizes {
    var sizes: [VideoSize] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmsizeenum()
      entry.index = index
      entry.pixel_format = fourcc
      guard try has(CVideo4Linux_VIDIOC_ENUM_FRAMESIZES, &entry, .listSizes) else { break }
      if entry.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
        sizes.append(VideoSize(entry.discrete.width, entry.discrete.height))
        continue
      }
      // The specification allows either one range or a list of sizes. If a list also contains a
      // range, the range is ignored.
      guard sizes.isEmpty else { continue }
      let range = entry.stepwise
      let smallest = VideoSize(range.min_width, range.min_height)
      let largest = VideoSize(range.max_width, range.max_height)
      guard entry.type == V4L2_FRMSIZE_TYPE_STEPWISE.rawValue else {
        return .continuous(smallest: smallest, largest: largest)
      }
      return .stepwise(
        smallest: smallest, largest: largest,
        step: VideoSize(range.step_width, range.step_height))
    }
    return .discrete(sizes)
  }

  /// Lists the frame durations of a format and size: `VIDIOC_ENUM_FRAMEINTERVALS`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.listIntervals`. A driver without this list is
  ///   not an error.
  package borrowing func intervals(
    of fourcc: UInt32, at size: VideoSize
  ) throws(CallFailure) -> DriverIntervals {
    var intervals: [DriverFraction] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_frmivalenum()
      entry.index = index
      entry.pixel_format = fourcc
      entry.width = UInt32(clamping: size.width)
      entry.height = UInt32(clamping: size.height)
      guard try has(CVideo4Linux_VIDIOC_ENUM_FRAMEINTERVALS, &entry, .listIntervals) else { break }
      if entry.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue {
        intervals.append(DriverFraction(entry.discrete))
        continue
      }
      guard intervals.isEmpty else { continue }
      let shortest = DriverFraction(entry.stepwise.min)
      let longest = DriverFraction(entry.stepwise.max)
      guard entry.type == V4L2_FRMIVAL_TYPE_STEPWISE.rawValue else {
        return .continuous(shortest: shortest, longest: longest)
      }
      return .stepwise(
        shortest: shortest, longest: longest, step: DriverFraction(entry.stepwise.step))
    }
    return .discrete(intervals)
  }

  /// Reads one entry of a driver's list, such as the list of formats.
  ///
  /// Returns false at the end of the list, or if the driver has no such list.
  borrowing func has<Entry>(
    _ request: UInt, _ entry: inout Entry, _ operation: VideoOperation
  ) throws(CallFailure) -> Bool {
    let result = control(request, &entry)
    switch -result {
    case EINVAL, ENOTTY, ENODATA: return false
    default:
      try CallFailure.check(result, operation, path)
      return true
    }
  }

  /// The handles of device nodes that the parts of this program share.
  package var handles: SharedHandles { handle.calls.handles }

  /// Shares the handle by which this program captures from a node, or returns nil if it does not
  /// capture from the node.
  package init?(capturingAt path: String) {
    guard let handle = DeviceSystem.calls.handles.capturing(path) else { return nil }
    self.init(handle)
  }

  /// Whether this is the handle by which this program captures from the device.
  package var isCapturing: Bool { handles.capturing(path) === handle }

  /// Calls a closure with a handle through which settings can be changed.
  ///
  /// This is the handle of this program that holds the lock on the settings, because the driver
  /// rejects changes through any other handle. If this program holds no lock on the device, it is
  /// this value's own handle.
  package borrowing func withSettings<Result>(
    _ body: (borrowing VideoDevice) throws(CallFailure) -> Result
  ) throws(CallFailure) -> Result {
    if let holder = handle.calls.handles.holder(of: path) { return try body(VideoDevice(holder)) }
    return try body(self)
  }

  /// Locks the device against changes through other handles: `VIDIOC_S_PRIORITY` with
  /// `V4L2_PRIORITY_RECORD`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`. The kind is `.busy` if the
  ///   device is already locked.
  package borrowing func lockSettings() throws(CallFailure) -> SettingsLock {
    try SettingsLock(handle)
  }

  /// Releases the lock on the settings, but keeps the priority `.record` of this handle until the
  /// capture ends.
  ///
  /// So other programs cannot change the settings during the capture.
  package borrowing func keepSettings() { handle.keepSettings() }

  /// Sets a control.
  ///
  /// If this program captures from the device, the previous value is restored when the capture
  /// ends. Otherwise the new value stays set.
  ///
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.readControl` or `.setControl`.
  @discardableResult
  package borrowing func setDuringCapture(
    _ control: DeviceControl, to value: ControlValue
  ) throws(CallFailure) -> ControlValue {
    guard let capturing = handle.calls.handles.capturing(path) else {
      return try set(control, to: value)
    }
    return try capturing.change(control, to: value, through: handle)
  }
}

/// A lock on the settings of a device.
///
/// It is released when this value is destroyed.
package struct SettingsLock: ~Copyable, Sendable {
  private let handle: DeviceHandle

  fileprivate init(_ handle: DeviceHandle) throws(CallFailure) {
    try handle.lock()
    self.handle = handle
  }

  deinit {
    // Errors are ignored. If the device is lost, the priorities of its handles no longer exist
    // anyway.
    try? handle.unlock()
  }

  /// Releases the lock on the device's settings.
  ///
  /// If the handle keeps the priority `.record` until a capture ends, other programs stay locked
  /// out until then.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`.
  package borrowing func unlock() throws(CallFailure) { try handle.unlock() }
}

/// An open descriptor of a node.
///
/// It is closed when the last reference is released.
///
/// A handle locks the device's settings by taking the priority `.record`. Drivers that support
/// priorities then reject changes through any other handle, even one of the same program. The parts
/// of a program therefore share one handle.
package final class DeviceHandle: ControlChannel, Sendable {
  /// The path of the node, used in every error.
  package let path: String
  let capabilities: VideoDevice.Capabilities
  /// The system calls that reach the driver.
  let calls: any VideoSystemCalls
  let descriptor: CInt

  private struct State {
    /// Whether a ``SettingsLock`` exists.
    var isLocked = false
    /// Whether the handle keeps the priority `.record` until the capture ends, even without a lock.
    var keepsSettings = false
    /// The controls to restore when the capture ends.
    var changes = ControlChanges()
  }
  private let state = Mutex(State())

  init(
    _ path: String, _ capabilities: VideoDevice.Capabilities, _ calls: any VideoSystemCalls,
    _ descriptor: CInt
  ) {
    (self.path, self.capabilities, self.calls) = (path, capabilities, calls)
    self.descriptor = descriptor
  }

  deinit { _ = calls.close(descriptor) }  // No caller is left to report an error to.

  package func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    withUnsafeMutablePointer(to: &argument) { calls.control(descriptor, request, $0) }
  }

  // MARK: - Settings

  /// Locks the settings against changes through other handles, if the driver has priorities.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`. The kind is `.busy` if another
  ///   program or another part of this program holds the lock.
  func lock() throws(CallFailure) {
    let isTaken = state.withLock { state in
      defer { state.isLocked = true }
      return state.isLocked
    }
    if isTaken { throw CallFailure(.setPriority, path, code: EBUSY) }
    do throws(CallFailure) {
      try setPriority(.record)
      calls.handles.setHolder(self)
    } catch {
      // A driver without priorities accepts changes from every handle, so the lock exists only in
      // this program.
      guard error.kind != .notSupported else { return }
      state.withLock { $0.isLocked = false }
      throw error
    }
  }

  /// Releases the lock on the device's settings.
  ///
  /// After ``keepSettings()``, other programs stay locked out until the capture ends.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`.
  func unlock() throws(CallFailure) {
    let isGivenBack = state.withLock { state in
      defer { state.isLocked = false }
      return state.isLocked && !state.keepsSettings
    }
    if isGivenBack { try share() }
  }

  /// Releases the lock on the settings, but keeps the priority `.record` until
  /// ``giveUpSettings()``.
  ///
  /// So other programs cannot change the settings during the capture.
  func keepSettings() {
    state.withLock { state in
      state.keepsSettings = state.isLocked
      state.isLocked = false
    }
  }

  /// Releases the priority `.record` that was kept during the capture.
  ///
  /// If a ``SettingsLock`` exists, it stays in force.
  func giveUpSettings() {
    let isLocked = state.withLock { state in
      state.keepsSettings = false
      return state.isLocked
    }
    // Errors are ignored. If the device is lost, the priorities of its handles no longer exist
    // anyway.
    if !isLocked { try? share() }
  }

  private func share() throws(CallFailure) {
    guard calls.handles.removeHolder(self) else { return }
    try setPriority(.interactive)
  }

  // MARK: - Changes until the end of the capture

  /// Sets a control until ``restoreChanges()`` is called.
  ///
  /// The request is made through `channel`, because the lock on the settings may be held by the
  /// handle of `channel` and not by this handle.
  func change(
    _ control: DeviceControl, to value: ControlValue, through channel: DeviceHandle
  ) throws(CallFailure) -> ControlValue {
    try state.withLock { (state) throws(CallFailure) in
      try state.changes.set(control, to: value, on: channel)
    }
  }

  /// Restores the controls that were changed for the duration of the capture.
  func restoreChanges() {
    state.withLock { state in
      guard !state.changes.changedControls.isEmpty else { return }
      // Errors are ignored. A control that cannot be restored keeps its changed value.
      _ = state.changes.restore(on: self)
    }
  }
}
