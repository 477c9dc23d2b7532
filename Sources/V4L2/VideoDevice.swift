// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem

/// An open Video4Linux node, such as `/dev/video0`.
///
/// The value is the only owner of its descriptor: it cannot be copied, and the descriptor is
/// closed when the value goes. Hand it to a ``BufferQueue`` to stream; the queue consumes it, so
/// a format cannot be changed under running buffers.
package struct VideoDevice: ~Copyable, Sendable {
  /// The node this device was opened from, which every error names.
  package let path: String
  /// What the driver says it is and can do.
  package let capabilities: Capabilities

  /// The way to the driver.
  let calls: any VideoSystemCalls
  /// The open descriptor; it never leaves this file.
  private let descriptor: CInt

  /// Opens a node, without configuring it or starting to stream.
  ///
  /// libv4l2 is attached with its conversion switched off. The corresponding requests are
  /// open(2), v4l2_fd_open(3) and `VIDIOC_QUERYCAP`.
  ///
  /// - Parameter path: A device node; symbolic links are followed.
  /// - Throws: ``DeviceError`` for `.open`: `.notFound`, `.noPermission`, `.unplugged`, or
  ///   `.notAVideoDevice` for anything else that can be opened.
  package init(opening path: String) throws(DeviceError) {
    try self.init(opening: path, DeviceSystem.calls)
  }

  /// Opens the node of a device again, which gives a handle with events and a priority of its own.
  ///
  /// - Throws: ``DeviceError`` for `.open`, as ``init(opening:)`` does.
  package init(reopening device: borrowing VideoDevice) throws(DeviceError) {
    try self.init(opening: device.path, device.calls)
  }

  /// Opens the node of a part of a device, for the controls that it has; it has nothing else.
  ///
  /// - Throws: ``DeviceError`` for `.open`: `.notFound`, `.noPermission`.
  package init(
    openingSubdevice path: String, of device: borrowing VideoDevice
  ) throws(DeviceError) {
    let descriptor = device.calls.openSubdevice(path)
    try DeviceError.check(descriptor, .open, path)
    self.path = path
    capabilities = Capabilities(v4l2_capability())
    calls = device.calls
    self.descriptor = descriptor
  }

  /// The nodes of the LEDs among the parts of this device: `/dev/v4l-subdev…`.
  package borrowing func leds() -> [String] { calls.leds(of: path) }

  private init(opening path: String, _ calls: any VideoSystemCalls) throws(DeviceError) {
    let descriptor = calls.open(path)
    try DeviceError.check(descriptor, .open, path)
    // libv4l2's plugins may have changed what the device can do: it is asked through them.
    var answer = v4l2_capability()
    let result = withUnsafeMutablePointer(to: &answer) {
      calls.control(descriptor, CVideo4Linux_VIDIOC_QUERYCAP, $0)
    }
    guard result >= 0 else {
      _ = calls.close(descriptor)
      throw DeviceError(failing: .open, path, code: -result)
    }
    // Once every property is set, a throw would also run `deinit`; nothing throws from here on.
    self.path = path
    capabilities = Capabilities(answer)
    self.calls = calls
    self.descriptor = descriptor
  }

  deinit { _ = calls.close(descriptor) }  // Nobody is left to tell.

  /// The number that requests for streams of this node carry: `V4L2_BUF_TYPE_VIDEO_CAPTURE…`.
  var bufferType: UInt32 { capabilities.bufferKind.type }

  /// Makes a request, and answers with a value or a negative errno.
  package borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    withUnsafeMutablePointer(to: &argument) { calls.control(descriptor, request, $0) }
  }

  /// Waits for a frame; answers with poll(2)'s events, 0 at the time limit, or a negative errno.
  borrowing func poll(milliseconds: Int32) -> CInt {
    poll(events: CShort(POLLIN), milliseconds: milliseconds)
  }

  /// Waits for one of poll(2)'s events; answers with those that came, as above.
  borrowing func poll(events: CShort, milliseconds: Int32) -> CInt {
    calls.poll(descriptor, events: events, milliseconds: milliseconds)
  }

  /// Detaches from an unplugged device and unmaps its memory.
  ///
  /// Later requests fail.
  borrowing func abandon(_ memory: [UnsafeMutableRawBufferPointer]) {
    calls.abandon(descriptor, memory)
  }

  /// Maps a buffer of the driver's, or throws ``DeviceError`` for `.mapBuffer`.
  borrowing func map(
    length: Int, offset: Int64
  ) throws(DeviceError) -> UnsafeMutableRawBufferPointer {
    var error: CInt = 0
    guard let start = calls.map(descriptor, length: length, offset: offset, error: &error) else {
      throw DeviceError(failing: .mapBuffer, path, code: -error)
    }
    return UnsafeMutableRawBufferPointer(start: start, count: length)
  }
}

extension VideoDevice {
  /// The number of a node, which says in which order devices came: 3 of `/dev/video3`.
  ///
  /// Nil for paths that are not called so.
  package static func number(ofNode path: String) -> UInt32? {
    let name = path.lastPathComponent
    guard name.hasPrefix("video") else { return nil }
    let digits = name.dropFirst("video".count)
    guard digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else {
      return nil
    }
    return UInt32(digits)
  }

  /// What a driver says it is and can do: `VIDIOC_QUERYCAP`.
  package struct Capabilities: Hashable, Sendable {
    /// The driver's name: `uvcvideo`.
    package let driver: String
    /// The device's name for people: `HD Pro Webcam C920`.
    package let card: String
    /// Where the device sits: `usb-0000:00:14.0-1`.
    package let bus: String
    /// The `V4L2_CAP_…` of this node, not of all the nodes of its device.
    package let flags: UInt32

    init(_ answer: v4l2_capability) {
      driver = withUnsafeBytes(of: answer.driver) { SystemFiles.text($0) }
      card = withUnsafeBytes(of: answer.card) { SystemFiles.text($0) }
      bus = withUnsafeBytes(of: answer.bus_info) { SystemFiles.text($0) }
      // `capabilities` speaks for the whole device: a webcam's metadata node, too, says capture.
      let isPerNode = answer.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0
      flags = isPerNode ? answer.device_caps : answer.capabilities
    }

    /// Whether the node gives pictures of its own, through mapped buffers.
    ///
    /// A touch pad says that it captures, too, and some codecs, whose pictures are what was put
    /// in; nodes for metadata and for output do not.
    package var isVideoCapture: Bool {
      has(V4L2_CAP_STREAMING)
        && (has(V4L2_CAP_VIDEO_CAPTURE) || has(V4L2_CAP_VIDEO_CAPTURE_MPLANE))
        && !has(V4L2_CAP_TOUCH) && !has(V4L2_CAP_VIDEO_M2M) && !has(V4L2_CAP_VIDEO_M2M_MPLANE)
    }

    /// How the node describes the memory of its pictures; the plain way where it knows both.
    package var bufferKind: BufferKind {
      has(V4L2_CAP_VIDEO_CAPTURE_MPLANE) && !has(V4L2_CAP_VIDEO_CAPTURE)
        ? .multiPlanar : .singlePlanar
    }

    private func has(_ flag: some BinaryInteger) -> Bool {
      flags & UInt32(truncatingIfNeeded: flag) != 0
    }
  }
}
