// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// The memory layout of an uncompressed frame in a driver's buffer.
struct FrameLayout {
  /// For each plane, the byte offset, the bytes per row (stride), the number of rows, and the used
  /// bytes per row.
  let planes: [(offset: Int, stride: Int, rows: Int, rowBytes: Int)]
  /// The number of bytes from the start of the buffer to the last used byte.
  let byteCount: Int

  private static let limit = 1 << 20

  init(
    width: Int, height: Int, pixelFormat: AVPixelFormat, bytesPerRow: Int
  ) throws(CallFailure) {
    // Devices do not exceed these limits of width, height and stride, and products of numbers
    // within the limits cannot overflow.
    guard let description = av_pix_fmt_desc_get(pixelFormat), (1...Self.limit).contains(width),
      (1...Self.limit).contains(height), (0...(Self.limit * 16)).contains(bytesPerRow)
    else {
      throw CallFailure("lay out", "a \(width)x\(height) frame", code: CFFmpeg_EINVAL)
    }
    var planes: [(offset: Int, stride: Int, rows: Int, rowBytes: Int)] = []
    var offset = 0
    var firstPacked = 0
    for plane in 0..<Int(max(0, av_pix_fmt_count_planes(pixelFormat))) {
      let packed = Int(av_image_get_linesize(pixelFormat, Int32(clamping: width), Int32(plane)))
      guard packed > 0 else {
        throw CallFailure("lay out", "a \(width)x\(height) frame", code: CFFmpeg_EINVAL)
      }
      if plane == 0 { firstPacked = packed }
      // V4L2 reports only the stride of the first plane. The other planes have proportional
      // strides.
      let stride = bytesPerRow > firstPacked ? packed * bytesPerRow / firstPacked : packed
      let isChroma = plane == 1 || plane == 2
      let shift = isChroma ? Int(description.pointee.log2_chroma_h) : 0
      let rows = (height + (1 << shift) - 1) >> shift
      planes.append((offset, stride, rows, packed))
      offset += stride * rows
    }
    guard let last = planes.last else {
      throw CallFailure("lay out", "a \(width)x\(height) frame", code: CFFmpeg_EINVAL)
    }
    self.planes = planes
    byteCount = last.offset + last.stride * (last.rows - 1) + last.rowBytes
  }
}

extension MediaFrame {
  /// The size of a frame in bytes, if neither rows nor planes are padded.
  ///
  /// Nil if `bytesPerRow` includes padding.
  package static func packedByteCount(
    width: Int, height: Int, pixelFormat: LibAVPixelFormat, bytesPerRow: Int
  ) -> Int? {
    guard
      let layout = try? FrameLayout(
        width: width, height: height, pixelFormat: pixelFormat, bytesPerRow: bytesPerRow),
      layout.planes.allSatisfy({ $0.stride == $0.rowBytes }),
      av_image_get_buffer_size(pixelFormat, Int32(width), Int32(height), 1) == layout.byteCount
    else { return nil }
    return layout.byteCount
  }

  /// The size in bytes of each plane of a frame with these strides.
  ///
  /// - Parameters:
  ///   - width: The width in pixels.
  ///   - height: The number of rows.
  ///   - pixelFormat: The pixel format.
  ///   - bytesPerRow: The stride of each plane in bytes.
  /// - Returns: The number of bytes of each plane.
  /// - Throws: `CallFailure` with the operation "lay out" if the strides are not proportional,
  ///   because the concatenated planes would then not form a frame.
  package static func planeByteCounts(
    width: Int, height: Int, pixelFormat: LibAVPixelFormat, bytesPerRow: [Int]
  ) throws(CallFailure) -> [Int] {
    let layout = try FrameLayout(
      width: width, height: height, pixelFormat: pixelFormat,
      bytesPerRow: bytesPerRow.first ?? 0)
    guard layout.planes.map({ $0.stride }) == bytesPerRow else {
      throw CallFailure("lay out", "a \(width)x\(height) frame", code: CFFmpeg_EINVAL)
    }
    return layout.planes.map { $0.stride * $0.rows }
  }

  /// Returns a copy of a larger frame of the same format, with this frame in the center.
  ///
  /// - Throws: `CallFailure` with the operation "crop" if this frame is larger than the other one,
  ///   or with the operation "copy".
  package func centered(on background: MediaFrame) throws(CallFailure) -> MediaFrame {
    let result = try background.copied()
    // The offsets are even, because chroma is shared by pairs of pixels.
    let window = try result.cropped(
      x: (result.width - width) / 4 * 2, y: (result.height - height) / 4 * 2, width: width,
      height: height)
    try CallFailure.check(
      av_frame_copy(window.pointer, pointer), "copy", "a \(width)x\(height) picture")
    return result
  }

  /// Returns the frame enlarged to a size by repeating its last column and row.
  ///
  /// If the frame is already large enough, returns the frame itself.
  ///
  /// - Throws: `CallFailure` with the operation "enlarge" if samples of the format are not whole
  ///   bytes.
  package func padded(width: Int, height: Int) throws(CallFailure) -> MediaFrame {
    guard width > self.width || height > self.height else { return self }
    guard let layout = PixelComponents(pixelFormat) else {
      throw CallFailure("enlarge", "a frame", code: CFFmpeg_EINVAL)
    }
    let result = try MediaFrame.video(width: width, height: height, pixelFormat: pixelFormat)
    for component in layout.components {
      let size = layout.size(of: component, width: self.width, height: self.height)
      let target = layout.size(of: component, width: width, height: height)
      guard let from = planeData(component.plane), let to = result.planeData(component.plane)
      else { continue }
      for row in 0..<target.height {
        let line = from + min(row, size.height - 1) * bytesPerRow(component.plane)
        let output = to + row * result.bytesPerRow(component.plane)
        for column in 0..<target.width {
          let position = component.offset + min(column, size.width - 1) * component.step
          for byte in 0..<layout.bytesPerSample {
            output[component.offset + column * component.step + byte] = line[position + byte]
          }
        }
      }
    }
    return result
  }
}
