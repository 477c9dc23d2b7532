// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore
package import OvercrankRaster

/// A streaming queue of driver buffers, mapped into this process.
///
/// The queue owns the device and the mapped memory, and releases both on `deinit`. One thread
/// dequeues. Any thread may return buffers. No call allocates memory per frame.
///
/// Frames are read directly from driver memory. If a format has several memory planes, they are
/// copied into one buffer that is allocated in advance.
package final class BufferQueue: ControlChannel, Sendable {
  /// The number of buffers to request, which is the maximum of most kernels (`VIDEO_MAX_FRAME`).
  ///
  /// At 240 fps, 32 buffers hold 133 ms of video. A reader that is delayed for longer loses frames.
  package static let usualCount: UInt32 = 32

  /// The path of the device node.
  package var path: String { device.path }
  /// The name of the device's driver.
  package var driver: String { device.capabilities.driver }
  /// The number of buffers that the driver granted.
  ///
  /// It may differ from the requested number.
  package var count: Int { buffers.count }
  /// The capacity of the smallest buffer, in bytes.
  package var bytesPerBuffer: Int { buffers.lazy.map(\.capacity).min() ?? 0 }

  /// Makes an ioctl request on the streaming device.
  ///
  /// May be called from any thread.
  package func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    device.control(request, &argument)
  }

  /// Requests a frame duration while the stream is off.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setFrameDuration`.
  package func setFrameDuration(_ duration: MediaTime) throws(CallFailure) -> MediaTime {
    try device.setFrameDuration(duration)
  }

  /// The current time of the driver's timestamp clock, in nanoseconds.
  package func nanoseconds() -> Int64 { device.calls.nanoseconds() }

  let device: VideoDevice
  // Sharing the array of buffers between threads is safe. The array is written only in the
  // initializer, and the memory of a buffer is used only by the caller that dequeued the buffer.
  private nonisolated(unsafe) let buffers: [MappedBuffer]

  /// Takes ownership of the device and requests buffers from its driver.
  ///
  /// The system calls are `VIDIOC_REQBUFS`, `VIDIOC_QUERYBUF` and mmap(2).
  ///
  /// - Parameters:
  ///   - device: The device, with its format already set.
  ///   - count: The number of buffers to request.
  ///   - joining: For formats with several memory planes, the number of bytes to copy from each
  ///     plane. The copies form one contiguous frame. Empty for formats with one plane.
  /// - Throws: ``CallFailure`` with the operation `.requestBuffers` or `.mapBuffer`. The reason is
  ///   `.busy` if another program streams. The code is `ENOMEM` if the driver grants no buffer, and
  ///   `ENOTSUP` if `joining` does not match the planes.
  package init(
    _ device: consuming VideoDevice, count: UInt32 = usualCount, joining: [Int] = []
  ) throws(CallFailure) {
    var request = v4l2_requestbuffers()
    request.count = count
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try CallFailure.check(
      device.control(CVideo4Linux_VIDIOC_REQBUFS, &request), .requestBuffers, device.path)
    guard request.count > 0 else {
      throw CallFailure(.requestBuffers, device.path, code: ENOMEM)
    }
    var buffers: [MappedBuffer] = []
    do throws(CallFailure) {
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

  /// Ends the capture: restores the controls that were changed for the capture, removes the capture
  /// from the shared handles, and releases the priority `.record` that was kept until now.
  private func leave() {
    restoreChanges()
    device.calls.handles.endCapture(device.handle)
    device.handle.giveUpSettings()
  }

  /// Sets a control until ``restoreChanges()`` or the end of the capture.
  ///
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.readControl` or `.setControl`.
  @discardableResult
  package func setDuringCapture(
    _ control: DeviceControl, to number: Int64
  ) throws(CallFailure) -> Int64 {
    try device.handle.change(control, to: .number(number), through: device.handle).number ?? number
  }

  /// Restores the controls that were changed for the duration of the capture.
  package func restoreChanges() { device.handle.restoreChanges() }

  /// Queues the buffers and starts the stream: `VIDIOC_QBUF`, `VIDIOC_STREAMON`.
  ///
  /// A frame that was dequeued before an earlier stop becomes invalid, unless its buffer is held.
  ///
  /// - Parameter held: The indices of buffers that the caller still uses. They are not queued.
  /// - Throws: ``CallFailure`` with the operation `.giveBack` or `.start`. The reason is
  ///   `.noBandwidth` if the bus cannot carry the mode, or for example `.busy` or `.unplugged`.
  package func start(keeping held: [Int] = []) throws(CallFailure) {
    do throws(CallFailure) {
      for index in buffers.indices where !held.contains(index) { try giveBack(index) }
      var type = device.bufferType
      try CallFailure.check(device.control(CVideo4Linux_VIDIOC_STREAMON, &type), .start, path)
      device.calls.handles.setStreaming(true, path)
    } catch {
      // Without this stop after a failed start, the driver would keep the buffers that were already
      // queued, and would reject them at the next start.
      try? stop()
      throw error
    }
  }

  /// Stops the stream: `VIDIOC_STREAMOFF`.
  ///
  /// The driver no longer fills any buffer.
  ///
  /// - Throws: ``CallFailure`` with the operation `.stop`.
  package func stop() throws(CallFailure) {
    device.calls.handles.setStreaming(false, path)
    var type = device.bufferType
    try CallFailure.check(device.control(CVideo4Linux_VIDIOC_STREAMOFF, &type), .stop, path)
  }

  /// The driver's memory that contains the frames of the buffer with an index, or nil if frames are
  /// copied to other memory.
  func frameMemory(_ index: Int) -> UnsafeRawBufferPointer? {
    buffers.indices.contains(index) ? buffers[index].frameMemory : nil
  }

  /// Releases the driver's buffers, so that another format can be set.
  ///
  /// Calls `VIDIOC_REQBUFS` with a count of 0. The mapped memory stays valid until `deinit`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.requestBuffers`. The kind is `.busy` on
  ///   kernels before 5.0, which cannot release mapped buffers.
  package func free() throws(CallFailure) {
    leave()
    var request = v4l2_requestbuffers()
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try CallFailure.check(
      device.control(CVideo4Linux_VIDIOC_REQBUFS, &request), .requestBuffers, path)
  }

  /// Detaches from an unplugged device, so that its node can reappear.
  ///
  /// The driver's memory is unmapped, and zeros are mapped at the same addresses. So call this only
  /// when no buffer is in use. Later requests fail.
  package func abandon() { device.abandon(buffers.flatMap(\.mapped)) }

  /// Subscribes to changes of a control, which ``dequeue(timeoutMilliseconds:onChange:)`` reports.
  ///
  /// Changes made through this handle are reported too, because other parts of this program share
  /// it.
  ///
  /// - Throws: ``CallFailure`` as ``VideoDevice/subscribe(to:)`` does.
  package func subscribe(to control: ControlID) throws(CallFailure) {
    try device.subscribe(to: .control(control, includesOwn: true))
  }

  /// Discards the control changes that the driver has reported and that were not read yet.
  package func discardChanges() { while device.pendingEvent() != nil {} }

  /// Waits for the next frame: poll(2), then one `VIDIOC_DQBUF`.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: The timeout. 0 does not wait, and a negative value waits without
  ///     limit.
  ///   - onChange: Called for a change of a subscribed control.
  /// - Returns: The frame. Nil after the timeout, after a signal, or if only a control changed.
  /// - Throws: ``CallFailure`` with the operation `.wait` or `.dequeue`. The kind is `.unplugged`
  ///   if the device is gone. The code is `EIO` if the driver has stopped the stream and needs a
  ///   restart.
  package func dequeue(
    timeoutMilliseconds: Int32, onChange: (DeviceEvent.ControlChange) -> Void = { _ in }
  ) throws(CallFailure) -> Dequeued? {
    let events = device.poll(
      events: CShort(POLLIN | POLLPRI), milliseconds: timeoutMilliseconds)
    try CallFailure.check(events, .wait, path)
    if events & CInt(POLLPRI) != 0, case .control(let change)? = device.pendingEvent()?.kind {
      onChange(change)
    }
    guard events & ~CInt(POLLPRI) != 0 else { return nil }
    // Only one frame is dequeued per poll, even if more are ready. libv4l2 logs an error for a
    // `VIDIOC_DQBUF` that finds no frame.
    let (result, frame) = device.ask(CVideo4Linux_VIDIOC_DQBUF, buffer: 0) {
      (result, buffer, planes) -> (CInt, Dequeued?) in
      guard result >= 0, buffers.indices.contains(Int(buffer.index)) else { return (result, nil) }
      return (result, Dequeued(buffer, bytes: buffers[Int(buffer.index)].frame(planes)))
    }
    if result == -EAGAIN { return nil }
    try CallFailure.check(result, .dequeue, path)
    guard let frame else {
      throw CallFailure(.dequeue, path, code: EIO)  // The driver returned an unknown buffer index.
    }
    return frame
  }

  /// Returns a buffer to the driver: `VIDIOC_QBUF`.
  ///
  /// May be called from any thread.
  ///
  /// Some drivers reject a buffer once for no reason, so a rejected request is repeated once.
  ///
  /// - Throws: ``CallFailure`` with the operation `.giveBack`. The code is `EINVAL` if the buffer
  ///   is already queued or does not exist. The kind is `.unplugged` if the device is gone.
  package func giveBack(_ index: Int) throws(CallFailure) {
    if queueBuffer(index) >= 0 { return }
    try CallFailure.check(queueBuffer(index), .giveBack, path)
  }

  private func queueBuffer(_ index: Int) -> CInt {
    device.ask(CVideo4Linux_VIDIOC_QBUF, buffer: UInt32(clamping: index)) {
      (result, _, _) in result
    }
  }
}

/// A dequeued frame, valid until its buffer is returned to the driver.
package struct Dequeued {
  /// The clock of a driver's timestamps.
  package enum Clock: Sendable {
    /// `CLOCK_MONOTONIC`.
    case monotonic
    /// The clock of another device. Memory-to-memory devices copy the timestamps of the frames they
    /// receive.
    case copied
    /// The driver does not declare its clock.
    case unknown
  }

  /// The index of the buffer, for ``BufferQueue/giveBack(_:)``.
  package let index: Int
  /// The frame's bytes, without any part that exceeds the mapped memory.
  package let bytes: UnsafeRawBufferPointer
  /// The driver's frame counter, which wraps at 2^32.
  package let sequence: UInt32
  /// The driver's timestamp in microseconds.
  ///
  /// A value that does not fit 64 bits wraps around.
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

  /// Whether the driver returned the buffer without a frame.
  ///
  /// `uvcvideo` returns all its buffers in this way if a transfer fails, and then continues. The
  /// buffers do not count as frames, because the camera made none for them.
  package var isCancelled: Bool { isError && bytes.isEmpty && microseconds == 0 }

  /// The clock of the timestamp.
  ///
  /// It is the same for every frame of a stream.
  package var clock: Clock {
    switch flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) {
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC): .monotonic
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_COPY): .copied
    default: .unknown
    }
  }
}

extension BufferQueue {
  /// Reads the crop rectangle, which is the part of the captured image that the frames contain:
  /// `VIDIOC_G_SELECTION` with `V4L2_SEL_TGT_CROP`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.readCrop`. The kind is `.notSupported` if the
  ///   driver cannot crop.
  package func crop() throws(CallFailure) -> PixelRect {
    var selection = selection()
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_G_SELECTION, &selection), .readCrop, path)
    return PixelRect(selection.r)
  }

  /// Sets the crop rectangle, which is the part of the captured image that the frames contain:
  /// `VIDIOC_S_SELECTION`.
  ///
  /// May be called while the stream is on.
  ///
  /// - Returns: The crop rectangle that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.setCrop`. The kind is `.busy` if the driver
  ///   would have to change the format.
  package func setCrop(_ crop: PixelRect) throws(CallFailure) -> PixelRect {
    var selection = selection()
    selection.r = v4l2_rect(crop)
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_S_SELECTION, &selection), .setCrop, path)
    return PixelRect(selection.r)
  }

  /// The current format: `VIDIOC_G_FMT`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.readFormat`.
  package func currentFormat() throws(CallFailure) -> StreamFormat { try device.currentFormat() }

  private func selection() -> v4l2_selection {
    var selection = v4l2_selection()
    // The single-planar type is used for multi-planar nodes too: Linux 4.13 and later accept
    // either.
    selection.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    selection.target = UInt32(V4L2_SEL_TGT_CROP)
    return selection
  }
}

extension PixelRect {
  /// Creates a rectangle of the pixels of a sensor or signal.
  init(_ rectangle: v4l2_rect) {
    self.init(
      x: Int(rectangle.left), y: Int(rectangle.top), width: Int(rectangle.width),
      height: Int(rectangle.height))
  }
}

extension v4l2_rect {
  init(_ rectangle: PixelRect) {
    self.init(
      left: Int32(clamping: rectangle.x), top: Int32(clamping: rectangle.y),
      width: UInt32(clamping: rectangle.width), height: UInt32(clamping: rectangle.height))
  }
}

/// The mapped memory of one driver buffer and, for several planes, the memory into which they are
/// copied.
struct MappedBuffer {
  private let planes: [UnsafeMutableRawBufferPointer]
  /// The number of bytes to copy from each plane.
  ///
  /// Empty for a single plane, which is used in place.
  private let joined: [Int]
  private let joinedMemory: UnsafeMutableRawBufferPointer

  /// Maps a buffer: `VIDIOC_QUERYBUF`, then mmap(2) for each plane.
  ///
  /// - Throws: ``CallFailure`` with the operation `.mapBuffer`.
  init(
    _ index: UInt32, of device: borrowing VideoDevice, joining: [Int]
  ) throws(CallFailure) {
    let (result, extents) = device.ask(CVideo4Linux_VIDIOC_QUERYBUF, buffer: index) {
      (result, _, planes) -> (CInt, [(length: Int, offset: Int64)]) in
      (result, planes.map { (Int($0.length), Int64($0.m.mem_offset)) })
    }
    try CallFailure.check(result, .mapBuffer, device.path)
    // A single plane is not copied. For several planes, `joining` must contain one size for each
    // plane.
    guard extents.count == max(1, joining.count), joining.allSatisfy({ $0 >= 0 }) else {
      throw CallFailure(.mapBuffer, device.path, code: ENOTSUP)
    }
    var planes: [UnsafeMutableRawBufferPointer] = []
    do throws(CallFailure) {
      for position in extents {
        planes.append(try device.map(length: position.length, offset: position.offset))
      }
    } catch {
      for plane in planes { device.calls.unmap(plane) }
      throw error
    }
    self.planes = planes
    joined = joining.count > 1 ? joining : []
    joinedMemory =
      joined.isEmpty
      ? UnsafeMutableRawBufferPointer(start: nil, count: 0)
      : .allocate(byteCount: max(1, joined.reduce(0, +)), alignment: 64)
  }

  /// Releases the memory.
  ///
  /// Call this exactly once.
  func unmap(_ calls: any VideoSystemCalls) {
    for plane in planes { calls.unmap(plane) }
    joinedMemory.deallocate()
  }

  /// The driver's memory that contains the frames, or nil if frames are copied out of several
  /// planes.
  var frameMemory: UnsafeRawBufferPointer? {
    joined.isEmpty ? planes.first.map { UnsafeRawBufferPointer($0) } : nil
  }

  /// The memory mapped from the driver.
  var mapped: [UnsafeMutableRawBufferPointer] { planes }

  /// The maximum size of a frame in bytes.
  var capacity: Int { joined.isEmpty ? planes.first?.count ?? 0 : joinedMemory.count }

  /// Returns the frame as one contiguous buffer, into which several planes are copied.
  ///
  /// If a plane has fewer bytes than expected, the frame ends after them. The caller then sees that
  /// the frame is too short.
  func frame(_ answers: UnsafeBufferPointer<v4l2_plane>) -> UnsafeRawBufferPointer {
    guard !joined.isEmpty else {
      guard let plane = planes.first, let answer = answers.first else {
        return UnsafeRawBufferPointer(start: nil, count: 0)
      }
      return answer.payload(in: UnsafeRawBufferPointer(plane))
    }
    var end = 0
    for index in joined.indices where index < answers.count {
      let payload = answers[index].payload(in: UnsafeRawBufferPointer(planes[index]))
      let count = min(joined[index], payload.count)
      UnsafeMutableRawBufferPointer(rebasing: joinedMemory[end...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: payload.prefix(count)))
      end += count
      guard count == joined[index] else { break }
    }
    return UnsafeRawBufferPointer(rebasing: joinedMemory.prefix(end))
  }
}

/// The two V4L2 buffer APIs, single-planar and multi-planar.
///
/// All other code works with planes; a single-planar buffer has one plane. Only this file handles
/// how the requests of the two APIs differ.
package enum BufferKind: Hashable, Sendable {
  /// One memory block for each buffer, described by the `v4l2_buffer` itself.
  case singlePlanar
  /// One or more memory blocks for each buffer, each described by a `v4l2_plane`.
  case multiPlanar

  /// The `V4L2_BUF_TYPE_…` value for requests with this buffer API.
  var type: UInt32 {
    switch self {
    case .singlePlanar: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    case .multiPlanar: V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue
    }
  }
}

extension VideoDevice {
  /// Makes a buffer request and passes the result to a closure, without allocating memory.
  ///
  /// - Parameters:
  ///   - request: `VIDIOC_QUERYBUF`, `VIDIOC_QBUF` or `VIDIOC_DQBUF`.
  ///   - index: The buffer index. `VIDIOC_DQBUF` ignores it.
  ///   - read: Receives the result (a value or a negative errno), the buffer and its planes. The
  ///     planes are valid only inside the closure, and only after success.
  /// - Returns: The result of `read`.
  borrowing func ask<Answer>(
    _ request: UInt, buffer index: UInt32,
    _ read: (CInt, v4l2_buffer, UnsafeBufferPointer<v4l2_plane>) -> Answer
  ) -> Answer {
    var buffer = v4l2_buffer()
    buffer.index = index
    buffer.type = bufferType
    buffer.memory = V4L2_MEMORY_MMAP.rawValue
    switch capabilities.bufferKind {
    case .singlePlanar:
      let result = control(request, &buffer)
      var plane = v4l2_plane()
      plane.bytesused = buffer.bytesused
      plane.length = buffer.length
      plane.m.mem_offset = buffer.m.offset
      return withUnsafePointer(to: plane) {
        read(result, buffer, UnsafeBufferPointer(start: $0, count: 1))
      }
    case .multiPlanar:
      let space = Int(VIDEO_MAX_PLANES)
      return withUnsafeTemporaryAllocation(of: v4l2_plane.self, capacity: space) { planes in
        planes.initialize(repeating: v4l2_plane())
        buffer.m.planes = planes.baseAddress
        buffer.length = UInt32(space)
        let result = control(request, &buffer)
        // The array of planes has space for the maximum number. The driver returns the actual
        // number.
        let count = min(space, Int(buffer.length))
        return read(result, buffer, UnsafeBufferPointer(rebasing: planes.prefix(count)))
      }
    }
  }
}

extension v4l2_plane {
  /// The bytes of the frame in the plane's memory, without any part that lies outside the mapped
  /// memory.
  ///
  /// `bytesused` counts from the start of the memory and includes the header of `data_offset`
  /// bytes, so the header is skipped.
  func payload(in memory: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let end = min(memory.count, Int(bytesused))
    let start = min(end, Int(data_offset))
    return UnsafeRawBufferPointer(rebasing: memory[start..<end])
  }
}
