// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankMediaCore

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
