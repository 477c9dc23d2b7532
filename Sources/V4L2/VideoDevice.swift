// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem

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
  /// and `VIDIOC_QUERYCAP`.
  ///
  /// - Parameter path: A device node. Symbolic links are followed.
  /// - Throws: ``DeviceError`` with the operation `.open`. The reason is for example `.notFound`,
  ///   `.noPermission` or `.unplugged`, or `.notAVideoDevice` for another kind of file.
  package init(opening path: String) throws(DeviceError) {
    try self.init(opening: path, DeviceSystem.calls)
  }

  /// Opens the same node again.
  ///
  /// The new handle has its own events and priority.
  ///
  /// - Throws: ``DeviceError`` as ``init(opening:)`` does.
  package init(reopening device: borrowing VideoDevice) throws(DeviceError) {
    try self.init(opening: device.path, device.calls)
  }

  /// Opens a subdevice node, which supports only controls.
  ///
  /// - Throws: ``DeviceError`` with the operation `.open`. The reason is for example `.notFound` or
  ///   `.noPermission`.
  package init(
    openingSubdevice path: String, of device: borrowing VideoDevice
  ) throws(DeviceError) {
    let descriptor = device.calls.openSubdevice(path)
    try DeviceError.check(descriptor, .open, path)
    handle = DeviceHandle(path, Capabilities(v4l2_capability()), device.calls, descriptor)
  }

  /// The subdevice nodes `/dev/v4l-subdev…` of the device's flash LEDs.
  package borrowing func leds() -> [String] { calls.leds(of: path) }

  private init(opening path: String, _ calls: any VideoSystemCalls) throws(DeviceError) {
    let descriptor = calls.open(path)
    try DeviceError.check(descriptor, .open, path)
    // A plugin of libv4l2 may change the capabilities, so the capabilities are queried through
    // libv4l2.
    var answer = v4l2_capability()
    let result = withUnsafeMutablePointer(to: &answer) {
      calls.control(descriptor, CVideo4Linux_VIDIOC_QUERYCAP, $0)
    }
    guard result >= 0 else {
      _ = calls.close(descriptor)
      throw DeviceError(failing: .open, path, code: -result)
    }
    handle = DeviceHandle(path, Capabilities(answer), calls, descriptor)
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
  /// Throws ``DeviceError`` with the operation `.mapBuffer`.
  borrowing func map(
    length: Int, offset: Int64
  ) throws(DeviceError) -> UnsafeMutableRawBufferPointer {
    var error: CInt = 0
    guard let start = calls.map(handle.descriptor, length: length, offset: offset, error: &error)
    else {
      throw DeviceError(failing: .mapBuffer, path, code: -error)
    }
    return UnsafeMutableRawBufferPointer(start: start, count: length)
  }
}

extension VideoDevice {
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
