// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// A rectangle of the sensor's or signal's pixels.
package struct CropRectangle: Hashable, Sendable {
  package var left: Int32
  package var top: Int32
  package var width: UInt32
  package var height: UInt32

  package init(left: Int32, top: Int32, width: UInt32, height: UInt32) {
    (self.left, self.top, self.width, self.height) = (left, top, width, height)
  }
}

extension BufferQueue {
  /// Reads the crop rectangle, which is the part of the captured image that the frames contain:
  /// `VIDIOC_G_SELECTION` with `V4L2_SEL_TGT_CROP`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.readCrop`. The reason is `.notSupported` if the
  ///   driver cannot crop.
  package func crop() throws(DeviceError) -> CropRectangle {
    var selection = selection()
    try DeviceError.check(
      control(CVideo4Linux_VIDIOC_G_SELECTION, &selection), .readCrop, path)
    return CropRectangle(selection.r)
  }

  /// Sets the crop rectangle, which is the part of the captured image that the frames contain:
  /// `VIDIOC_S_SELECTION`.
  ///
  /// May be called while the stream is on.
  ///
  /// - Returns: The crop rectangle that the driver granted.
  /// - Throws: ``DeviceError`` with the operation `.setCrop`. The reason is `.busy` if the driver
  ///   would have to change the format.
  package func setCrop(_ crop: CropRectangle) throws(DeviceError) -> CropRectangle {
    var selection = selection()
    selection.r = v4l2_rect(
      left: crop.left, top: crop.top, width: crop.width, height: crop.height)
    try DeviceError.check(
      control(CVideo4Linux_VIDIOC_S_SELECTION, &selection), .setCrop, path)
    return CropRectangle(selection.r)
  }

  /// The current format: `VIDIOC_G_FMT`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.readFormat`.
  package func currentFormat() throws(DeviceError) -> StreamFormat { try device.currentFormat() }

  private func selection() -> v4l2_selection {
    var selection = v4l2_selection()
    // The single-planar type is used for multi-planar nodes too: Linux 4.13 and later accept
    // either.
    selection.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    selection.target = UInt32(V4L2_SEL_TGT_CROP)
    return selection
  }
}

extension CropRectangle {
  fileprivate init(_ rectangle: v4l2_rect) {
    self.init(
      left: rectangle.left, top: rectangle.top, width: rectangle.width, height: rectangle.height)
  }
}
