// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// The two ways in which V4L2 describes the memory of a picture.
///
/// Everything else asks about planes, of which a single-planar node has one: this file alone
/// knows that requests differ.
package enum BufferKind: Hashable, Sendable {
  /// One piece of memory, described by the buffer itself.
  case singlePlanar
  /// One or more pieces, each described by a `v4l2_plane`.
  case multiPlanar

  /// The type that requests carry.
  var type: UInt32 {
    switch self {
    case .singlePlanar: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    case .multiPlanar: V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue
    }
  }
}

extension VideoDevice {
  /// Makes a request about one of the driver's buffers, and lets the answer be read.
  ///
  /// Nothing is allocated.
  ///
  /// - Parameters:
  ///   - request: `VIDIOC_QUERYBUF`, `VIDIOC_QBUF` or `VIDIOC_DQBUF`.
  ///   - index: The buffer's number; ignored by `VIDIOC_DQBUF`.
  ///   - read: Takes the request's result, a value or a negative errno, and where it is a value
  ///     what the driver wrote of the buffer and its planes. The planes are gone afterwards.
  /// - Returns: What `read` made of them.
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
        // The driver writes how many there are; room is for as many as there may be.
        let count = min(space, Int(buffer.length))
        return read(result, buffer, UnsafeBufferPointer(rebasing: planes.prefix(count)))
      }
    }
  }
}

extension v4l2_plane {
  /// What of the plane's memory the frame takes; never more than is mapped.
  ///
  /// The bytes used count from the start of the memory, the header in front of the data
  /// included.
  func payload(in memory: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let end = min(memory.count, Int(bytesused))
    let start = min(end, Int(data_offset))
    return UnsafeRawBufferPointer(rebasing: memory[start..<end])
  }
}
