// SPDX-License-Identifier: Apache-2.0

/// A check for damaged frames that is fast enough for the capture thread.
///
/// One value checks the frames of one stream, in order of arrival.
package struct FrameIntegrityCheck: Sendable {
  /// The size of a complete uncompressed frame in bytes, or nil for compressed frames.
  private let byteCount: Int?
  /// Whether frames are JPEG images, which start with an SOI and end with an EOI marker.
  private let isJPEG: Bool
  /// Whether a frame with an intact structure has arrived.
  ///
  /// Before that, a defect of the structure may be a habit of the camera.
  private var hasIntactFrame = false

  package init(byteCount: Int?, isJPEG: Bool) {
    self.byteCount = byteCount
    self.isJPEG = isJPEG
  }

  /// Whether a frame is undamaged, judged by its size or, for a JPEG image, by its structure.
  package mutating func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let byteCount { return bytes.count >= byteCount }
    guard isJPEG else { return !bytes.isEmpty }
    guard let image = JPEGStructure.image(in: bytes) else { return false }
    let isIntact = JPEGStructure.isIntact(image)
    if isIntact { hasIntactFrame = true }
    return isIntact || !hasIntactFrame
  }
}
