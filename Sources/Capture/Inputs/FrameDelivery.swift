// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// The frame format that the driver selected.
package struct FrameDelivery: Sendable {
  /// The interpretation of a frame's bytes.
  package enum Layout: Sendable, Equatable {
    /// A frame compressed by the camera.
    case compressed(VideoCodec)
    /// Uncompressed pixels. `bytesPerRow` is the stride of the first plane, or 0 for packed rows.
    case raw(LibAVPixelFormat, bytesPerRow: Int)
  }

  package let layout: Layout
  package let width: Int
  package let height: Int
  /// The matrix of YUV frames; nil if it is unknown.
  package let matrix: MediaFrame.Matrix?
  /// The check that detects truncated frames.
  package let integrityCheck: FrameIntegrityCheck

  /// Whether frames are compressed by the camera.
  package var isCompressed: Bool {
    if case .compressed = layout { true } else { false }
  }

  package init(
    layout: Layout, width: Int, height: Int, matrix: MediaFrame.Matrix? = nil
  ) throws(CallFailure) {
    (self.layout, self.matrix) = (layout, matrix)
    self.width = width
    self.height = height
    switch layout {
    case .compressed(let codec):
      integrityCheck = FrameIntegrityCheck(byteCount: nil, isJPEG: codec == .mjpeg)
    case .raw(let format, let bytesPerRow):
      let count = try MediaFrame.byteCount(
        width: width, height: height, pixelFormat: format, bytesPerRow: bytesPerRow)
      integrityCheck = FrameIntegrityCheck(byteCount: count, isJPEG: false)
    }
  }
}
