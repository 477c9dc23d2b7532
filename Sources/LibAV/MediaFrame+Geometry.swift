// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// A rotation or reflection of a frame.
///
/// A rotation is applied in two steps, each of which is optional: first rows and columns are
/// exchanged, then the order of the columns, of the rows, or of both is reversed.
package struct FrameRotation: Hashable, Sendable {
  /// Whether rows and columns are exchanged, as the first step.
  package var isTransposed = false
  /// Whether the order of the columns is reversed, as the second step.
  package var flipsX = false
  /// Whether the order of the rows is reversed, as the second step.
  package var flipsY = false

  package static let none = FrameRotation()

  /// Creates the rotation that a display matrix describes.
  ///
  /// Returns nil if its angle is not a multiple of 90°.
  package init?(displayMatrix matrix: [Int32]) {
    guard matrix.count == 9 else {
      self.init()
      return
    }
    // The matrix maps a source point (p, q) to (a·p + c·q, b·p + d·q).
    let (a, b, c, d) = (matrix[0], matrix[1], matrix[3], matrix[4])
    if b == 0, c == 0, a != 0, d != 0 {
      self.init(flipsX: a < 0, flipsY: d < 0)
    } else if a == 0, d == 0, b != 0, c != 0 {
      self.init(isTransposed: true, flipsX: c < 0, flipsY: b < 0)
    } else {
      return nil
    }
  }

  package init(isTransposed: Bool = false, flipsX: Bool = false, flipsY: Bool = false) {
    self.isTransposed = isTransposed
    self.flipsX = flipsX
    self.flipsY = flipsY
  }
}

extension MediaFrame {
  /// Returns a copy that shares no memory with this frame.
  ///
  /// - Throws: `LibAVError` with the operation "allocate" or "copy".
  package func copied() throws(LibAVError) -> MediaFrame {
    let result = try MediaFrame.video(width: width, height: height, pixelFormat: pixelFormat)
    try LibAVError.check(
      av_frame_copy(result.pointer, pointer), "copy", "a \(width)x\(height) picture")
    try LibAVError.check(
      av_frame_copy_props(result.pointer, pointer), "copy", "a \(width)x\(height) picture")
    return result
  }

  /// Returns a part of the frame, which shares the frame's memory.
  ///
  /// For the whole frame, returns the frame itself.
  ///
  /// - Throws: `LibAVError` with the operation "crop" if the part is not inside the frame.
  package func cropped(
    x: Int, y: Int, width: Int, height: Int
  ) throws(LibAVError) -> MediaFrame {
    if x == 0, y == 0, width == self.width, height == self.height { return self }
    guard x >= 0, y >= 0, width > 0, height > 0, x + width <= self.width,
      y + height <= self.height
    else { throw LibAVError("crop", "a picture", code: CFFmpeg_EINVAL) }
    let result = try MediaFrame()
    try LibAVError.check(av_frame_ref(result.pointer, pointer), "crop", "a picture")
    result.pointer.pointee.crop_left = x
    result.pointer.pointee.crop_top = y
    result.pointer.pointee.crop_right = self.width - x - width
    result.pointer.pointee.crop_bottom = self.height - y - height
    let flags = Int32(AV_FRAME_CROP_UNALIGNED)
    try LibAVError.check(av_frame_apply_cropping(result.pointer, flags), "crop", "a picture")
    return result
  }

  /// Returns a rotated copy of the frame.
  ///
  /// Without a rotation, returns the frame itself.
  ///
  /// - Throws: `LibAVError` with the operation "turn" if samples of the format are not whole bytes,
  ///   or if rows and columns are exchanged and chroma is subsampled differently in the two
  ///   directions.
  package func rotated(by rotation: FrameRotation) throws(LibAVError) -> MediaFrame {
    if rotation == .none { return self }
    guard let layout = PixelComponents(pixelFormat),
      !rotation.isTransposed || layout.chromaShift.x == layout.chromaShift.y
    else { throw LibAVError("turn", "a picture", code: CFFmpeg_EINVAL) }
    let result = try MediaFrame.video(
      width: rotation.isTransposed ? height : width, height: rotation.isTransposed ? width : height,
      pixelFormat: pixelFormat)
    for component in layout.components {
      let size = layout.size(of: component, width: result.width, height: result.height)
      guard let from = planeData(component.plane), let to = result.planeData(component.plane)
      else { continue }
      let (stride, step) = (bytesPerRow(component.plane), component.step)
      for y in 0..<size.height {
        let row = rotation.flipsY ? size.height - 1 - y : y
        // In the source plane, the byte offset of the first output column, and the byte distance to
        // the next one.
        let along = rotation.isTransposed ? stride : step
        let start = (rotation.isTransposed ? row * step : row * stride) + component.offset
        let first = rotation.flipsX ? start + (size.width - 1) * along : start
        let stepIn = rotation.flipsX ? -along : along
        let output = to + y * result.bytesPerRow(component.plane) + component.offset
        if layout.bytesPerSample == 1 {
          for x in 0..<size.width { output[x * step] = from[first + x * stepIn] }
        } else {
          for x in 0..<size.width {
            output[x * step] = from[first + x * stepIn]
            output[x * step + 1] = from[first + x * stepIn + 1]
          }
        }
      }
    }
    return result
  }
}
