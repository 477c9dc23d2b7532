// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// The buffers that a driver fills in turn, mapped into this process.
///
/// It owns the device and the mappings, and unmaps and closes when it goes. One thread
/// dequeues; buffers may be given back from any thread. Nothing is allocated for a frame.
///
/// A frame is read where the driver put it. Only formats that lie in several pieces of memory
/// are copied, into memory that each buffer has for that from the beginning.
package final class BufferQueue: ControlChannel, Sendable {
  /// What most kernels give at most (`VIDEO_MAX_FRAME`): 133 ms of 240 fps.
  package static let usualCount: UInt32 = 32

  /// The node the frames come from.
  package var path: String { device.path }
  /// How many buffers the driver gave, which may be fewer or more than asked for.
  package var count: Int { buffers.count }
  /// The most bytes that a frame of the smallest buffer takes.
  package var bytesPerBuffer: Int { buffers.lazy.map(\.capacity).min() ?? 0 }

  /// Makes a request of the device while it streams, from any thread.
  package func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    device.control(request, &argument)
  }

  /// Asks for a frame duration while the stream is off, as the device itself would.
  ///
  /// - Throws: ``DeviceError`` for `.setFrameDuration`.
  package func setFrameDuration(_ duration: MediaTime) throws(DeviceError) -> MediaTime {
    try device.setFrameDuration(duration)
  }

  /// The clock that the driver's times are of, in nanoseconds.
  package func nanoseconds() -> Int64 { device.calls.nanoseconds() }

  private let device: VideoDevice
  // Written in the initialiser only. What the memory holds belongs to whoever dequeued it.
  private nonisolated(unsafe) let buffers: [MappedBuffer]

  /// Takes the device over, and asks its driver for buffers.
  ///
  /// The corresponding requests are `VIDIOC_REQBUFS`, `VIDIOC_QUERYBUF` and mmap(2).
  ///
  /// - Parameters:
  ///   - device: The device, set to its format.
  ///   - count: How many buffers to ask for.
  ///   - joining: Where a frame lies in several planes of memory, the bytes to take of each, in
  ///     order; the frame is then given as one piece. Empty for formats of one plane.
  /// - Throws: ``DeviceError`` for `.requestBuffers` (`.busy` when another program streams,
  ///   `ENOMEM` when the driver has none to give) or `.mapBuffer` (`ENOTSUP` for planes that
  ///   nobody said how to join).
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
  }

  deinit {
    // Before the device, which closes after this.
    for buffer in buffers { buffer.unmap(device.calls) }
  }

  /// Hands every buffer to the driver and starts the stream: `VIDIOC_QBUF`, `VIDIOC_STREAMON`.
  ///
  /// Bytes dequeued before an earlier stop are overwritten from here on, but for those of the
  /// buffers that are still held.
  ///
  /// - Parameter held: The numbers of the buffers that are not to be handed over.
  /// - Throws: ``DeviceError`` for `.giveBack` or `.start`: `.noBandwidth` when the bus cannot
  ///   carry the mode, `.busy`, `.unplugged`.
  package func start(keeping held: [Int] = []) throws(DeviceError) {
    do throws(DeviceError) {
      for index in buffers.indices where !held.contains(index) { try giveBack(index) }
      var type = device.bufferType
      try DeviceError.check(device.control(CVideo4Linux_VIDIOC_STREAMON, &type), .start, path)
    } catch {
      // Otherwise the driver would keep the buffers, and refuse them at the next start.
      try? stop()
      throw error
    }
  }

  /// Ends the stream; all buffers are this process's again: `VIDIOC_STREAMOFF`.
  ///
  /// - Throws: ``DeviceError`` for `.stop`.
  package func stop() throws(DeviceError) {
    var type = device.bufferType
    try DeviceError.check(device.control(CVideo4Linux_VIDIOC_STREAMOFF, &type), .stop, path)
  }

  /// Takes the buffers from the driver, so that it may be set to another format.
  ///
  /// The request is `VIDIOC_REQBUFS` of none. Their memory stays until this goes.
  ///
  /// - Throws: ``DeviceError`` for `.requestBuffers`: `.busy` by kernels before 5.0, which keep
  ///   buffers that are mapped.
  package func free() throws(DeviceError) {
    var request = v4l2_requestbuffers()
    request.type = device.bufferType
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try DeviceError.check(
      device.control(CVideo4Linux_VIDIOC_REQBUFS, &request), .requestBuffers, path)
  }

  /// Detaches from an unplugged device, so that its node can reappear.
  ///
  /// No buffer may be held: the memory is zeros from then on. Requests fail.
  package func abandon() { device.abandon(buffers.flatMap(\.mapped)) }

  /// Asks to be told, while frames are waited for, of the changes that others make to a control.
  ///
  /// - Throws: ``DeviceError`` for `.subscribe`, as ``VideoDevice/subscribe(to:)`` does.
  package func subscribe(to control: ControlID) throws(DeviceError) {
    try device.subscribe(to: .control(control))
  }

  /// Waits for the next frame: poll(2), then one `VIDIOC_DQBUF`.
  ///
  /// - Parameters:
  ///   - timeoutMilliseconds: The time limit; 0 does not wait, below 0 waits for ever.
  ///   - onChange: Called for a change of a control that was asked for with ``subscribe(to:)``.
  /// - Returns: The frame, or nil at the time limit, after a change alone, or when a signal ended
  ///   the wait.
  /// - Throws: ``DeviceError`` for `.wait` or `.dequeue`: `.unplugged`; `EIO` when the driver
  ///   gave up, after which only a new start helps.
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
    // One for each poll: a second, which finds nothing, makes libv4l2 log an error.
    let (result, frame) = device.ask(CVideo4Linux_VIDIOC_DQBUF, buffer: 0) {
      (result, buffer, planes) -> (CInt, Dequeued?) in
      guard result >= 0, buffers.indices.contains(Int(buffer.index)) else { return (result, nil) }
      return (result, Dequeued(buffer, bytes: buffers[Int(buffer.index)].frame(planes)))
    }
    if result == -EAGAIN { return nil }
    try DeviceError.check(result, .dequeue, path)
    guard let frame else {
      throw DeviceError(.dequeue, path, code: EIO)  // No buffer of ours: the driver is mad.
    }
    return frame
  }

  /// Gives a buffer back to the driver, from any thread: `VIDIOC_QBUF`.
  ///
  /// A driver may refuse a buffer once; a second refusal is meant.
  ///
  /// - Throws: ``DeviceError`` for `.giveBack`: `EINVAL` for a buffer that the driver has, or
  ///   that is none; `.unplugged`.
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

/// A frame of the driver's, until its buffer is given back.
package struct Dequeued {
  /// Which clock a driver's times are of.
  package enum Clock: Sendable {
    /// `CLOCK_MONOTONIC`.
    case monotonic
    /// Copied from the frames that were put in, as memory-to-memory devices do.
    case copied
    /// The driver does not say.
    case unknown
  }

  /// The buffer's number, to give it back by.
  package let index: Int
  /// The frame; never more than is mapped, whatever the driver says.
  package let bytes: UnsafeRawBufferPointer
  /// The driver's count of frames, which wraps.
  package let sequence: UInt32
  /// The driver's time in microseconds; one that does not fit wraps as the arithmetic does.
  package let microseconds: Int64
  /// The `V4L2_BUF_FLAG_…` of the buffer.
  package let flags: UInt32

  init(_ buffer: v4l2_buffer, bytes: UnsafeRawBufferPointer) {
    index = Int(buffer.index)
    self.bytes = bytes
    sequence = buffer.sequence
    microseconds =
      Int64(buffer.timestamp.tv_sec) &* 1_000_000 &+ Int64(buffer.timestamp.tv_usec)
    flags = buffer.flags
  }

  /// Whether the driver marks the frame as damaged.
  package var isError: Bool { flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0 }

  /// The clock of the time; the same for every frame of a stream.
  package var clock: Clock {
    switch flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) {
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC): .monotonic
    case UInt32(V4L2_BUF_FLAG_TIMESTAMP_COPY): .copied
    default: .unknown
    }
  }
}
