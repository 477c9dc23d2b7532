// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// A streaming queue of driver buffers, mapped into this process.
///
/// The queue owns the device and the mappings, and releases both on `deinit`. One thread dequeues;
/// any thread may return buffers. No call allocates memory per frame.
///
/// Frames are read directly from driver memory. Only formats with several memory planes are copied,
/// into preallocated memory.
package final class BufferQueue: ControlChannel, Sendable {
  /// The maximum of most kernels (`VIDEO_MAX_FRAME`): 133 ms at 240 fps.
  package static let usualCount: UInt32 = 32

  /// The path of the device node.
  package var path: String { device.path }
  /// The name of the device's driver.
  package var driver: String { device.capabilities.driver }
  /// The number of buffers that the driver granted; may differ from the requested number.
  package var count: Int { buffers.count }
  /// The capacity of the smallest buffer, in bytes.
  package var bytesPerBuffer: Int { buffers.lazy.map(\.capacity).min() ?? 0 }

  /// Makes an ioctl request on the streaming device.
  ///
  /// Callable from any thread.
  package func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    device.control(request, &argument)
  }

  /// Requests a frame duration while the stream is off.
  ///
  /// - Throws: ``DeviceError`` for `.setFrameDuration`.
  package func setFrameDuration(_ duration: MediaTime) throws(DeviceError) -> MediaTime {
    try device.setFrameDuration(duration)
  }

  /// The current time of the driver's timestamp clock, in nanoseconds.
  package func nanoseconds() -> Int64 { device.calls.nanoseconds() }

  private let device: VideoDevice
  // Written only in the initializer. The memory belongs to the caller that dequeued the buffer.
  private nonisolated(unsafe) let buffers: [MappedBuffer]

  /// Takes ownership of the device and requests buffers from its driver.
  ///
  /// The system calls are `VIDIOC_REQBUFS`, `VIDIOC_QUERYBUF` and mmap(2).
  ///
  /// - Parameters:
  ///   - device: The device, with its format already set.
  ///   - count: The number of buffers to request.
  ///   - joining: For formats with several memory planes, the bytes to copy from each plane, in
  ///     order. The frame is then contiguous. Empty for formats with one plane.
  /// - Throws: ``DeviceError`` for `.requestBuffers` or `.mapBuffer`. `.busy` when another program
  ///   streams, `ENOMEM` when the driver grants no buffer, `ENOTSUP` when `joining` does not match
  ///   the planes.
  package init(
    _ device: consuming VideoDevice, count: UInt32 = usualCount, joining: [Int] = []
  ) throws(DeviceError) {
    var request = v4l2_requestbuffers()
    request.count = count
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try DeviceError.check(
      device.control(CVideo4Linux_VIDIOC_REQBUFS, &request), .requestBuffers, device.path)
    guard request.count > 0 else {
      throw DeviceError(.requestBuffers, device.path, code: ENOMEM)
    }
    var buffers: [MappedBuffer] = []
    do throws(DeviceError) {
      for index in 0..<request.count {
        buffers.append(try MappedBuffer(index, of: device, joining: joining))
      }
    } catch {
      for buffer in buffers { buffer.unmap(device.calls) }
      throw error
    }
    self.buffers = buffers
    self.device = device
    self.device.calls.handles.beginCapture(self.device.handle)
  }

  deinit {
    leave()
    // The mappings must be released before the device closes.
    for buffer in buffers { buffer.unmap(device.calls) }
  }

  /// Restores what was changed during the capture, and lets another handle capture.
  private func leave() {
    restoreChanges()
    device.calls.handles.endCapture(device.handle)
    device.handle.giveUpSettings()
  }

  /// Restores the controls that were changed until the end of the capture.
  package func restoreChanges() { device.handle.restoreChanges() }

  /// Queues the buffers and starts the stream: `VIDIOC_QBUF`, `VIDIOC_STREAMON`.
  ///
  /// Frames dequeued before an earlier stop become invalid, except those of held buffers.
  ///
  /// - Parameter held: The indices of buffers that the caller still uses and that are not queued.
  /// - Throws: ``DeviceError`` for `.giveBack` or `.start`: `.noBandwidth` when the bus cannot
  ///   carry the mode, `.busy`, `.unplugged`.
  package func start(keeping held: [Int] = []) throws(DeviceError) {
    do throws(DeviceError) {
      for index in buffers.indices where !held.contains(index) { try giveBack(index) }
      var type = device.bufferType
      try DeviceError.check(device.control(CVideo4Linux_VIDIOC_STREAMON, &type), .start, path)
      device.calls.handles.setStreaming(true, path)
    } catch {
      // Without a stop, the driver would keep the buffers and reject them at the next start.
      try? stop()
      throw error
    }
  }

  /// Stops the stream: `VIDIOC_STREAMOFF`.
  ///
  /// All buffers return to this process.
  ///
  /// - Throws: ``DeviceError`` for `.stop`.
  package func stop() throws(DeviceError) {
    device.calls.handles.setStreaming(false, path)
    var type = device.bufferType
    try DeviceError.check(device.control(CVideo4Linux_VIDIOC_STREAMOFF, &type), .stop, path)
  }

  /// Releases the driver's buffers, so that another format can be set.
  ///
  /// Calls `VIDIOC_REQBUFS` with a count of 0. The mapped memory stays valid until `deinit`.
  ///
  /// - Throws: ``DeviceError`` for `.requestBuffers`. `.busy` on kernels before 5.0, which cannot
  ///   release mapped buffers.
  package func free() throws(DeviceError) {
    leave()
    var request = v4l2_requestbuffers()
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try DeviceError.check(
      device.control(CVideo4Linux_VIDIOC_REQBUFS, &request), .requestBuffers, path)
  }

  /// Detaches from an unplugged device, so that its node can reappear.
  ///
  /// No buffer may be in use, because its memory becomes zeros. Later requests fail.
  package func abandon() { device.abandon(buffers.flatMap(\.mapped)) }

  /// Subscribes to changes of a control; ``dequeue(timeoutMilliseconds:onChange:)`` reports them.
  ///
  /// Changes through this handle are included, because other parts of this program share it.
  ///
  /// - Throws: ``DeviceError`` for `.subscribe`, as ``VideoDevice/subscribe(to:)`` does.
  package func subscribe(to control: ControlID) throws(DeviceError) {
    try device.subscribe(to: .control(control, includesOwn: true))
  }

  /// Discards the changes that were reported and not read yet.
  package func discardChanges() { while device.pendingEvent() != nil {} }

  /// Waits for the next frame: poll(2), then one `VIDIOC_DQBUF`.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: The timeout; 0 does not wait, a negative value waits without limit.
  ///   - onChange: Called for a change of a subscribed control.
  /// - Returns: The frame; nil after the timeout, a control change alone, or a signal.
  /// - Throws: ``DeviceError`` for `.wait` or `.dequeue`: `.unplugged`, or `EIO` when the driver
  ///   stopped streaming and needs a restart.
  package func dequeue(
    timeoutMilliseconds: Int32, onChange: (DeviceEvent.ControlChange) -> Void = { _ in }
  ) throws(DeviceError) -> Dequeued? {
    let events = device.poll(
      events: CShort(POLLIN | POLLPRI), milliseconds: timeoutMilliseconds)
    try DeviceError.check(events, .wait, path)
    if events & CInt(POLLPRI) != 0, case .control(let change)? = device.pendingEvent()?.kind {
      onChange(change)
    }
    guard events & ~CInt(POLLPRI) != 0 else { return nil }
    // One DQBUF per poll. A second one without a frame would make libv4l2 log an error.
    let (result, frame) = device.ask(CVideo4Linux_VIDIOC_DQBUF, buffer: 0) {
      (result, buffer, planes) -> (CInt, Dequeued?) in
      guard result >= 0, buffers.indices.contains(Int(buffer.index)) else { return (result, nil) }
      return (result, Dequeued(buffer, bytes: buffers[Int(buffer.index)].frame(planes)))
    }
    if result == -EAGAIN { return nil }
    try DeviceError.check(result, .dequeue, path)
    guard let frame else {
      throw DeviceError(.dequeue, path, code: EIO)  // The driver returned an unknown buffer index.
    }
    return frame
  }

  /// Returns a buffer to the driver: `VIDIOC_QBUF`.
  ///
  /// Callable from any thread.
  ///
  /// Some drivers reject a buffer once without cause, so the request is repeated once.
  ///
  /// - Throws: ``DeviceError`` for `.giveBack`: `EINVAL` for a buffer that is already queued or
  ///   does not exist; `.unplugged`.
  package func giveBack(_ index: Int) throws(DeviceError) {
    if queueBuffer(index) >= 0 { return }
    try DeviceError.check(queueBuffer(index), .giveBack, path)
  }

  private func queueBuffer(_ index: Int) -> CInt {
    device.ask(CVideo4Linux_VIDIOC_QBUF, buffer: UInt32(clamping: index)) {
      (result, _, _) in result
    }
  }
}

/// A dequeued frame, valid until its buffer is returned.
package struct Dequeued {
  /// The clock of a driver's timestamps.
  package enum Clock: Sendable {
    /// `CLOCK_MONOTONIC`.
    case monotonic
    /// Copied from the output frames, as memory-to-memory devices do.
    case copied
    /// The driver does not declare its clock.
    case unknown
  }

  /// The index of the buffer, for ``BufferQueue/giveBack(_:)``.
  package let index: Int
  /// The frame's bytes, clamped to the mapped memory.
  package let bytes: UnsafeRawBufferPointer
  /// The driver's frame counter, which wraps at 2^32.
  package let sequence: UInt32
  /// The driver's timestamp in microseconds; overflow wraps.
  package let microseconds: Int64
  /// The buffer's flags, `V4L2_BUF_FLAG_…`.
  package let flags: UInt32

  init(_ buffer: v4l2_buffer, bytes: UnsafeRawBufferPointer) {
    index = Int(buffer.index)
    self.bytes = bytes
    sequence = buffer.sequence
    microseconds =
      Int64(buffer.timestamp.tv_sec) &* 1_000_000 &+ Int64(buffer.timestamp.tv_usec)
    flags = buffer.flags
  }

  /// Whether the driver marked the frame as damaged (V4L2_BUF_FLAG_ERROR).
  package var isError: Bool { flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0 }

  /// The clock of the timestamp; the same for every frame of a stream.
  package var clock: Clock {
    switch flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) {
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC): .monotonic
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_COPY): .copied
    default: .unknown
    }
  }
}
