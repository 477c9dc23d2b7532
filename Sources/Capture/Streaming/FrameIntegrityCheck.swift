// SPDX-License-Identifier: Apache-2.0

/// A check for truncated frames that is fast enough for the capture thread.
package struct FrameIntegrityCheck: Sendable {
  /// The size of a complete uncompressed frame in bytes, or nil for compressed frames.
  private let byteCount: Int?
  /// Whether frames are JPEG images, which end with an EOI marker.
  private let isJPEG: Bool
  /// The greatest number of zero bytes that cameras append to a JPEG image.
  private static let paddingLimit = 4_096

  package init(byteCount: Int?, isJPEG: Bool) {
    self.byteCount = byteCount
    self.isJPEG = isJPEG
  }

  /// Whether a frame is complete, judged by its size or, for a JPEG image, by its end marker.
  package func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let byteCount { return bytes.count >= byteCount }
    guard isJPEG else { return !bytes.isEmpty }
    var end = bytes.count
    let limit = max(0, end - Self.paddingLimit)
    while end > limit, bytes[end - 1] == 0 { end -= 1 }
    return end >= 4 && bytes[end - 2] == 0xFF && bytes[end - 1] == 0xD9
  }
}
