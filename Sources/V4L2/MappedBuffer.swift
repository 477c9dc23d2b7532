// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// The memory of one of a driver's buffers, and of what its planes are joined in.
struct MappedBuffer {
  private let planes: [UnsafeMutableRawBufferPointer]
  /// The bytes to take of each plane; empty where the one plane is given in place.
  private let joined: [Int]
  private let joinedMemory: UnsafeMutableRawBufferPointer

  /// Maps a buffer: `VIDIOC_QUERYBUF`, then mmap(2) for each plane.
  ///
  /// - Throws: ``DeviceError`` for `.mapBuffer`.
  init(
    _ index: UInt32, of device: borrowing VideoDevice, joining: [Int]
  ) throws(DeviceError) {
    let (result, places) = device.ask(CVideo4Linux_VIDIOC_QUERYBUF, buffer: index) {
      (result, _, planes) -> (CInt, [(length: Int, offset: Int64)]) in
      (result, planes.map { (Int($0.length), Int64($0.m.mem_offset)) })
    }
    try DeviceError.check(result, .mapBuffer, device.path)
    // One plane needs no joining; several, or none, do not make a frame without it.
    guard places.count == max(1, joining.count), joining.allSatisfy({ $0 >= 0 }) else {
      throw DeviceError(.mapBuffer, device.path, code: ENOTSUP)
    }
    var planes: [UnsafeMutableRawBufferPointer] = []
    do throws(DeviceError) {
      for position in places {
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

  /// Gives the memory back; to be called once.
  func unmap(_ calls: any VideoSystemCalls) {
    for plane in planes { calls.unmap(plane) }
    joinedMemory.deallocate()
  }

  /// The memory that is the driver's.
  var mapped: [UnsafeMutableRawBufferPointer] { planes }

  /// The most bytes that a frame takes.
  var capacity: Int { joined.isEmpty ? planes.first?.count ?? 0 : joinedMemory.count }

  /// The frame that the driver left in the planes, in one piece.
  ///
  /// A plane that is shorter than it should be ends the frame there, so that it is seen to be
  /// short.
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
