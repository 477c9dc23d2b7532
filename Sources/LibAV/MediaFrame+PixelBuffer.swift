// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

extension MediaFrame {
  /// Returns the bytes of all planes without padding, in the layout of `av_image_copy_to_buffer`.
  package func packedBytes() throws(CallFailure) -> [UInt8] {
    let count = try packedByteCount()
    var result: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      result = pack(
        into: UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]))
      written = max(0, min(count, Int(result)))
    }
    try CallFailure.check(result: result, "copy", "a picture")
    return bytes
  }

  /// Calls a function with consecutive parts of the bytes that ``packedBytes()`` would return.
  ///
  /// If ``isPacked`` is true, the parts are the planes themselves. Otherwise the only part is a
  /// copy of all planes.
  ///
  /// - Throws: The error of the function, or `CallFailure` with the operation "measure" or "copy".
  package func withPackedParts(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let planes = try PixelBuffer.packedPlanes(pixelFormat, width: width, height: height)
    guard isPacked(planes) else { return try packedBytes().withUnsafeBytes(body) }
    for (number, plane) in planes.enumerated() {
      try body(
        UnsafeRawBufferPointer(
          start: planeData(number), count: plane.bytesPerRow * plane.rowCount))
    }
  }

  /// Whether no plane has padding between its rows.
  package var isPacked: Bool {
    let planes = try? PixelBuffer.packedPlanes(pixelFormat, width: width, height: height)
    return planes.map(isPacked) ?? false
  }

  private func isPacked(_ planes: [PixelBuffer.Plane]) -> Bool {
    planes.indices.allSatisfy {
      planeData($0) != nil && bytesPerRow($0) == planes[$0].bytesPerRow
    }
  }

  /// Copies the frame into a buffer, in the frame's pixel format.
  ///
  /// If the buffer already has the frame's size, its memory is reused.
  ///
  /// - Throws: `CallFailure` with the operation "measure" or "copy".
  package func copy(into buffer: inout PixelBuffer) throws(CallFailure) {
    if buffer.width != width || buffer.height != height {
      try buffer.resize(pixelFormat, width: width, height: height)
    }
    try CallFailure.check(result: buffer.withUnsafeMutableBytes(pack), "copy", "a picture")
  }

  /// Copies all planes without padding into memory, and returns the number of bytes.
  ///
  /// - Throws: `CallFailure` with the operation "copy" if the memory is too small.
  package func copyPlanes(
    into target: UnsafeMutableRawBufferPointer
  ) throws(CallFailure) -> Int {
    let count = pack(into: target)
    try CallFailure.check(result: count, "copy", "a picture")
    return Int(count)
  }

  /// The number of bytes of all planes without padding.
  ///
  /// - Throws: `CallFailure` with the operation "measure".
  package func packedByteCount() throws(CallFailure) -> Int {
    try PixelBuffer.packedByteCount(pixelFormat, width: width, height: height)
  }

  /// Copies all planes without padding into `target`.
  ///
  /// - Returns: The number of bytes, or a negative FFmpeg error.
  private func pack(into target: UnsafeMutableRawBufferPointer) -> Int32 {
    let frame = pointer
    return withUnsafePointer(to: &frame.pointee.data) { data in
      data.withMemoryRebound(to: UnsafePointer<UInt8>?.self, capacity: 8) { planes in
        withUnsafePointer(to: &frame.pointee.linesize) { lines in
          lines.withMemoryRebound(to: Int32.self, capacity: 8) { strides in
            av_image_copy_to_buffer(
              target.bindMemory(to: UInt8.self).baseAddress, Int32(clamping: target.count), planes,
              strides, pixelFormat, frame.pointee.width, frame.pointee.height, 1)
          }
        }
      }
    }
  }
}

extension PixelBuffer {
  /// Creates an image whose bytes are all zero.
  ///
  /// - Throws: `CallFailure` with the operation "measure" for a format or size that libav does not
  ///   support.
  package init(_ format: LibAVPixelFormat, width: Int, height: Int) throws(CallFailure) {
    self.init(format: PixelFormat(rawValue: format.name))
    try resize(format, width: width, height: height)
  }

  fileprivate mutating func resize(
    _ format: LibAVPixelFormat, width: Int, height: Int
  ) throws(CallFailure) {
    let count = try Self.packedByteCount(format, width: width, height: height)
    resize(
      width: width, height: height,
      planes: try Self.packedPlanes(format, width: width, height: height), byteCount: count)
  }

  fileprivate static func packedByteCount(
    _ format: LibAVPixelFormat, width: Int, height: Int
  ) throws(CallFailure) -> Int {
    let size = LibAVLog.during {
      av_image_get_buffer_size(format, Int32(clamping: width), Int32(clamping: height), 1)
    }
    try CallFailure.check(result: size, "measure", "an image")
    return Int(size)
  }

  fileprivate static func packedPlanes(
    _ format: LibAVPixelFormat, width: Int, height: Int
  ) throws(CallFailure) -> [Plane] {
    var (strides, sizes) = ([Int32](repeating: 0, count: 4), [Int](repeating: 0, count: 4))
    try CallFailure.check(
      av_image_fill_linesizes(&strides, format, Int32(clamping: width)), "measure", "an image")
    try CallFailure.check(
      av_image_fill_plane_sizes(
        &sizes, format, Int32(clamping: height), strides.map { Int($0) }), "measure", "an image")
    var offset = 0
    return zip(strides, sizes).prefix { $0.1 > 0 }.map { stride, size in
      defer { offset += size }
      return Plane(
        offset: offset, bytesPerRow: Int(stride), rowCount: stride > 0 ? size / Int(stride) : 1)
    }
  }
}
