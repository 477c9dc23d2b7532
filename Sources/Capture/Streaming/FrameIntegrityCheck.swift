// SPDX-License-Identifier: Apache-2.0

/// How a whole frame is told from one that was cut off, cheaply enough for the capture thread.
package struct FrameIntegrityCheck: Sendable {
  /// Bytes of a whole frame of pixels; nil where frames are compressed.
  private let byteCount: Int?
  /// Whether frames are JPEG pictures, which end in a mark (EOI).
  private let isJPEG: Bool
  /// Cameras fill their payloads up with zeros, but never by more than this.
  private static let paddingLimit = 4_096

  package init(byteCount: Int?, isJPEG: Bool) {
    self.byteCount = byteCount
    self.isJPEG = isJPEG
  }

  /// Whether all of a frame is there, as far as its bytes tell.
  package func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let byteCount { return bytes.count >= byteCount }
    guard isJPEG else { return !bytes.isEmpty }
    var end = bytes.count
    let limit = max(0, end - Self.paddingLimit)
    while end > limit, bytes[end - 1] == 0 { end -= 1 }
    return end >= 4 && bytes[end - 2] == 0xFF && bytes[end - 1] == 0xD9
  }
}
