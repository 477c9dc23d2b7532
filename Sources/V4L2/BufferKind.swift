// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

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
