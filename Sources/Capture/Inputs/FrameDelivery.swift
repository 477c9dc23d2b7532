// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// What the frames of a session are, as the driver granted it.
package struct FrameDelivery: Sendable {
  /// How the bytes of a frame are to be read.
  package enum Layout: Sendable, Equatable {
    /// A picture compressed by the camera.
    case compressed(VideoCodec)
    /// Pixels, with the bytes from row to row of the first plane (0 where rows are packed).
    case raw(LibAVPixelFormat, bytesPerRow: Int)
  }

  package let layout: Layout
  package let width: Int
  package let height: Int
  /// What tells a whole frame from a damaged one.
  package let integrityCheck: FrameIntegrityCheck

  /// Whether frames are compressed by the camera.
  package var isCompressed: Bool {
    if case .compressed = layout { true } else { false }
  }

  package init(layout: Layout, width: Int, height: Int) throws(LibAVError) {
    self.layout = layout
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
