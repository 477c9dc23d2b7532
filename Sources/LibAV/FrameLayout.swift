// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// Where the rows of a packed picture lie in a driver's buffer.
struct FrameLayout {
  /// For each plane: offset of its first byte, bytes from row to row, rows, bytes used in a row.
  let planes: [(offset: Int, stride: Int, rows: Int, rowBytes: Int)]
  /// Bytes from the first to just past the last that the picture uses.
  let byteCount: Int

  private static let limit = 1 << 20

  init(
    width: Int, height: Int, pixelFormat: AVPixelFormat, bytesPerRow: Int
  ) throws(LibAVError) {
    // More than any driver has; products of such numbers always fit.
    guard let description = av_pix_fmt_desc_get(pixelFormat), (1...Self.limit).contains(width),
      (1...Self.limit).contains(height), (0...(Self.limit * 16)).contains(bytesPerRow)
    else {
      throw LibAVError("lay out", "a \(width)x\(height) picture", code: CFFmpeg_EINVAL)
    }
    var planes: [(offset: Int, stride: Int, rows: Int, rowBytes: Int)] = []
    var offset = 0
    var firstPacked = 0
    for plane in 0..<Int(max(0, av_pix_fmt_count_planes(pixelFormat))) {
      let packed = Int(av_image_get_linesize(pixelFormat, Int32(clamping: width), Int32(plane)))
      guard packed > 0 else {
        throw LibAVError("lay out", "a \(width)x\(height) picture", code: CFFmpeg_EINVAL)
      }
      if plane == 0 { firstPacked = packed }
      // V4L2 gives the stride of the first plane; the others keep their proportion to it.
      let stride = bytesPerRow > firstPacked ? packed * bytesPerRow / firstPacked : packed
      let isChroma = plane == 1 || plane == 2
      let shift = isChroma ? Int(description.pointee.log2_chroma_h) : 0
      let rows = (height + (1 << shift) - 1) >> shift
      planes.append((offset, stride, rows, packed))
      offset += stride * rows
    }
    guard let last = planes.last else {
      throw LibAVError("lay out", "a \(width)x\(height) picture", code: CFFmpeg_EINVAL)
    }
    self.planes = planes
    byteCount = last.offset + last.stride * (last.rows - 1) + last.rowBytes
  }
}

extension MediaFrame {
  /// The bytes of a picture whose rows lie one behind the other, as a file stores them; nil for
  /// one that lies in any other way.
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

  /// The bytes of each plane of a packed picture, whose rows lie as far apart as is said.
  ///
  /// - Parameters:
  ///   - width: Pixels per row.
  ///   - height: Rows.
  ///   - pixelFormat: The picture's format.
  ///   - bytesPerRow: The bytes from row to row, one for each plane.
  /// - Returns: The bytes, one for each plane.
  /// - Throws: `LibAVError` for "lay out" a picture whose planes are not in the usual proportion,
  ///   so that joined they would be no picture.
  package static func planeByteCounts(
    width: Int, height: Int, pixelFormat: LibAVPixelFormat, bytesPerRow: [Int]
  ) throws(LibAVError) -> [Int] {
    let layout = try FrameLayout(
      width: width, height: height, pixelFormat: pixelFormat,
      bytesPerRow: bytesPerRow.first ?? 0)
    guard layout.planes.map({ $0.stride }) == bytesPerRow else {
      throw LibAVError("lay out", "a \(width)x\(height) picture", code: CFFmpeg_EINVAL)
    }
    return layout.planes.map { $0.stride * $0.rows }
  }

  /// The picture at a larger size, its last column and row repeated; itself where it has the size.
  ///
  /// - Throws: `LibAVError` for "enlarge" a format whose samples are no whole bytes.
  package func padded(width: Int, height: Int) throws(LibAVError) -> MediaFrame {
    guard width > self.width || height > self.height else { return self }
    guard let layout = PixelComponents(pixelFormat) else {
      throw LibAVError("enlarge", "a picture", code: CFFmpeg_EINVAL)
    }
    let result = try MediaFrame.picture(width: width, height: height, pixelFormat: pixelFormat)
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
